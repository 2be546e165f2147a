//! The products of one matrix multiply of a strip's tile, and the loads that replace its operands.

use super::tile::{Tap, TileColumns};
use crate::net::amx_tile::{LINE_BYTES, Multiply, TILE, TILE_ROWS, flush, load, load_nontemporal, store};

/// The addresses that one multiplication of a tile reads: contiguous rows, `below` words from one matrix of them to the other, and the
/// weights' matrices.
#[derive(Clone, Copy)]
pub(super) struct OperandAddrs {
    pub x: *const f32,
    pub below: usize,
    pub weights: *const f32,
}

impl OperandAddrs {
    /// The first multiplication of a tap, for the tile at `x`.
    #[inline(always)]
    pub(super) fn new(t: &TileColumns, x: *const f32, below: usize, tap: &Tap) -> Self {
        Self {
            x: x.wrapping_offset(tap.shift * t.x_position),
            below,
            weights: t.weights.wrapping_add(tap.index * t.depth * t.block_vectors * TILE_ROWS),
        }
    }

    /// The multiplication `n` later, of the same tap.
    #[inline(always)]
    pub(super) fn later(self, t: &TileColumns, n: usize) -> Self {
        let weights = self.weights.wrapping_add(n * t.block_vectors * TILE);
        Self { x: self.x.wrapping_add(n * t.x_block_stride), weights, ..self }
    }
}

/// Loads the operands of a strip's first multiplication.
///
/// # Safety
/// The machine has AMX, this thread the tiles' configuration, and `reads` two matrices of rows and VECTORS of weights.
#[inline(always)]
pub(super) unsafe fn load_first<const VECTORS: usize>(reads: OperandAddrs) {
    // SAFETY: the kernel contract.
    unsafe {
        load_nontemporal::<4>(reads.x, LINE_BYTES);
        load_nontemporal::<5>(reads.x.wrapping_add(reads.below), LINE_BYTES);
        load::<6>(reads.weights, LINE_BYTES);
        if VECTORS == 2 {
            load::<7>(reads.weights.wrapping_add(TILE), LINE_BYTES);
        }
    }
}

/// One of the four products of a multiplication. A matrix that it uses for the last time is replaced by that of the `next`
/// multiplication. Rows are loaded with the hint that they need not stay in the L1 cache, which is left to the weights.
///
/// # Safety
/// As for [`load_first`].
#[inline(always)]
pub(super) unsafe fn mma_step<F: Multiply, const VECTORS: usize, const PART: usize>(next: OperandAddrs) {
    let below = next.x.wrapping_add(next.below);
    // SAFETY: the kernel contract.
    unsafe {
        match (VECTORS, PART) {
            (_, 0) => F::product::<0, 4, 6>(),
            (1, 1) => {
                F::product::<1, 5, 6>();
                load_first::<1>(next);
            }
            (2, 1) => {
                F::product::<1, 5, 6>();
                load::<6>(next.weights, LINE_BYTES);
            }
            (2, 2) => {
                F::product::<2, 4, 7>();
                load_nontemporal::<4>(next.x, LINE_BYTES);
            }
            (2, 3) => {
                F::product::<3, 5, 7>();
                load_nontemporal::<5>(below, LINE_BYTES);
                load::<7>(next.weights.wrapping_add(TILE), LINE_BYTES);
            }
            _ => (),
        }
    }
}

/// The same in a tile's first multiplication: the sums of the pending tile are stored, and new ones begun.
///
/// # Safety
/// As for [`store_all`] and [`load_first`].
#[inline(always)]
pub(super) unsafe fn first_mma_step<F: Multiply, const VECTORS: usize, const PART: usize>(
    next: OperandAddrs,
    sums: *mut f32,
) {
    // SAFETY: the kernel contract.
    unsafe {
        if PART < 2 * VECTORS {
            flush::<PART>(sums.wrapping_add(PART / 2 * 2 * TILE + PART % 2 * next.below));
        }
        mma_step::<F, VECTORS, PART>(next);
    }
}

/// Stores the sums of four tiles, those of the second and fourth `below` words after those of the first and third.
///
/// # Safety
/// The machine has AMX, and this thread the tiles' configuration; `sums` has capacity for all sums.
#[inline(always)]
pub(super) unsafe fn store_all(sums: *mut f32, below: usize) {
    // SAFETY: the kernel contract.
    unsafe {
        store::<0>(sums, LINE_BYTES);
        store::<1>(sums.wrapping_add(below), LINE_BYTES);
        store::<2>(sums.wrapping_add(2 * TILE), LINE_BYTES);
        store::<3>(sums.wrapping_add(2 * TILE + below), LINE_BYTES);
    }
}
