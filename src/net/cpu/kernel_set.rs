//! The forward's kernels for each instruction set and number format, and which of them this machine has.

use super::im2col::Im2col;
use super::kernels::Kernels;
use super::{bf16, int8, portable};
use crate::config::{IsaChoice, Precision};
use crate::error::{Error, Result};
use crate::game::ObsShape;
use crate::isa::Isa;
use crate::model::{ActivationShape, Model};

/// The kernels of a network's parts.
#[derive(Clone, Copy)]
pub(super) struct KernelSet {
    /// Read observations, write the tower's activations.
    pub stem: &'static Kernels,
    /// The blocks and the layers that read their activations.
    pub tower: &'static Kernels,
    /// The layers after those, in f32.
    pub full: &'static Kernels,
    /// The instruction set of plain Rust between the layers.
    pub isa: Isa,
}

impl KernelSet {
    /// The kernels of `isa` in this precision; None if this machine or build lacks them.
    pub(super) fn of(isa: Isa, precision: Precision) -> Option<Self> {
        if !isa.is_available() {
            return None;
        }
        let set = |stem, tower, full| Some(Self { stem, tower, full, isa });
        match (isa, precision) {
            (Isa::Portable, Precision::F32) => {
                set(&portable::PORTABLE, &portable::PORTABLE, &portable::PORTABLE)
            }
            (Isa::Portable, Precision::Bf16) => set(&bf16::PORTABLE, &bf16::PORTABLE, &portable::PORTABLE),
            (Isa::Portable, Precision::Int8) => set(&int8::STEM, &int8::TOWER, &portable::PORTABLE),
            #[cfg(target_arch = "x86_64")]
            (isa, precision) => {
                use super::{amx, x86, x86_bf16, x86_int8};
                use crate::isa::Avx512Extension;
                let bf16 = Avx512Extension::Bf16.is_available();
                let vnni = Avx512Extension::Vnni.is_available();
                match (isa, precision) {
                    (Isa::Avx2, Precision::F32) => set(&x86::AVX2, &x86::AVX2, &x86::AVX2),
                    (Isa::Avx2, Precision::Bf16) => set(&x86_bf16::AVX2, &x86_bf16::AVX2, &x86::AVX2),
                    (Isa::Avx2, Precision::Int8) => {
                        set(&x86_int8::AVX2_STEM, &x86_int8::AVX2_TOWER, &x86::AVX2)
                    }
                    (Isa::Avx512, Precision::F32) => set(&x86::AVX512, &x86::AVX512, &x86::AVX512),
                    (Isa::Avx512, Precision::Bf16) if bf16 => {
                        set(&x86_bf16::AVX512, &x86_bf16::AVX512, &x86::AVX512)
                    }
                    (Isa::Avx512, Precision::Bf16) => {
                        set(&x86_bf16::AVX512_ROUNDED, &x86_bf16::AVX512_ROUNDED, &x86::AVX512)
                    }
                    (Isa::Avx512, Precision::Int8) if vnni => {
                        set(&x86_int8::STEM, &x86_int8::TOWER, &x86::AVX512)
                    }
                    (Isa::Amx, Precision::Bf16) if bf16 => set(&x86_bf16::AVX512, &amx::BF16, &x86::AVX512),
                    (Isa::Amx, Precision::Int8) if vnni => set(&x86_int8::STEM, &amx::INT8, &x86::AVX512),
                    _ => None,
                }
            }
            #[cfg(target_arch = "aarch64")]
            (Isa::Neon, precision) => {
                use super::{aarch64, aarch64_bf16, aarch64_int8};
                use crate::isa::NeonExtension;
                let full = &aarch64::NEON;
                match precision {
                    Precision::F32 => set(full, full, full),
                    Precision::Bf16 if NeonExtension::Bf16.is_available() => {
                        set(&aarch64_bf16::WIDENING, &aarch64_bf16::WIDENING, full)
                    }
                    Precision::Bf16 => set(&aarch64_bf16::NEON, &aarch64_bf16::NEON, full),
                    Precision::Int8 if NeonExtension::I8mm.is_available() => {
                        set(&aarch64_int8::STEM, &aarch64_int8::MATRIX, full)
                    }
                    Precision::Int8 if NeonExtension::DotProduct.is_available() => {
                        set(&aarch64_int8::STEM, &aarch64_int8::SIGNED, full)
                    }
                    _ => None,
                }
            }
            #[cfg(target_arch = "aarch64")]
            (Isa::Bfmmla, Precision::Bf16) => {
                use super::{aarch64, aarch64_bf16};
                set(&aarch64_bf16::WIDENING, &aarch64_bf16::MATRIX, &aarch64::NEON)
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        }
    }

    /// The kernels that read observations of `inputs` elements a position: the tower's if the inputs fill one of their steps.
    pub(super) fn stem_of(&self, inputs: usize) -> &'static Kernels {
        let same = self.stem.unit == self.tower.unit && self.stem.writes == self.tower.writes;
        if same && inputs >= self.tower.unit * self.tower.units() { self.tower } else { self.stem }
    }

    /// The stem's im2col patches for kernels that multiply matrices of bf16; None for many planes and for other kernels.
    pub(super) fn im2col(&self, obs: ObsShape) -> Option<Im2col> {
        if self.tower.matrices.is_some() && self.tower.unit == 2 { Im2col::new(obs) } else { None }
    }

    /// Words of a chunk's activations, which should stay in the L2 cache together with a layer's weights: 576 KiB of the usual
    /// MiB, so that 64 boards of 6x7 with 64 channels are three chunks, not four; twice that for kernels that only processors
    /// with 2 MiB have.
    pub(super) fn chunk_words(&self) -> usize {
        if self.tower.matrices.is_some() { 288 * 1024 } else { 144 * 1024 }
    }
}

/// The instruction sets for which this machine has kernels in this precision, fastest first.
pub fn available_isas(precision: Precision) -> Vec<Isa> {
    Isa::ALL.into_iter().filter(|isa| KernelSet::of(*isa, precision).is_some()).collect()
}

/// The instruction set that `choice` names, or this machine's fastest in this precision. In a precision without kernels here that is
/// [`Isa::Portable`], and packing a network for it says so.
///
/// # Errors
/// [`Error::Config`] if this machine has no kernels of the named instruction set in this precision.
pub fn choose_isa(choice: IsaChoice, precision: Precision) -> Result<Isa> {
    let available = available_isas(precision);
    match choice {
        IsaChoice::Native => Ok(available.first().copied().unwrap_or(Isa::Portable)),
        IsaChoice::Only(isa) if available.contains(&isa) => Ok(isa),
        IsaChoice::Only(isa) => {
            let names: String = available.iter().map(|isa| format!(", {isa}")).collect();
            let expected = format!("one of native{names}: what this machine has in {precision}");
            Err(Error::config("net.isa", isa, expected))
        }
    }
}

/// Refuses a number format in which layers of `model` have no kernels.
///
/// # Errors
/// [`Error::Config`].
pub fn check_precision(model: &Model, precision: Precision) -> Result<()> {
    match (precision, model.obs()) {
        (Precision::Int8, ActivationShape::Edges { .. }) => {
            let expected = "f32 or bf16, since products around triangles have no 8-bit kernels";
            Err(Error::config("net.precision", precision, expected))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_set_is_taken_as_named_or_refused() {
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let available = available_isas(precision);
            for isa in Isa::ALL {
                match choose_isa(IsaChoice::Only(isa), precision) {
                    Ok(chosen) => {
                        assert!(chosen == isa && available.contains(&isa), "{isa:?} {precision:?}")
                    }
                    Err(error) => {
                        assert!(!available.contains(&isa), "{isa:?} {precision:?}");
                        let begins = format!("config key net.isa: got {isa}, expected one of native");
                        assert!(error.to_string().starts_with(&begins), "{error}");
                    }
                }
            }
            let fastest = available.first().copied().unwrap_or(Isa::Portable);
            assert_eq!(choose_isa(IsaChoice::Native, precision).expect("any machine"), fastest);
        }
    }
}
