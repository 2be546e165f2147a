//! Which vector instructions the machine has, found out once.

/// The instruction sets that the row loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512 F, BW, DQ, VL.
    Avx512,
    /// AVX2 with FMA and BMI.
    Avx2,
    /// Whatever the build target guarantees.
    Portable,
}

impl Isa {
    /// The best that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("lzcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx2 && avx512 {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}

/// Defines the method `$name` as `self.$inner()` compiled for each instruction set and chosen by `self.isa`.
/// `$inner` must be `inline(always)`.
macro_rules! per_isa {
    ($vis:vis fn $name:ident / $avx512:ident / $avx2:ident = $inner:ident (&mut self $(, $arg:ident : $ty:ty)*) $(-> $out:ty)?) => {
        $vis fn $name(&mut self $(, $arg: $ty)*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            match self.isa {
                // SAFETY: `Isa::detect` found every feature that the called function is compiled for.
                $crate::backend::isa::Isa::Avx512 => return unsafe { self.$avx512($($arg),*) },
                // SAFETY: as above.
                $crate::backend::isa::Isa::Avx2 => return unsafe { self.$avx2($($arg),*) },
                $crate::backend::isa::Isa::Portable => {}
            }
            self.$inner($($arg),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn $avx512(&mut self $(, $arg: $ty)*) $(-> $out)? {
            self.$inner($($arg),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn $avx2(&mut self $(, $arg: $ty)*) $(-> $out)? {
            self.$inner($($arg),*)
        }
    };
}
pub(crate) use per_isa;
