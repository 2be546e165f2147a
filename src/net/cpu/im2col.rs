//! im2col patches of observations: with few planes a 3x3 convolution is one short product of them, while its taps one by one would
//! be mostly padding.

use super::layer::RowLayout;
use super::tile::CHANNEL_BLOCK;
use crate::game::ObsShape;
use crate::isa::{Isa, for_each_isa};
use crate::net::number::bf16_bits;

/// bf16 elements of a channel block.
const NUMBERS: usize = 2 * CHANNEL_BLOCK;

/// Boards that are converted together: enough that whole cache lines are written in long runs.
const AT_ONCE: usize = 8;

/// The im2col patches of every square in bf16. A row is three windows, each the planes of three neighbouring squares of one board row,
/// `[row above to row below, column, plane]`, and zeros up to a whole channel block.
pub(super) struct Im2col {
    obs: ObsShape,
    /// For each channel block of a row: which of its elements come from each of the three windows, as bit masks.
    masks: Vec<[u32; 3]>,
}

/// Work space: some boards as bf16, and the same zero-padded by one square on each side, `[board, row, column, plane]`. Elements before
/// and after the padded boards are read but not used.
#[derive(Default)]
pub(super) struct Boards {
    numbers: Vec<u16>,
    padded: Vec<u16>,
}

impl Im2col {
    /// The maximum number of planes for which a patch is no longer than nine rows of planes.
    const MAX_PLANES: usize = 31;

    /// None for too many planes.
    pub(super) fn new(obs: ObsShape) -> Option<Self> {
        let window = 3 * obs.channels;
        let mask = |block: usize, w: usize| {
            let inside = |i: &usize| (w * window..(w + 1) * window).contains(&(block * NUMBERS + i));
            (0..NUMBERS).filter(inside).map(|i| 1 << i).sum()
        };
        let masks = |block| [0, 1, 2].map(|w| mask(block, w));
        let blocks = (3 * window).div_ceil(NUMBERS);
        (obs.channels <= Self::MAX_PLANES).then(|| Self { obs, masks: (0..blocks).map(masks).collect() })
    }

    /// Elements of a row, padding included.
    pub(super) fn inputs(&self) -> usize {
        self.masks.len() * NUMBERS
    }

    /// The plane and tap of element `number` of a row; None for padding.
    pub(super) fn source(&self, number: usize) -> Option<(usize, usize)> {
        let planes = self.obs.channels;
        (number < 9 * planes).then_some((number % planes, number / planes))
    }

    /// `[board, plane, position]` -> rows of [`Im2col::inputs`] elements in the layout `to`.
    pub(super) fn rows(&self, obs: &[f32], boards: &mut Boards, rows: &mut [f32], to: RowLayout) {
        self.rows_with(Isa::detect(), obs, boards, rows, to);
    }

    fn rows_with(&self, isa: Isa, obs: &[f32], boards: &mut Boards, rows: &mut [f32], to: RowLayout) {
        let len = self.obs.len();
        boards.numbers.resize(AT_ONCE * len, 0);
        boards.padded.resize(self.before() + AT_ONCE * self.board() + NUMBERS, 0);
        let blocks: &mut [[u16; NUMBERS]] = bytemuck::cast_slice_mut(rows.as_chunks_mut::<CHANNEL_BLOCK>().0);
        for (i, obs) in obs.chunks(AT_ONCE * len).enumerate() {
            place(isa, self, obs, boards);
            let from = PaddedBoards { numbers: &boards.padded, count: obs.len() / len };
            let to = Steps {
                first: i * AT_ONCE * to.row / CHANNEL_BLOCK,
                board: to.row / CHANNEL_BLOCK,
                block: to.block_stride / CHANNEL_BLOCK,
                position: to.position / CHANNEL_BLOCK,
            };
            match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: this `Isa` says that the machine has the instructions.
                Isa::Amx | Isa::Avx512 => unsafe { self.copy_avx512(from, blocks, to) },
                _ => self.copy(from, blocks, to),
            }
        }
    }

    /// Elements before the first padded board.
    fn before(&self) -> usize {
        6 * self.obs.channels
    }

    /// Elements of a zero-padded board row.
    fn line(&self) -> usize {
        (self.obs.width + 2) * self.obs.channels
    }

    /// Elements of a zero-padded board.
    fn board(&self) -> usize {
        (self.obs.height + 2) * self.line()
    }

    /// Each position with the start of its first window.
    fn corners(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (ObsShape { channels, height, width }, before, line) = (self.obs, self.before(), self.line());
        let corners =
            (0..height).flat_map(move |y| (0..width).map(move |x| before + y * line + x * channels));
        corners.enumerate()
    }

    /// Writes the rows of some boards.
    fn copy(&self, from: PaddedBoards<'_>, blocks: &mut [[u16; NUMBERS]], to: Steps) {
        let window = 3 * self.obs.channels;
        for (position, corner) in self.corners() {
            for (board, number) in (0..from.count).flat_map(|b| (0..self.inputs()).map(move |n| (b, n))) {
                let at = corner + board * self.board() + number / window * self.line() + number % window;
                let block = &mut blocks[to.at(position, number / NUMBERS) + board * to.board];
                block[number % NUMBERS] = if number < 3 * window { from.numbers[at] } else { 0 };
            }
        }
    }

    /// The same, each channel block being combined from three masked loads.
    ///
    /// # Safety
    /// The machine has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn copy_avx512(&self, from: PaddedBoards<'_>, blocks: &mut [[u16; NUMBERS]], to: Steps) {
        use std::arch::x86_64::*;
        let PaddedBoards { numbers, count } = from;
        assert!(numbers.len() >= self.before() + count * self.board() + NUMBERS, "boards are zero-padded");
        let (window, board) = (3 * self.obs.channels, self.board());
        for (position, corner) in self.corners() {
            for (i, &[a, b, c]) in self.masks.iter().enumerate() {
                let first = numbers.as_ptr().wrapping_add(corner + i * NUMBERS);
                let second = first.wrapping_add(self.line()).wrapping_sub(window);
                let third = second.wrapping_add(self.line()).wrapping_sub(window);
                let blocks = blocks[to.at(position, i)..].iter_mut().step_by(to.board);
                for (n, block) in (0..count * board).step_by(board).zip(blocks) {
                    // SAFETY: the masks select elements of the padded board only; a channel block is 64 bytes.
                    unsafe {
                        let a = _mm512_maskz_loadu_epi16(a, first.wrapping_add(n).cast());
                        let b = _mm512_maskz_loadu_epi16(b, second.wrapping_add(n).cast());
                        let c = _mm512_maskz_loadu_epi16(c, third.wrapping_add(n).cast());
                        let numbers = _mm512_or_si512(_mm512_or_si512(a, b), c);
                        _mm512_storeu_si512(block.as_mut_ptr().cast(), numbers);
                    }
                }
            }
        }
    }
}

/// Some zero-padded boards.
#[derive(Clone, Copy)]
struct PaddedBoards<'a> {
    numbers: &'a [u16],
    count: usize,
}

/// Strides in channel blocks: the first block of some boards, and from one board, block of a row and position to the next.
#[derive(Clone, Copy)]
struct Steps {
    first: usize,
    board: usize,
    block: usize,
    position: usize,
}

impl Steps {
    /// A channel block of the first board.
    #[inline(always)]
    fn at(&self, position: usize, block: usize) -> usize {
        self.first + position * self.position + block * self.block
    }
}

for_each_isa! {
    /// `[board, plane, row, column]` -> bf16, zero-padded, planes last.
    fn place(im2col: &Im2col, obs: &[f32], boards: &mut Boards) {
        let ObsShape { channels, height, width } = im2col.obs;
        let Boards { numbers, padded } = boards;
        numbers.iter_mut().zip(obs).for_each(|(to, x)| *to = bf16_bits(*x) as u16);
        let padded = padded[im2col.before()..].chunks_exact_mut(im2col.board());
        for (board, padded) in numbers[..obs.len()].chunks_exact(im2col.obs.len()).zip(padded) {
            for (channel, plane) in board.chunks_exact(height * width).enumerate() {
                let lines = padded[im2col.line()..].chunks_exact_mut(im2col.line());
                for (numbers, line) in plane.chunks_exact(width).zip(lines) {
                    let squares = line[channels + channel..].iter_mut().step_by(channels);
                    squares.zip(numbers).for_each(|(to, x)| *to = *x);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_the_patch_of_each_square() {
        for (channels, height, width, boards) in
            [(1, 1, 1, 1), (3, 6, 7, 9), (4, 3, 2, 17), (2, 1, 5, 8), (17, 4, 3, 3), (31, 2, 2, 2)]
        {
            let shape = ObsShape { channels, height, width };
            let im2col = Im2col::new(shape).expect("few planes");
            // Values that bf16 represents exactly.
            let obs: Vec<f32> = (0..boards * shape.len()).map(|i| (i % 251) as f32 + 1.0).collect();
            let row = im2col.inputs() / 2;
            let mut numbers = vec![f32::NAN; boards * height * width * row];
            for lay in [RowLayout::whole, RowLayout::blocked] {
                let to = lay(&mut numbers, boards, row);
                for isa in Isa::available() {
                    numbers.fill(f32::NAN);
                    im2col.rows_with(isa, &obs, &mut Boards::default(), &mut numbers, to);
                    check(&im2col, &obs, &numbers, to);
                }
            }
        }
    }

    fn check(im2col: &Im2col, obs: &[f32], rows: &[f32], to: RowLayout) {
        let ObsShape { channels, height, width } = im2col.obs;
        for (board, obs) in obs.chunks_exact(im2col.obs.len()).enumerate() {
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                for number in 0..im2col.inputs() {
                    let tapped = im2col.source(number).and_then(|(plane, tap)| {
                        let (y, x) = ((y + tap / 3).checked_sub(1)?, (x + tap % 3).checked_sub(1)?);
                        (y < height && x < width).then(|| obs[(plane * height + y) * width + x])
                    });
                    let word = (y * width + x) * to.position
                        + board * to.row
                        + number / NUMBERS * to.block_stride
                        + number % NUMBERS / 2;
                    let bits = rows[word].to_bits() >> (number % 2 * 16) << 16;
                    let expected = tapped.unwrap_or(0.0);
                    assert_eq!(
                        f32::from_bits(bits),
                        expected,
                        "{channels} planes, board {board}, {y} {x}, {number}"
                    );
                }
            }
        }
    }

    #[test]
    fn many_planes_have_no_patches() {
        assert!(Im2col::new(ObsShape { channels: 32, height: 8, width: 8 }).is_none());
    }
}
