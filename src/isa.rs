//! The instruction sets that this program has code for, which of them the machine has, and macros that compile plain Rust for each.
//!
//! # The kernel contract
//! What every `unsafe` function of kernels and SIMD code demands, and every `unsafe` block in one cites as "the kernel contract". A
//! function that demands more says so beside it.
//!
//! 1. **Instructions.** The machine has those of the instruction set and number format that the function is for, and the caller is
//!    compiled for them or is called where [`Isa::is_available`] said so. For AMX, this thread has configured its tiles.
//! 2. **Arrays.** Every pointer is valid for all rows, vectors, taps and channels that the arguments name; rows are padded to whole
//!    vectors. The lengths are checked where a network is packed or a product is called, not in kernels.
//! 3. **Aliasing.** What is written overlaps nothing that is read through another argument, and nothing else refers to it.

use std::fmt;
use std::sync::OnceLock;

/// An instruction set. Row loops, the network's forward and training have code for each and choose at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AMX tiles in addition to [`Isa::Avx512`]: matrix products in bf16 and int8. All other code is that of AVX-512.
    Amx,
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
    /// x86-64 with AVX2, FMA and BMI.
    Avx2,
    /// `bfmmla` of 64-bit ARM in addition to [`Isa::Neon`]: products of matrices in bf16. All other code is that of NEON.
    Bfmmla,
    /// 64-bit ARM, all of whose machines have NEON.
    Neon,
    /// Plain Rust on any machine.
    Portable,
}

impl Isa {
    /// All instruction sets, best first.
    pub const ALL: [Self; 6] =
        [Self::Amx, Self::Avx512, Self::Avx2, Self::Bfmmla, Self::Neon, Self::Portable];

    /// The best instruction set of this machine for plain Rust, for which AMX and `bfmmla` have no instructions.
    pub fn detect() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        let best = || [Self::Avx512, Self::Avx2, Self::Neon].into_iter().find(|isa| isa.is_available());
        *BEST.get_or_init(|| best().unwrap_or(Self::Portable))
    }

    /// All instruction sets of this machine, best first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// Whether its products of bf16 round otherwise than those of all other instruction sets, which have the same bits.
    pub fn has_own_bf16(self) -> bool {
        matches!(self, Self::Amx | Self::Bfmmla)
    }

    /// Whether training is faster in bf16 than in f32 with it on this machine: by AMX's tiles, and by `vdpbf16ps` on AMD's processors. On Intel's
    /// that instruction is slower than multiply-adds of f32.
    #[cfg(target_arch = "x86_64")]
    pub fn trains_fast_in_bf16(self) -> bool {
        match self {
            Self::Amx => self.is_available(),
            Self::Avx512 => self.is_available() && Avx512Extension::Bf16.is_available() && is_amd(),
            Self::Avx2 | Self::Bfmmla | Self::Neon | Self::Portable => false,
        }
    }

    /// Whether training is faster in bf16 than in f32 with it on this machine.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn trains_fast_in_bf16(self) -> bool {
        false
    }

    /// The name, as shown to users and typed in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amx => "amx",
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Bfmmla => "bfmmla",
            Self::Neon => "neon",
            Self::Portable => "portable",
        }
    }

    /// Whether this machine has it.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        match self {
            Self::Amx => Self::Avx512.is_available() && amx::is_available(),
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && Self::Avx2.is_available()
            }
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("lzcnt")
            }
            Self::Bfmmla | Self::Neon => false,
            Self::Portable => true,
        }
    }

    /// Whether this machine has it.
    #[cfg(target_arch = "aarch64")]
    pub fn is_available(self) -> bool {
        match self {
            Self::Bfmmla => NeonExtension::Bf16.is_available(),
            Self::Neon | Self::Portable => true,
            Self::Amx | Self::Avx512 | Self::Avx2 => false,
        }
    }

    /// Whether this machine has it.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn is_available(self) -> bool {
        self == Self::Portable
    }
}

/// Instructions that some machines with [`Isa::Avx512`] have in addition.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Avx512Extension {
    /// Products of bfloat16 pairs, `vdpbf16ps`.
    Bf16,
    /// Products of bytes, `vpdpbusd`.
    Vnni,
}

#[cfg(target_arch = "x86_64")]
impl Avx512Extension {
    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Bf16 => is_x86_feature_detected!("avx512bf16"),
            Self::Vnni => is_x86_feature_detected!("avx512vnni"),
        }
    }
}

/// Instructions that some machines with [`Isa::Neon`] have in addition.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeonExtension {
    /// Products of bfloat16: widening ones, `bfmlalb` and `bfmlalt`, and those of matrices, `bfmmla`.
    Bf16,
    /// Products of signed bytes, `sdot`.
    DotProduct,
    /// Products of matrices of unsigned bytes with those of signed ones, `usmmla`.
    I8mm,
}

#[cfg(target_arch = "aarch64")]
impl NeonExtension {
    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        use std::arch::is_aarch64_feature_detected;
        match self {
            Self::Bf16 => is_aarch64_feature_detected!("bf16"),
            Self::DotProduct => is_aarch64_feature_detected!("dotprod"),
            Self::I8mm => is_aarch64_feature_detected!("i8mm"),
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether AMD made this machine's processor.
#[cfg(target_arch = "x86_64")]
fn is_amd() -> bool {
    let leaf = std::arch::x86_64::__cpuid(0);
    [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD"
}

/// Detection of AMX, which the standard library does not have yet.
#[cfg(target_arch = "x86_64")]
mod amx {
    use std::sync::OnceLock;

    /// True if the processor has AMX in bf16 and bytes and the operating system lets this process use it.
    pub(super) fn is_available() -> bool {
        static AVAILABLE: OnceLock<bool> = OnceLock::new();
        *AVAILABLE.get_or_init(|| has_instructions() && is_permitted())
    }

    /// Bits 22, 24 and 25 of EDX in leaf 7 are AMX-BF16, AMX-TILE and AMX-INT8.
    fn has_instructions() -> bool {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        const AMX: u32 = 1 << 22 | 1 << 24 | 1 << 25;
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & AMX == AMX
    }

    /// Requests the tiles' state from Linux, as every process must once (Documentation/arch/x86/xstate.rst).
    #[cfg(target_os = "linux")]
    fn is_permitted() -> bool {
        const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_ulong = 18;
        // SAFETY: the call takes two numbers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
    }

    #[cfg(not(target_os = "linux"))]
    fn is_permitted() -> bool {
        false
    }
}

/// Prefetches the cache line of `slice[index]`. `index` may be out of range.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    prefetch_at(slice.as_ptr().wrapping_add(index));
}

/// Prefetches the cache line at `p`, which may be any address.
#[inline(always)]
pub(crate) fn prefetch_at<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        use std::arch::asm;
        // SAFETY: as above.
        unsafe { asm!("prfm pldl1keep, [{}]", in(reg) p, options(readonly, nostack, preserves_flags)) };
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = p;
}

/// Defines the method `$name`, which calls `self.$inner()` compiled for the instruction set `self.isa`. `$inner` must be
/// `inline(always)`. It may have a type parameter: `$wide` for an instruction set with vectors, `$plain` for the portable version.
macro_rules! per_isa {
    ($vis:vis fn $name:ident / $avx512:ident / $avx2:ident = $inner:ident $(::<$wide:ty | $plain:ty>)? (&mut self $(, $arg:ident : $ty:ty)*) $(-> $out:ty)?) => {
        $vis fn $name(&mut self $(, $arg: $ty)*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            match self.isa {
                // SAFETY: `Isa::detect` found every feature that the called function is compiled for.
                $crate::isa::Isa::Amx | $crate::isa::Isa::Avx512 => return unsafe { self.$avx512($($arg),*) },
                // SAFETY: as above.
                $crate::isa::Isa::Avx2 => return unsafe { self.$avx2($($arg),*) },
                $crate::isa::Isa::Bfmmla | $crate::isa::Isa::Neon | $crate::isa::Isa::Portable => {}
            }
            #[cfg(target_arch = "aarch64")]
            if matches!(self.isa, $crate::isa::Isa::Bfmmla | $crate::isa::Isa::Neon) {
                return self.$inner$(::<$wide>)?($($arg),*);
            }
            self.$inner$(::<$plain>)?($($arg),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn $avx512(&mut self $(, $arg: $ty)*) $(-> $out)? {
            self.$inner$(::<$wide>)?($($arg),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn $avx2(&mut self $(, $arg: $ty)*) $(-> $out)? {
            self.$inner$(::<$wide>)?($($arg),*)
        }
    };
}
pub(crate) use per_isa;

/// Defines functions `name(isa, args..)`, each of which runs its `body` compiled for that instruction set. The body is plain Rust that the
/// compiler vectorises; the result is the same to the bit on all instruction sets.
macro_rules! for_each_isa {
    ($($(#[$meta:meta])* fn $name:ident $(<$number:ident: $bound:path>)? ($($arg:ident: $ty:ty),* $(,)?) $body:block)+) => {$(
        $(#[$meta])*
        pub(crate) fn $name $(<$number: $bound>)? (isa: $crate::isa::Isa, $($arg: $ty),*) {
            #[inline(always)]
            fn body $(<$number: $bound>)? ($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            fn avx512 $(<$number: $bound>)? ($($arg: $ty),*) {
                body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $(<$number: $bound>)? ($($arg: $ty),*) {
                body($($arg),*)
            }
            match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Isa` other than `Portable` comes from `Isa::available`, so the machine has it.
                $crate::isa::Isa::Amx | $crate::isa::Isa::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::isa::Isa::Avx2 => unsafe { avx2($($arg),*) },
                _ => body($($arg),*),
            }
        }
    )+};
}
pub(crate) use for_each_isa;
