//! Vectors of 32-bit floats on each instruction set.

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
