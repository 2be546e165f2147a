//! The formats of the numbers in files of weights.

use crate::error::{Error, Result};
use clap::ValueEnum;
use half::{bf16, f16};
use std::fmt;

/// The format of a file's weights. The command line takes it by its name, and shows what stands above each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NumberFormat {
    /// 32 bits
    #[default]
    F32,
    /// 16 bits with the range of f32
    Bf16,
    /// 16 bits, up to 65504
    F16,
}

impl NumberFormat {
    /// `x` rounded to the nearest number of this format, half to even.
    pub fn round(self, x: f32) -> f32 {
        match self {
            Self::F32 => x,
            Self::Bf16 => bf16::from_f32(x).to_f32(),
            Self::F16 => f16::from_f32(x).to_f32(),
        }
    }

    /// The numbers of tensor `name` in this format, little-endian.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a number beyond its range.
    pub fn encode(self, name: &str, data: &[f32]) -> Result<Vec<u8>> {
        if let Some(x) = data.iter().find(|x| x.is_finite() && !self.round(**x).is_finite()) {
            return Err(Error::unsupported(
                format!("tensor {name} in {self}"),
                format!("it has the number {x}, and the largest of {self} is {}", self.max()),
            ));
        }
        Ok(match self {
            Self::F32 => data.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::Bf16 => data.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
            Self::F16 => data.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
        })
    }

    /// The numbers in `bytes`, which is a whole number of them.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let of_16_bits =
            |to_f32: fn([u8; 2]) -> f32| bytes.as_chunks().0.iter().map(|&x| to_f32(x)).collect();
        match self {
            Self::F32 => bytes.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect(),
            Self::Bf16 => of_16_bits(|x| bf16::from_le_bytes(x).to_f32()),
            Self::F16 => of_16_bits(|x| f16::from_le_bytes(x).to_f32()),
        }
    }

    fn max(self) -> f32 {
        match self {
            Self::F32 => f32::MAX,
            Self::Bf16 => bf16::MAX.to_f32(),
            Self::F16 => f16::MAX.to_f32(),
        }
    }
}

impl fmt::Display for NumberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halfway between two numbers of bfloat16.
    const TIE: f32 = 1.0 + 1.0 / 256.0;

    #[test]
    fn numbers_come_back_rounded_and_those_beyond_the_range_are_refused() {
        let data = [0.0, -1.0, 0.1, 65_504.0, -3e-6, TIE];
        for format in [NumberFormat::F32, NumberFormat::Bf16, NumberFormat::F16] {
            let bytes = format.encode("x", &data).expect("in range of all");
            assert_eq!(format.decode(&bytes), data.map(|x| format.round(x)), "{format}");
        }
        assert_eq!(NumberFormat::Bf16.round(TIE), 1.0, "a tie goes to the even neighbour");
        assert_eq!(NumberFormat::F16.round(TIE), TIE);
        let refused = |format: NumberFormat, x| format.encode("a.weight", &[x]).map_err(|e| e.to_string());
        let error = refused(NumberFormat::F16, -7e4).expect_err("beyond f16");
        assert_eq!(
            error,
            "tensor a.weight in f16: it has the number -70000, and the largest of f16 is 65504"
        );
        assert!(refused(NumberFormat::Bf16, 3.4e38).is_err() && refused(NumberFormat::Bf16, 7e4).is_ok());
    }
}
