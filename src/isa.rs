//! Detection of the machine's vector instruction sets, and macros that compile plain Rust for each of them.

use std::sync::OnceLock;

/// An instruction set for which row loops and kernels are compiled; chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
    /// x86-64 with AVX2, FMA and BMI.
    Avx2,
    /// Any machine.
    Portable,
}

impl Isa {
    /// The best instruction set of this machine.
    pub fn detect() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().next().unwrap_or(Self::Portable))
    }

    /// All instruction sets of this machine, best first.
    pub fn available() -> impl Iterator<Item = Self> {
        [Self::Avx512, Self::Avx2, Self::Portable].into_iter().filter(|isa| isa.is_here())
    }

    /// The name, as shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn is_here(self) -> bool {
        match self {
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && Self::Avx2.is_here()
            }
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("lzcnt")
            }
            Self::Portable => true,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_here(self) -> bool {
        self == Self::Portable
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
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Defines the method `$name`, which calls `self.$inner()` compiled for the instruction set `self.isa`. `$inner` must be
/// `inline(always)`. It may have a type parameter: `$wide` for AVX2 and above, `$plain` for the portable version.
macro_rules! per_isa {
    ($vis:vis fn $name:ident / $avx512:ident / $avx2:ident = $inner:ident $(::<$wide:ty | $plain:ty>)? (&mut self $(, $arg:ident : $ty:ty)*) $(-> $out:ty)?) => {
        $vis fn $name(&mut self $(, $arg: $ty)*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            match self.isa {
                // SAFETY: `Isa::detect` found every feature that the called function is compiled for.
                $crate::isa::Isa::Avx512 => return unsafe { self.$avx512($($arg),*) },
                // SAFETY: as above.
                $crate::isa::Isa::Avx2 => return unsafe { self.$avx2($($arg),*) },
                $crate::isa::Isa::Portable => {}
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

/// Defines `name(isa, args..)`, which runs `body` compiled for that instruction set. The body is plain Rust that the compiler
/// vectorises; the result is the same to the bit on all instruction sets.
macro_rules! for_each_isa {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        pub fn $name(isa: $crate::isa::Isa, $($arg: $ty),*) {
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
                $crate::isa::Isa::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::isa::Isa::Avx2 => unsafe { avx2($($arg),*) },
                _ => body($($arg),*),
            }
        }
    };
}
pub(crate) use for_each_isa;
