//! The micro-kernel of the matrix products on the CPU, those of AMX excepted: `MR x NV` vector sums in registers, to which each step adds
//! the products of MR numbers with NV vectors. The forward in every number format, the products of training and the gradients of weights
//! differ only in where their operands lie.

use crate::isa::prefetch_at;
use crate::simd::Simd;
#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::marker::PhantomData;

/// A multiplication of 32-bit units: one f32, two bf16 or four bytes.
pub(super) trait DotProduct {
    /// The instruction set's registers.
    type S: Simd;

    /// acc + the product of units.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    unsafe fn dot(a: Vector<Self>, b: Vector<Self>, acc: Vector<Self>) -> Vector<Self>;
}

/// A register of the instruction set. As a sum, it holds 32-bit integers for bytes.
pub(super) type Vector<F> = <<F as DotProduct>::S as Simd>::F32;

/// Products of f32.
pub(super) struct F32<S>(PhantomData<S>);

impl<S: Simd> DotProduct for F32<S> {
    type S = S;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: S::F32, b: S::F32, acc: S::F32) -> S::F32 {
        S::mul_add(a, b, acc)
    }
}

/// Vectors of a block of [`Columns`].
pub(super) const BLOCK: usize = 2;

/// Steps between prefetching vectors, which come from the L2 cache, and using them.
const AHEAD: usize = 8;

/// The operand of which each step reads a number of every row. Strides are in 32-bit words.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// Row 0 at step 0.
    pub start: *const f32,
    /// From one row to the next, and from one step to the next.
    pub row: usize,
    pub step: usize,
}

/// The operand of which each step reads NV vectors, in blocks of [`BLOCK`]. Strides are in 32-bit words.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    /// Vector 0 at step 0.
    pub start: *const f32,
    /// From one block to the next (not used if NV is at most [`BLOCK`]), and from one step to the next.
    pub block: usize,
    pub step: usize,
}

/// Adds the products of `depth` steps to `sums`, one step after the other.
///
/// # Safety
/// The caller enables the instructions; MR rows and NV vectors of `depth` steps lie inside their arrays.
#[inline(always)]
pub(super) unsafe fn accumulate<F: DotProduct, const MR: usize, const NV: usize>(
    rows: Rows,
    columns: Columns,
    depth: usize,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    const { assert!(MR <= RowPointers::MAX_ROWS, "a row without a pointer") };
    // Not unrolled: the compiler would move broadcasts ahead of their step and spill them.
    let mut pointers = RowPointers::new(rows);
    let mut start = columns.start;
    for _ in 0..depth {
        // SAFETY: the kernel contract; this is one of the steps.
        unsafe { step::<F, MR, NV>(&pointers, Columns { start, ..columns }, sums) };
        pointers.advance(rows.step);
        start = start.wrapping_add(columns.step);
    }
}

/// Addresses of the current units of a tile's rows, at most [`RowPointers::MAX_ROWS`]. Every third row has a pointer of its own; the two rows after it are one and two
/// strides further, which an x86 addressing mode expresses. Twelve addresses derived one from another would take instructions that
/// compete with the multiplications.
struct RowPointers {
    thirds: [*const f32; 4],
    stride: usize,
}

impl RowPointers {
    const MAX_ROWS: usize = 12;

    #[inline(always)]
    fn new(Rows { start, row, .. }: Rows) -> Self {
        Self { thirds: [0, 3, 6, 9].map(|first| start.wrapping_add(first * row)), stride: row }
    }

    #[inline(always)]
    fn at(&self, row: usize) -> *const f32 {
        self.thirds[row / 3].wrapping_add(row % 3 * self.stride)
    }

    /// Advances by `words`.
    #[inline(always)]
    fn advance(&mut self, words: usize) {
        self.thirds = self.thirds.map(|third| opaque(third.wrapping_add(words)));
    }
}

/// Hides the value of `p` from the optimiser, which would otherwise derive the pointers one from another again.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn opaque(mut p: *const f32) -> *const f32 {
    // SAFETY: the assembly has no instructions.
    unsafe { asm!("/* {} */", inout(reg) p, options(pure, readonly, nostack, preserves_flags)) }
    p
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn opaque(p: *const f32) -> *const f32 {
    p
}

/// One unit of every row times NV vectors.
///
/// # Safety
/// The caller enables the instructions; rows and vectors lie inside their arrays.
#[inline(always)]
unsafe fn step<F: DotProduct, const MR: usize, const NV: usize>(
    rows: &RowPointers,
    columns: Columns,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    // SAFETY: the kernel contract.
    unsafe {
        let mut b = [F::S::splat(0.0); NV];
        for (j, b) in b.iter_mut().enumerate() {
            let vector = columns.start.add(j / BLOCK * columns.block + j % BLOCK * F::S::LANES);
            prefetch_at(vector.wrapping_add(AHEAD * columns.step));
            *b = F::S::load(vector);
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let a = F::S::splat(*rows.at(i));
            for j in 0..NV {
                sums[j] = F::dot(a, b[j], sums[j]);
            }
        }
    }
}
