//! Observations as rows of what lies im2col each square: with few planes a 3x3 convolution is then one short product, where
//! taps one by one would be mostly padding.

use super::layer::Rows;
use super::observe::bf16_bits;
use super::tile::CHANNEL_BLOCK;
use crate::game::ObsShape;
use crate::isa::{Isa, for_each_isa};

/// Numbers of a piece of a row.
const NUMBERS: usize = 2 * CHANNEL_BLOCK;

/// Boards that are taken at once: enough that whole lines of the cache are written in long runs.
const AT_ONCE: usize = 8;

/// Boards whose squares are read with what is im2col them, as bf16. A row is three windows, each the planes of three
/// neighbours in a line, `[line above to line below, column, plane]`, and zeros up to a whole piece.
pub(super) struct Im2col {
    obs: ObsShape,
    /// The numbers of a window that each piece of a row has, as bits, for all three windows.
    masks: Vec<[u32; 3]>,
}

/// Room for some boards as numbers, and for these with a margin of zeros, `[board, line, column, plane]`; before and after
/// that are numbers that are read and not used.
#[derive(Default)]
pub(super) struct Boards {
    numbers: Vec<u16>,
    padded: Vec<u16>,
}

impl Im2col {
    /// The most planes for which a row is no longer than nine rows of planes would be.
    const MOST_PLANES: usize = 31;

    /// None where there are too many planes.
    pub(super) fn new(obs: ObsShape) -> Option<Self> {
        let window = 3 * obs.channels;
        let mask = |piece: usize, w: usize| {
            let inside = |i: &usize| (w * window..(w + 1) * window).contains(&(piece * NUMBERS + i));
            (0..NUMBERS).filter(inside).map(|i| 1 << i).sum()
        };
        let masks = |piece| [0, 1, 2].map(|w| mask(piece, w));
        let pieces = (3 * window).div_ceil(NUMBERS);
        (obs.channels <= Self::MOST_PLANES).then(|| Self { obs, masks: (0..pieces).map(masks).collect() })
    }

    /// Numbers of a row.
    pub(super) fn inputs(&self) -> usize {
        self.masks.len() * NUMBERS
    }

    /// Plane and tap that a number of a row is; None for padding.
    pub(super) fn source(&self, number: usize) -> Option<(usize, usize)> {
        let planes = self.obs.channels;
        (number < 9 * planes).then_some((number % planes, number / planes))
    }

    /// `[board, plane, position]` -> rows of [`Im2col::inputs`] numbers that lie as `to` says.
    pub(super) fn rows(&self, obs: &[f32], boards: &mut Boards, rows: &mut [f32], to: Rows) {
        self.rows_with(Isa::detect(), obs, boards, rows, to);
    }

    fn rows_with(&self, isa: Isa, obs: &[f32], boards: &mut Boards, rows: &mut [f32], to: Rows) {
        let len = self.obs.len();
        boards.numbers.resize(AT_ONCE * len, 0);
        boards.padded.resize(self.before() + AT_ONCE * self.board() + NUMBERS, 0);
        let pieces: &mut [[u16; NUMBERS]] = bytemuck::cast_slice_mut(rows.as_chunks_mut::<CHANNEL_BLOCK>().0);
        for (i, obs) in obs.chunks(AT_ONCE * len).enumerate() {
            place(isa, self, obs, boards);
            let from = PaddedBoards { numbers: &boards.padded, count: obs.len() / len };
            let to = Steps {
                first: i * AT_ONCE * to.row / CHANNEL_BLOCK,
                board: to.row / CHANNEL_BLOCK,
                piece: to.piece / CHANNEL_BLOCK,
                position: to.position / CHANNEL_BLOCK,
            };
            match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: this `Isa` says that the machine has the instructions.
                Isa::Amx | Isa::Avx512 => unsafe { self.copy_avx512(from, pieces, to) },
                _ => self.copy(from, pieces, to),
            }
        }
    }

    /// Numbers before the first margin.
    fn before(&self) -> usize {
        6 * self.obs.channels
    }

    /// Numbers of a line with its margin.
    fn line(&self) -> usize {
        (self.obs.width + 2) * self.obs.channels
    }

    /// Numbers of a board with its margin.
    fn board(&self) -> usize {
        (self.obs.height + 2) * self.line()
    }

    /// Positions, and where their first windows start.
    fn corners(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (ObsShape { channels, height, width }, before, line) = (self.obs, self.before(), self.line());
        let corners =
            (0..height).flat_map(move |y| (0..width).map(move |x| before + y * line + x * channels));
        corners.enumerate()
    }

    /// The rows of some boards.
    fn copy(&self, from: PaddedBoards<'_>, pieces: &mut [[u16; NUMBERS]], to: Steps) {
        let window = 3 * self.obs.channels;
        for (position, corner) in self.corners() {
            for (board, number) in (0..from.count).flat_map(|b| (0..self.inputs()).map(move |n| (b, n))) {
                let at = corner + board * self.board() + number / window * self.line() + number % window;
                let piece = &mut pieces[to.at(position, number / NUMBERS) + board * to.board];
                piece[number % NUMBERS] = if number < 3 * window { from.numbers[at] } else { 0 };
            }
        }
    }

    /// The same, each piece being made of what it has of the three windows.
    ///
    /// # Safety
    /// The machine has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn copy_avx512(&self, from: PaddedBoards<'_>, pieces: &mut [[u16; NUMBERS]], to: Steps) {
        use std::arch::x86_64::*;
        let PaddedBoards { numbers, count } = from;
        assert!(numbers.len() >= self.before() + count * self.board() + NUMBERS, "boards have margins");
        let (window, board) = (3 * self.obs.channels, self.board());
        for (position, corner) in self.corners() {
            for (i, &[a, b, c]) in self.masks.iter().enumerate() {
                let first = numbers.as_ptr().wrapping_add(corner + i * NUMBERS);
                let second = first.wrapping_add(self.line()).wrapping_sub(window);
                let third = second.wrapping_add(self.line()).wrapping_sub(window);
                let pieces = pieces[to.at(position, i)..].iter_mut().step_by(to.board);
                for (n, piece) in (0..count * board).step_by(board).zip(pieces) {
                    // SAFETY: what the masks take of a window is on the board or its margin; a piece is 64 bytes.
                    unsafe {
                        let a = _mm512_maskz_loadu_epi16(a, first.wrapping_add(n).cast());
                        let b = _mm512_maskz_loadu_epi16(b, second.wrapping_add(n).cast());
                        let c = _mm512_maskz_loadu_epi16(c, third.wrapping_add(n).cast());
                        let numbers = _mm512_or_si512(_mm512_or_si512(a, b), c);
                        _mm512_storeu_si512(piece.as_mut_ptr().cast(), numbers);
                    }
                }
            }
        }
    }
}

/// Some boards within their margins.
#[derive(Clone, Copy)]
struct PaddedBoards<'a> {
    numbers: &'a [u16],
    count: usize,
}

/// The first of some boards' pieces, and pieces from one board, piece of a row and position to the next.
#[derive(Clone, Copy)]
struct Steps {
    first: usize,
    board: usize,
    piece: usize,
    position: usize,
}

impl Steps {
    /// A piece of the first board.
    #[inline(always)]
    fn at(&self, position: usize, piece: usize) -> usize {
        self.first + position * self.position + piece * self.piece
    }
}

for_each_isa! {
    /// `[board, plane, line, column]` as bf16 within margins.
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
    fn rows_hold_what_is_around_each_square() {
        for (channels, height, width, boards) in
            [(1, 1, 1, 1), (3, 6, 7, 9), (4, 3, 2, 17), (2, 1, 5, 8), (17, 4, 3, 3), (31, 2, 2, 2)]
        {
            let shape = ObsShape { channels, height, width };
            let im2col = Im2col::new(shape).expect("few planes");
            // Numbers that bf16 has.
            let obs: Vec<f32> = (0..boards * shape.len()).map(|i| (i % 251) as f32 + 1.0).collect();
            let row = im2col.inputs() / 2;
            let mut numbers = vec![f32::NAN; boards * height * width * row];
            for lay in [Rows::whole, Rows::pieces] {
                let to = lay(&mut numbers, boards, row);
                for isa in Isa::available() {
                    numbers.fill(f32::NAN);
                    im2col.rows_with(isa, &obs, &mut Boards::default(), &mut numbers, to);
                    check(&im2col, &obs, &numbers, to);
                }
            }
        }
    }

    fn check(im2col: &Im2col, obs: &[f32], rows: &[f32], to: Rows) {
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
                        + number / NUMBERS * to.piece
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
    fn many_planes_are_taken_one_by_one() {
        assert!(Im2col::new(ObsShape { channels: 32, height: 8, width: 8 }).is_none());
    }
}
