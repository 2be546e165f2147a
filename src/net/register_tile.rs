//! The micro-kernel of the matrix products on the CPU, those of AMX excepted: `MR x NV` vector sums in registers, to which each step adds
//! the products of MR numbers with NV vectors. The forward in every number format, the products of training and the gradients of weights
//! differ only in where their operands lie.

use crate::isa::prefetch_at;
use crate::simd::{Register, Simd};
#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::marker::PhantomData;

/// A multiplication of 32-bit units: one f32, two bf16 or four bytes.
pub(super) trait DotProduct {
    /// The instruction set's registers.
    type S: Simd;
    /// A vector of weights, in the form that the instructions take.
    type Weights: Copy;
    /// Numbers of a unit.
    const UNIT: usize;
    /// 32-bit words of a unit of weights in memory.
    const WEIGHT_WORDS: usize = size_of::<Self::Weights>() / size_of::<Vector<Self>>();
    /// Whether steps come in pairs, of which the second is taken first: a unit of two bf16 in two words, whose high half comes first. Their
    /// numbers follow each other in a row.
    const IN_PAIRS: bool = false;
    /// Whether [`DotProduct::dot_lane`] is as cheap as a product of vectors, so that units of a row are best loaded a register at a time.
    const BY_LANE: bool = false;

    /// The weights at `p`.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    unsafe fn load_weights(p: *const f32) -> Self::Weights;

    /// acc + the product of units.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    unsafe fn dot(a: Vector<Self>, b: Self::Weights, acc: Vector<Self>) -> Vector<Self>;

    /// [`QUAD`] units of a row at `p`, as [`DotProduct::dot_lane`] takes them: their halves, where it needs these apart, or twice the units.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_quad(p: *const f32) -> [Vector<Self>; 2] {
        // SAFETY: the kernel contract.
        unsafe { [Self::S::load(p); 2] }
    }

    /// acc + the product of unit LANE of `a` with all units of `b`.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot_lane<const LANE: i32>(
        a: [Vector<Self>; 2],
        b: Self::Weights,
        acc: Vector<Self>,
    ) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe { Self::dot(Self::S::splat(a[0].lanes()[LANE as usize]), b, acc) }
    }
}

/// A register of the instruction set. As a sum, it holds 32-bit integers for bytes.
pub(super) type Vector<F> = <<F as DotProduct>::S as Simd>::F32;

/// Products of f32. `O` says how their sums are written, of which products know nothing: as f32 if it is not named.
pub(super) struct F32<S, O = ()>(PhantomData<(S, O)>);

impl<S: Simd, O> DotProduct for F32<S, O> {
    type S = S;
    type Weights = S::F32;
    const UNIT: usize = 1;
    const BY_LANE: bool = S::BY_LANE;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> S::F32 {
        // SAFETY: the kernel contract.
        unsafe { S::load(p) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: S::F32, b: S::F32, acc: S::F32) -> S::F32 {
        S::mul_add(a, b, acc)
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot_lane<const LANE: i32>(a: [S::F32; 2], b: S::F32, acc: S::F32) -> S::F32 {
        S::mul_add_lane::<LANE>(a[0], b, acc)
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

impl Columns {
    /// The columns `steps` later.
    #[inline(always)]
    pub(super) fn after(self, steps: usize) -> Self {
        Self { start: self.start.wrapping_add(steps * self.step), ..self }
    }

    /// Vector `j` of the current step. Strides count words of f32, of which a unit of weights has WEIGHT_WORDS.
    #[inline(always)]
    pub(super) fn vector<F: DotProduct>(&self, j: usize) -> *const f32 {
        let lanes = F::S::LANES * F::WEIGHT_WORDS;
        self.start.wrapping_add(j / BLOCK * self.block + j % BLOCK * lanes)
    }
}

/// Lanes of the registers that [`DotProduct::dot_lane`] takes.
const QUAD: usize = 4;

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
    // SAFETY: the kernel contract; the steps of each call are some of these.
    unsafe {
        if F::IN_PAIRS {
            pairs_of_steps::<F, MR, NV>(rows, columns, depth / 2, sums);
        } else if F::BY_LANE && rows.step == 1 {
            let quads = depth / QUAD;
            steps_of_rows::<F, MR, NV>(rows, columns, quads, sums);
            let rest = Rows { start: rows.start.wrapping_add(quads * QUAD), ..rows };
            single_steps::<F, MR, NV>(rest, columns.after(quads * QUAD), depth % QUAD, sums);
        } else if F::BY_LANE && rows.row == 1 && MR.is_multiple_of(QUAD) {
            rows_of_steps::<F, MR, NV>(rows, columns, depth, sums);
        } else {
            single_steps::<F, MR, NV>(rows, columns, depth, sums);
        }
    }
}

/// Steps that load a number of a row at a time.
///
/// # Safety
/// As for [`accumulate`].
#[inline(always)]
unsafe fn single_steps<F: DotProduct, const MR: usize, const NV: usize>(
    rows: Rows,
    columns: Columns,
    depth: usize,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    // Not unrolled: the compiler would move broadcasts ahead of their step and spill them.
    let mut pointers = RowPointers::new(rows);
    let mut columns = columns;
    for _ in 0..depth {
        // SAFETY: the kernel contract; this is one of the steps.
        unsafe { step::<F, 0, MR, NV>(&pointers, columns, sums) };
        pointers.advance(rows.step);
        columns = columns.after(1);
    }
}

/// Two steps at a time, the second of them first.
///
/// # Safety
/// As for [`accumulate`], of twice `pairs` steps.
#[inline(always)]
unsafe fn pairs_of_steps<F: DotProduct, const MR: usize, const NV: usize>(
    rows: Rows,
    columns: Columns,
    pairs: usize,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    let mut pointers = RowPointers::new(rows);
    let mut columns = columns;
    for _ in 0..pairs {
        // SAFETY: the kernel contract; these are two of the steps.
        unsafe {
            step::<F, 1, MR, NV>(&pointers, columns.after(1), sums);
            step::<F, 0, MR, NV>(&pointers, columns, sums);
        }
        pointers.advance(2);
        columns = columns.after(2);
    }
}

/// [`QUAD`] steps at a time, whose units follow each other in each row.
///
/// # Safety
/// As for [`accumulate`], of QUAD times `quads` steps.
#[inline(always)]
unsafe fn steps_of_rows<F: DotProduct, const MR: usize, const NV: usize>(
    rows: Rows,
    columns: Columns,
    quads: usize,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    let mut columns = columns;
    let mut x: [*const f32; MR] = std::array::from_fn(|row| rows.start.wrapping_add(row * rows.row));
    for _ in 0..quads {
        // SAFETY: the kernel contract; these are QUAD of the steps.
        unsafe {
            let mut a = [F::load_quad(x[0]); MR];
            a.iter_mut().zip(x).for_each(|(a, x)| *a = F::load_quad(x));
            quad_step::<F, 0, MR, NV>(&a, columns, sums);
            quad_step::<F, 1, MR, NV>(&a, columns.after(1), sums);
            quad_step::<F, 2, MR, NV>(&a, columns.after(2), sums);
            quad_step::<F, 3, MR, NV>(&a, columns.after(3), sums);
        }
        x = x.map(|x| x.wrapping_add(QUAD));
        columns = columns.after(QUAD);
    }
}

/// Lane LANE of every row's register times NV vectors.
///
/// # Safety
/// The caller enables the instructions; the vectors lie inside their array.
#[inline(always)]
unsafe fn quad_step<F: DotProduct, const LANE: i32, const MR: usize, const NV: usize>(
    a: &[[Vector<F>; 2]; MR],
    columns: Columns,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    // SAFETY: the kernel contract.
    unsafe {
        for j in 0..NV {
            let b = F::load_weights(columns.vector::<F>(j));
            for (a, sums) in a.iter().zip(sums.iter_mut()) {
                sums[j] = F::dot_lane::<LANE>(*a, b, sums[j]);
            }
        }
    }
}

/// A step at a time, in which the units of [`QUAD`] rows follow each other.
///
/// # Safety
/// As for [`accumulate`]; MR is a multiple of QUAD.
#[inline(always)]
unsafe fn rows_of_steps<F: DotProduct, const MR: usize, const NV: usize>(
    rows: Rows,
    columns: Columns,
    depth: usize,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    let (mut x, mut columns) = (rows.start, columns);
    for _ in 0..depth {
        // SAFETY: the kernel contract; this is one of the steps.
        unsafe {
            let mut b = [F::load_weights(columns.vector::<F>(0)); NV];
            b.iter_mut().enumerate().for_each(|(j, b)| *b = F::load_weights(columns.vector::<F>(j)));
            for (quad, sums) in sums.as_chunks_mut::<QUAD>().0.iter_mut().enumerate() {
                let a = F::load_quad(x.add(quad * QUAD));
                let [first, second, third, fourth] = sums;
                for j in 0..NV {
                    first[j] = F::dot_lane::<0>(a, b[j], first[j]);
                    second[j] = F::dot_lane::<1>(a, b[j], second[j]);
                    third[j] = F::dot_lane::<2>(a, b[j], third[j]);
                    fourth[j] = F::dot_lane::<3>(a, b[j], fourth[j]);
                }
            }
        }
        x = x.wrapping_add(rows.step);
        columns = columns.after(1);
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

/// The unit of every row OFFSET words further times NV vectors.
///
/// # Safety
/// The caller enables the instructions; rows and vectors lie inside their arrays.
#[inline(always)]
unsafe fn step<F: DotProduct, const OFFSET: usize, const MR: usize, const NV: usize>(
    rows: &RowPointers,
    columns: Columns,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    // SAFETY: the kernel contract.
    unsafe {
        let mut b = [F::load_weights(columns.vector::<F>(0)); NV];
        for (j, b) in b.iter_mut().enumerate() {
            let vector = columns.vector::<F>(j);
            prefetch_at(vector.wrapping_add(AHEAD * columns.step));
            *b = F::load_weights(vector);
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let a = F::S::splat(*rows.at(i).wrapping_add(OFFSET));
            for j in 0..NV {
                sums[j] = F::dot(a, b[j], sums[j]);
            }
        }
    }
}
