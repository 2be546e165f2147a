//! Which instructions this machine has, and the kernels that use them.

use super::pack::KernelSet;
use super::tile::Kernels;
use super::{bf16, portable};
use crate::config::{Instructions, Precision};
use crate::error::{Error, Result};
use crate::isa::Isa;

/// The instructions a [`super::FastNet`] may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuKernel {
    /// x86-64 AMX beside AVX-512: bf16 and int8.
    Amx,
    /// x86-64 AVX-512.
    Avx512,
    /// x86-64 AVX2 with FMA.
    Avx2,
    /// Plain Rust.
    Portable,
}

/// Paths as they are asked for.
const NAMED: [(Instructions, CpuKernel); 4] = [
    (Instructions::Amx, CpuKernel::Amx),
    (Instructions::Avx512, CpuKernel::Avx512),
    (Instructions::Avx2, CpuKernel::Avx2),
    (Instructions::Portable, CpuKernel::Portable),
];

impl CpuKernel {
    /// The paths this machine has in this precision, fastest first.
    pub fn available(precision: Precision) -> Vec<CpuKernel> {
        let all = [CpuKernel::Amx, CpuKernel::Avx512, CpuKernel::Avx2, CpuKernel::Portable];
        all.into_iter().filter(|path| path.has(precision)).collect()
    }

    /// The path that `isa` names, or this machine's fastest in this precision; where it has none, one that says so.
    ///
    /// # Errors
    /// [`Error::Config`] where this machine lacks the instructions that are named, or they do not have the precision.
    pub fn choose(isa: Instructions, precision: Precision) -> Result<CpuKernel> {
        if isa == Instructions::Native {
            return Ok(Self::available(precision).first().copied().unwrap_or(CpuKernel::Portable));
        }
        let here = || NAMED.into_iter().filter(|(_, path)| path.has(precision));
        let named = here().find(|(name, _)| *name == isa).map(|(_, path)| path);
        named.ok_or_else(|| {
            let names: String = here().map(|(name, _)| format!(", {name}")).collect();
            let expected = format!("one of native{names}: what this machine has in {precision}");
            Error::config("net.isa", isa, expected)
        })
    }

    /// True where this machine and build have the path in this precision.
    pub fn has(self, precision: Precision) -> bool {
        self.kernel_set(precision).is_some()
    }

    pub(super) fn kernel_set(self, precision: Precision) -> Option<KernelSet> {
        match (self, precision) {
            (CpuKernel::Portable, Precision::F32) => {
                Some(self.floats(&portable::PORTABLE, &portable::PORTABLE))
            }
            (CpuKernel::Portable, Precision::Bf16) => Some(self.floats(&bf16::PORTABLE, &portable::PORTABLE)),
            #[cfg(target_arch = "x86_64")]
            (path, precision) => path.x86_kit(precision),
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn x86_kit(self, precision: Precision) -> Option<KernelSet> {
        use super::{amx, x86, x86_bf16, x86_int8};
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let avx512 = is_x86_feature_detected!("avx512f");
        let bf16 = avx512 && is_x86_feature_detected!("avx512bf16");
        let vnni = avx512 && is_x86_feature_detected!("avx512vnni");
        let kernel_set = |stem, tower| KernelSet { stem, tower, full: &x86::AVX512, isa: self.isa() };
        match (self, precision) {
            (CpuKernel::Avx512, Precision::F32) => avx512.then_some(self.floats(&x86::AVX512, &x86::AVX512)),
            (CpuKernel::Avx512, Precision::Bf16) => {
                bf16.then_some(self.floats(&x86_bf16::AVX512, &x86::AVX512))
            }
            (CpuKernel::Avx512, Precision::Int8) => {
                vnni.then(|| kernel_set(&x86_int8::STEM, &x86_int8::TOWER))
            }
            (CpuKernel::Amx, Precision::Bf16) => {
                (bf16 && amx::is_here()).then(|| kernel_set(&x86_bf16::AVX512, &amx::BF16))
            }
            (CpuKernel::Amx, Precision::Int8) => {
                (vnni && amx::is_here()).then(|| kernel_set(&x86_int8::STEM, &amx::INT8))
            }
            (CpuKernel::Avx2, Precision::F32) => avx2.then_some(self.floats(&x86::AVX2, &x86::AVX2)),
            (CpuKernel::Avx2, Precision::Bf16) => avx2.then_some(self.floats(&x86_bf16::AVX2, &x86::AVX2)),
            _ => None,
        }
    }

    fn floats(self, tower: &'static Kernels, full: &'static Kernels) -> KernelSet {
        KernelSet { stem: tower, tower, full, isa: self.isa() }
    }

    /// The instruction set of what is plain Rust beside the kernels.
    fn isa(self) -> Isa {
        let wanted = match self {
            CpuKernel::Amx | CpuKernel::Avx512 => Isa::Avx512,
            CpuKernel::Avx2 => Isa::Avx2,
            CpuKernel::Portable => Isa::Portable,
        };
        Isa::available().find(|isa| *isa == wanted).unwrap_or(Isa::Portable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_taken_or_refused() {
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let available = CpuKernel::available(precision);
            for (isa, path) in NAMED {
                match CpuKernel::choose(isa, precision) {
                    Ok(chosen) => {
                        assert!(chosen == path && available.contains(&path), "{isa:?} {precision:?}")
                    }
                    Err(error) => {
                        assert!(!available.contains(&path), "{isa:?} {precision:?}");
                        let begins = format!("config key net.isa: got {isa}, expected one of native");
                        assert!(error.to_string().starts_with(&begins), "{error}");
                    }
                }
            }
            let fastest = available.first().copied().unwrap_or(CpuKernel::Portable);
            assert_eq!(CpuKernel::choose(Instructions::Native, precision).expect("any machine"), fastest);
        }
    }
}
