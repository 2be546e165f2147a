//! Observations as the games write them -> rows of units for the kernels.

use crate::isa::{Isa, for_each_isa};
use crate::net::number::{bf16_pair, bf16_rounded};

/// Sizes of the observations of one chunk.
pub(super) struct Observations {
    pub boards: usize,
    pub channels: usize,
    pub positions: usize,
    /// Units of a row, which end in zeros where the channels do not fill it.
    pub row: usize,
}

impl Observations {
    /// `[board, channel, position]` -> `[position, board, channel]`, f32.
    pub(super) fn f32_units(&self, obs: &[f32], rows: &mut [f32]) {
        let Self { boards, channels, positions, row } = *self;
        if positions == 1 && row == channels {
            return rows[..obs.len()].copy_from_slice(obs);
        }
        self.zero_padding(channels, rows);
        for (board, obs) in obs.chunks_exact(channels * positions).enumerate() {
            for (channel, plane) in obs.chunks_exact(positions).enumerate() {
                let column = rows[board * row + channel..].iter_mut().step_by(boards * row);
                column.zip(plane).for_each(|(unit, x)| *unit = *x);
            }
        }
    }

    /// The same rounded to bf16.
    pub(super) fn rounded_units(&self, obs: &[f32], rows: &mut [f32]) {
        self.f32_units(obs, rows);
        round(Isa::detect(), &mut rows[..self.positions * self.boards * self.row]);
    }

    /// The same as pairs of bf16, an odd last channel with a 0.
    pub(super) fn bf16_units(&self, obs: &[f32], rows: &mut [f32]) {
        let Self { boards, channels, positions, row } = *self;
        self.zero_padding(channels.div_ceil(2), rows);
        if positions == 1 {
            return pair_rows(Isa::detect(), obs, channels, rows, row);
        }
        for (board, obs) in obs.chunks_exact(channels * positions).enumerate() {
            for (pair, planes) in obs.chunks(2 * positions).enumerate() {
                let column = rows[board * row + pair..].iter_mut().step_by(boards * row);
                let (low, high) = planes.split_at(positions);
                if high.is_empty() {
                    column.zip(low).for_each(|(unit, &low)| *unit = bf16_pair(low, 0.0));
                } else {
                    column
                        .zip(low.iter().zip(high))
                        .for_each(|(unit, (&low, &high))| *unit = bf16_pair(low, high));
                }
            }
        }
    }

    /// Zeros after the first `units` of every row.
    fn zero_padding(&self, units: usize, rows: &mut [f32]) {
        if units < self.row {
            let rows = rows.chunks_exact_mut(self.row).take(self.positions * self.boards);
            rows.for_each(|row| row[units..].fill(0.0));
        }
    }
}

for_each_isa! {
    /// Rounds to bf16.
    fn round(numbers: &mut [f32]) {
        numbers.iter_mut().for_each(|x| *x = bf16_rounded(*x));
    }

    /// `[board, channel]` -> `[board, row]` pairs, an odd last channel with a 0; the rest of the row stays as it is.
    fn pair_rows(obs: &[f32], channels: usize, rows: &mut [f32], row: usize) {
        for (obs, units) in obs.chunks_exact(channels).zip(rows.chunks_exact_mut(row)) {
            let (pairs, last) = obs.as_chunks::<2>();
            let (units, rest) = units.split_at_mut(pairs.len());
            units.iter_mut().zip(pairs).for_each(|(unit, &[low, high])| *unit = bf16_pair(low, high));
            if let ([last], [unit, ..]) = (last, rest) {
                *unit = bf16_pair(*last, 0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_gets_to_its_row() {
        let sizes = Observations { boards: 2, channels: 3, positions: 2, row: 3 };
        let obs: Vec<f32> = (0..12).map(|x| x as f32).collect();
        let mut rows = vec![f32::NAN; 12];
        sizes.f32_units(&obs, &mut rows);
        assert_eq!(rows, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
        let mut rows = vec![f32::NAN; 8];
        let sizes = Observations { row: 2, ..sizes };
        sizes.bf16_units(&obs, &mut rows);
        let expected: Vec<u32> = rows.iter().map(|x| x.to_bits()).collect();
        let pair = |low: f32, high| bf16_pair(low, high).to_bits();
        let by_hand = [
            (0.0, 2.0),
            (4.0, 0.0),
            (6.0, 8.0),
            (10.0, 0.0),
            (1.0, 3.0),
            (5.0, 0.0),
            (7.0, 9.0),
            (11.0, 0.0),
        ];
        assert_eq!(expected, by_hand.map(|(low, high)| pair(low, high)));
    }

    #[test]
    fn numbers_are_rounded_and_rows_end_in_zeros() {
        let sizes = Observations { boards: 1, channels: 3, positions: 2, row: 4 };
        let obs = [1.0, 2.0, 3.0, 4.0, 5.0, 1.0 + f32::EPSILON];
        let mut rows = vec![f32::NAN; 8];
        sizes.rounded_units(&obs, &mut rows);
        assert_eq!(rows, [1.0, 3.0, 5.0, 0.0, 2.0, 4.0, 1.0, 0.0]);
    }

    #[test]
    fn pairs_of_a_single_position_are_those_of_several() {
        for channels in [1_usize, 2, 3, 40, 567] {
            let obs: Vec<f32> = (0..2 * channels).map(|x| 0.37 * x as f32 - 9.0).collect();
            let row = channels.div_ceil(2) + 3;
            let sizes = Observations { boards: 2, channels, positions: 1, row };
            for isa in Isa::available() {
                let mut rows = vec![f32::NAN; 2 * row];
                sizes.zero_padding(channels.div_ceil(2), &mut rows);
                pair_rows(isa, &obs, channels, &mut rows, row);
                for (board, row) in rows.chunks(row).enumerate() {
                    for (unit, found) in row.iter().enumerate() {
                        let at = |c: usize| if c < channels { obs[board * channels + c] } else { 0.0 };
                        let expected = bf16_pair(at(2 * unit), at(2 * unit + 1)).to_bits();
                        assert_eq!(found.to_bits(), expected, "{isa:?}, board {board}, unit {unit}");
                    }
                }
            }
        }
    }
}
