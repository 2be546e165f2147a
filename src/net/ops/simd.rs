//! The instruction sets, and vectors of 32-bit floats on each.

use std::sync::OnceLock;

/// Instruction set of the kernels, found when the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// Any machine.
    Portable,
}

impl Isa {
    /// The best one this machine has.
    pub fn detect() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().next().unwrap_or(Self::Portable))
    }

    /// All that this machine has, best first.
    pub fn available() -> impl Iterator<Item = Self> {
        [Self::Avx512, Self::Avx2, Self::Portable].into_iter().filter(|isa| isa.is_here())
    }

    #[cfg(target_arch = "x86_64")]
    fn is_here(self) -> bool {
        match self {
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("fma")
            }
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Self::Portable => true,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_here(self) -> bool {
        self == Self::Portable
    }
}

/// Defines `name(isa, args..)`, which runs `body` compiled for that instruction set. The body is plain Rust: the compiler
/// vectorises it, the bits are the same on all.
macro_rules! for_each_isa {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        pub fn $name(isa: $crate::net::ops::simd::Isa, $($arg: $ty),*) {
            #[inline(always)]
            fn body($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            fn avx512($($arg: $ty),*) {
                body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) {
                body($($arg),*)
            }
            match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Isa` other than `Portable` comes from `Isa::available`, so the machine has it.
                $crate::net::ops::simd::Isa::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::net::ops::simd::Isa::Avx2 => unsafe { avx2($($arg),*) },
                _ => body($($arg),*),
            }
        }
    };
}
pub(super) use for_each_isa;

/// A vector register of floats.
///
/// # Safety
/// Methods may be called only inside a function compiled for the instruction set; pointers must be valid for
/// [`Vector::LANES`] floats.
pub trait Vector: Copy {
    /// Floats in a vector.
    const LANES: usize;
    /// All zero.
    unsafe fn zero() -> Self;
    /// The floats at `p`, unaligned.
    unsafe fn load(p: *const f32) -> Self;
    /// `x` in every lane.
    unsafe fn splat(x: f32) -> Self;
    /// self + a * b.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
    /// self + a.
    unsafe fn plus(self, a: Self) -> Self;
    /// Writes the floats to `p`, unaligned.
    unsafe fn store(self, p: *mut f32);
}

/// Four floats without any instruction set: products are rounded before they are added.
#[derive(Clone, Copy)]
pub struct Four([f32; 4]);

impl Vector for Four {
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; 4])
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller's pointer is valid for four floats.
        Self(unsafe { p.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Self([x; 4])
    }
    #[inline(always)]
    unsafe fn plus_product(mut self, a: Self, b: Self) -> Self {
        for i in 0..4 {
            self.0[i] += a.0[i] * b.0[i];
        }
        self
    }
    #[inline(always)]
    unsafe fn plus(mut self, a: Self) -> Self {
        for i in 0..4 {
            self.0[i] += a.0[i];
        }
        self
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller's pointer is valid for four floats.
        unsafe { p.cast::<[f32; 4]>().write_unaligned(self.0) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($register:ty, $lanes:literal, $zero:ident, $load:ident, $splat:ident, $fma:ident, $add:ident, $store:ident) => {
            impl Vector for $register {
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: the caller runs code compiled for this register.
                    unsafe { $zero() }
                }
                #[inline(always)]
                unsafe fn load(p: *const f32) -> Self {
                    // SAFETY: as above, and the caller's pointer is valid.
                    unsafe { $load(p) }
                }
                #[inline(always)]
                unsafe fn splat(x: f32) -> Self {
                    // SAFETY: the caller runs code compiled for this register.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                    // SAFETY: the caller runs code compiled for this register.
                    unsafe { $fma(a, b, self) }
                }
                #[inline(always)]
                unsafe fn plus(self, a: Self) -> Self {
                    // SAFETY: the caller runs code compiled for this register.
                    unsafe { $add(self, a) }
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut f32) {
                    // SAFETY: as above, and the caller's pointer is valid.
                    unsafe { $store(p, self) }
                }
            }
        };
    }

    vector!(
        __m512,
        16,
        _mm512_setzero_ps,
        _mm512_loadu_ps,
        _mm512_set1_ps,
        _mm512_fmadd_ps,
        _mm512_add_ps,
        _mm512_storeu_ps
    );
    vector!(
        __m256,
        8,
        _mm256_setzero_ps,
        _mm256_loadu_ps,
        _mm256_set1_ps,
        _mm256_fmadd_ps,
        _mm256_add_ps,
        _mm256_storeu_ps
    );
}
