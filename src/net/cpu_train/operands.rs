//! The number format of the operands of products, and activations and gradients in it.

#[cfg(target_arch = "x86_64")]
use super::transpose::transpose_pairs;
use super::view::View;
use crate::config::{IsaChoice, TrainPrecision};
use crate::isa::{Isa, for_each_isa};
use crate::net::number::{bf16_bits, bf16_pair};

/// The number format of the operands of a layer's products. Weights, sums and all that lies between two products are f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operands {
    /// 32-bit floats.
    #[default]
    F32,
    /// Units of two bfloat16.
    Bf16,
}

impl From<TrainPrecision> for Operands {
    /// Those of training on the CPU, which multiplies nothing in f16.
    fn from(precision: TrainPrecision) -> Self {
        match precision {
            TrainPrecision::Bf16 => Self::Bf16,
            TrainPrecision::F32 | TrainPrecision::F16 => Self::F32,
        }
    }
}

impl Operands {
    /// Numbers of a unit.
    pub fn unit(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Bf16 => 2,
        }
    }

    /// The instruction set that multiplies them on this machine.
    pub fn isa(self, choice: IsaChoice) -> Isa {
        match self {
            Self::F32 => Isa::detect(),
            Self::Bf16 => choice.of_bf16_training(),
        }
    }

    /// Rows of the tallest tile of products by `isa`: AMX's tiles of bf16, else tiles of registers.
    pub(super) fn tile_rows(self, isa: Isa) -> usize {
        match (self, isa) {
            (Self::Bf16, Isa::Amx) => 16,
            _ => 12,
        }
    }

    /// `x [.., width]` with units of columns, `width` even: itself, or in `scratch` of half as many words.
    pub(super) fn by_columns<'a>(self, isa: Isa, x: View<'a>, scratch: &'a mut [f32]) -> View<'a> {
        match self {
            Self::F32 => x,
            Self::Bf16 => {
                let data = &mut scratch[..x.data.len() / 2];
                pair_columns(isa, x.data, data);
                View { data, width: x.width / 2, offset: x.offset / 2 }
            }
        }
    }

    /// The input `x [positions, rows, width]` of a weight gradient with units of rows: as [`Operands::by_rows`], or for AMX `[width, words]`
    /// in `scratch`, the units of all positions of a column one after the other, [`column_words`] words from column to column.
    pub(super) fn input_of_gradient<'a>(
        self,
        isa: Isa,
        x: View<'a>,
        rows: usize,
        scratch: &'a mut [f32],
    ) -> View<'a> {
        #[cfg(target_arch = "x86_64")]
        if (self, isa) == (Self::Bf16, Isa::Amx) {
            let data = &mut scratch[..self.input_words(isa, x, rows)];
            // SAFETY: the machine has AMX, hence AVX-512; rows are whole vectors, columns `column_words` long.
            unsafe { transpose_pairs(x, rows, data) };
            return View { data, ..x };
        }
        self.by_rows(isa, x, rows, scratch)
    }

    /// Words of [`Operands::input_of_gradient`] of bf16.
    pub(super) fn input_words(self, isa: Isa, x: View<'_>, rows: usize) -> usize {
        let (positions, units) = (x.data.len() / (rows * x.width), rows.div_ceil(2));
        match isa {
            Isa::Amx => x.width * column_words(positions * units),
            _ => x.width * positions * units,
        }
    }

    /// `x [positions, rows, width]` with units of rows: itself, or `[positions, rows / 2 rounded up, width]` in `scratch`.
    pub(super) fn by_rows<'a>(self, isa: Isa, x: View<'a>, rows: usize, scratch: &'a mut [f32]) -> View<'a> {
        match self {
            Self::F32 => x,
            Self::Bf16 => {
                let data = &mut scratch[..x.data.len() / rows * rows.div_ceil(2)];
                pair_rows(isa, x.data, rows * x.width, x.width, data);
                View { data, ..x }
            }
        }
    }
}

/// Words from one column to the next where a column's `units` follow each other: an odd number of cache lines, so that columns are in different
/// sets of a cache.
pub(super) fn column_words(units: usize) -> usize {
    const LINE: usize = 16;
    (units.div_ceil(LINE) | 1) * LINE
}

/// Sets number `index` of a unit of two bf16.
pub(super) fn set_number(unit: &mut f32, index: usize, x: f32) {
    let shift = 16 * index as u32;
    *unit = f32::from_bits(unit.to_bits() & !(0xFFFF << shift) | bf16_bits(x) << shift);
}

for_each_isa! {
    /// Units of two adjacent numbers. `x [n]`, `out [n / 2]`
    fn pair_columns(x: &[f32], out: &mut [f32]) {
        for (out, pair) in out.iter_mut().zip(x.as_chunks::<2>().0) {
            *out = bf16_pair(pair[0], pair[1]);
        }
    }

    /// Units of two adjacent rows of `width` numbers in each position of `len` numbers; the last row of an odd number is with zeros.
    fn pair_rows(x: &[f32], len: usize, width: usize, out: &mut [f32]) {
        let words = len.div_ceil(2 * width) * width;
        for (position, out) in x.chunks_exact(len).zip(out.chunks_exact_mut(words)) {
            for (pair, out) in position.chunks(2 * width).zip(out.chunks_exact_mut(width)) {
                let (first, second) = pair.split_at(width);
                if second.is_empty() {
                    out.iter_mut().zip(first).for_each(|(out, &x)| *out = bf16_pair(x, 0.0));
                } else {
                    let both = first.iter().zip(second);
                    out.iter_mut().zip(both).for_each(|(out, (&low, &high))| *out = bf16_pair(low, high));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::number::{bf16_high, bf16_low};

    /// Numbers that bf16 holds.
    fn numbers(len: usize) -> Vec<f32> {
        (0..len).map(|i| (i % 251) as f32 - 100.0).collect()
    }

    #[test]
    fn units_of_columns_and_rows_hold_their_numbers() {
        let (positions, rows, width) = (2, 5, 48);
        let data = numbers(positions * rows * width);
        let x = View { data: &data, width, offset: 16 };
        for isa in Isa::available() {
            let mut scratch = vec![9.0; data.len()];
            let units = Operands::Bf16.by_columns(isa, x, &mut scratch);
            assert_eq!((units.data.len(), units.width, units.offset), (data.len() / 2, 24, 8));
            let both: Vec<f32> =
                units.data.iter().flat_map(|&unit| [bf16_low(unit), bf16_high(unit)]).collect();
            assert_eq!(both, data, "{isa}");
            let units = Operands::Bf16.by_rows(isa, x, rows, &mut scratch);
            assert_eq!((units.data.len(), units.width, units.offset), (positions * 3 * width, width, 16));
            for (at, &unit) in units.data.iter().enumerate() {
                let (position, pair, column) = (at / (3 * width), at / width % 3, at % width);
                let of = |row: usize| match row < rows {
                    true => data[(position * rows + row) * width + column],
                    false => 0.0,
                };
                assert_eq!([bf16_low(unit), bf16_high(unit)], [of(2 * pair), of(2 * pair + 1)], "{isa} {at}");
            }
        }
    }

    #[test]
    fn a_number_of_a_unit_is_set_alone() {
        let mut unit = bf16_pair(1.5, -3.0);
        set_number(&mut unit, 1, 0.25);
        assert_eq!([bf16_low(unit), bf16_high(unit)], [1.5, 0.25]);
        set_number(&mut unit, 0, -2.0);
        assert_eq!([bf16_low(unit), bf16_high(unit)], [-2.0, 0.25]);
    }
}
