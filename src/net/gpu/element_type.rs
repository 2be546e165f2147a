//! Element types of a network on a device. Twin of `kernels/net/element_type.cuh`.

use crate::config::{Precision, TensorCores};
use crate::error::{Error, Result};
use crate::net::number;

/// The type of a network's activations and weights on a device. Sums and the residual stream are 32-bit floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// bfloat16: tensor cores from compute capability 8.0 on.
    Bf16,
    /// IEEE half precision: tensor cores from 7.5 on.
    F16,
    /// 32-bit floats, multiplied as such.
    F32,
    /// 32-bit floats rounded to 10 bits after the point: tensor cores from 8.0 on.
    Tf32,
}

/// The instruction that multiplies matrices on a GPU's tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixInstruction {
    /// `mma.sync`, issued by one warp.
    Mma,
    /// `wgmma`, issued by four warps: 16 bits, on Hopper (compute capability 9.0).
    Wgmma,
}

/// How a network on a device multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic {
    /// The type of the operands.
    pub element_type: ElementType,
    /// The instruction.
    pub cores: MatrixInstruction,
}

impl Arithmetic {
    /// The arithmetic for `precision` with `cores` on a device of this compute capability.
    ///
    /// # Errors
    /// As [`ElementType::of`].
    pub fn of(precision: Precision, cores: TensorCores, capability: u32) -> Result<Self> {
        let element_type = ElementType::of(precision, capability)?;
        let cores = match (cores, capability, element_type) {
            (TensorCores::Auto, 90, ElementType::Bf16 | ElementType::F16) => MatrixInstruction::Wgmma,
            _ => MatrixInstruction::Mma,
        };
        Ok(Self { element_type, cores })
    }

    /// Itself, where a device of this compute capability has it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for `wgmma` on anything but Hopper or in anything but 16 bits.
    pub fn on(self, capability: u32) -> Result<Self> {
        let refused = |why: &str| Err(Error::unsupported("wgmma", why));
        match (self.cores, capability, self.element_type) {
            (MatrixInstruction::Mma, ..)
            | (MatrixInstruction::Wgmma, 90, ElementType::Bf16 | ElementType::F16) => Ok(self),
            (MatrixInstruction::Wgmma, 90, _) => refused("it multiplies bf16 and f16"),
            (MatrixInstruction::Wgmma, ..) => {
                let found = format!("{}.{}", capability / 10, capability % 10);
                refused(&format!("compute capability 9.0 is needed, and this GPU's is {found}"))
            }
        }
    }
}

impl From<ElementType> for Arithmetic {
    /// With mma.sync, which all GPUs with tensor cores have.
    fn from(element_type: ElementType) -> Self {
        Self { element_type, cores: MatrixInstruction::Mma }
    }
}

impl ElementType {
    /// The format for `precision` on a device of this compute capability: for bfloat16 half precision where the tensor cores
    /// have no bfloat16.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for 8 bits, and for TF32 where the tensor cores do not have it.
    pub fn of(precision: Precision, capability: u32) -> Result<Self> {
        match precision {
            Precision::F32 => Ok(Self::F32),
            Precision::Bf16 if capability < 80 => Ok(Self::F16),
            Precision::Bf16 => Ok(Self::Bf16),
            Precision::F16 => Ok(Self::F16),
            Precision::Tf32 if capability < 80 => {
                let why = "its tensor cores do not have it: compute capability 8.0 or newer is needed";
                Err(Error::unsupported("a network in tf32 on this GPU", why))
            }
            Precision::Tf32 => Ok(Self::Tf32),
            Precision::Int8 => {
                let why = "its kernels take f32, tf32, bf16 and f16";
                Err(Error::unsupported("a network in int8 on a GPU", why))
            }
        }
    }

    /// The type's name in the kernels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "Bf16",
            Self::F16 => "F16",
            Self::F32 => "F32",
            Self::Tf32 => "Tf32",
        }
    }

    /// Elements of a 32-bit word.
    pub fn per_word(self) -> usize {
        match self {
            Self::Bf16 | Self::F16 => 2,
            Self::F32 | Self::Tf32 => 1,
        }
    }

    /// The bits of `x` rounded to the nearest.
    pub fn bits(self, x: f32) -> u32 {
        let all = x.to_bits();
        match self {
            Self::Bf16 => number::bf16_bits(x),
            Self::F16 => number::f16_bits(x),
            Self::F32 => all,
            Self::Tf32 if !x.is_finite() => all & 0xFFFF_E000,
            Self::Tf32 => all.wrapping_add(0x0FFF + (all >> 13 & 1)) & 0xFFFF_E000,
        }
    }

    /// The value of these bits.
    pub fn number(self, bits: u32) -> f32 {
        match self {
            Self::Bf16 => f32::from_bits(bits << 16),
            Self::F16 => number::f16_number(bits as u16),
            Self::F32 | Self::Tf32 => f32::from_bits(bits),
        }
    }
}
