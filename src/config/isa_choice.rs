//! `net.isa`: an instruction set by its name, or the machine's fastest.

use super::keys::{Value, one_of};
use crate::isa::Isa;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// The instruction set of the network's forward on the CPU; of training in bf16, whether it is AMX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsaChoice {
    /// The fastest that the machine supports for the number format: `native`.
    Native,
    /// This one: `amx` for bf16 and int8; `avx512`, for bf16 with AVX512-BF16, for int8 with AVX512-VNNI; `bfmmla` for bf16; `neon`,
    /// for int8 with DotProd; `avx2` and `portable`.
    Only(Isa),
}

impl IsaChoice {
    const NATIVE: &str = "native";
    const NAMES: [&str; 7] = [Self::NATIVE, "amx", "avx512", "avx2", "bfmmla", "neon", "portable"];

    /// The instruction set that trains in bf16: AMX where the machine has it, unless another one is named.
    pub fn of_bf16_training(self) -> Isa {
        match self {
            Self::Native | Self::Only(Isa::Amx) if Isa::Amx.is_available() => Isa::Amx,
            Self::Native | Self::Only(_) => Isa::detect(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Native => Self::NATIVE,
            Self::Only(isa) => isa.name(),
        }
    }
}

impl Value for IsaChoice {
    fn any() -> String {
        one_of(&Self::NAMES)
    }
}

impl fmt::Display for IsaChoice {
    /// The name as typed in a configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for IsaChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for IsaChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == Self::NATIVE {
            return Ok(Self::Native);
        }
        let isa = Isa::ALL.into_iter().find(|isa| isa.name() == name);
        isa.map(Self::Only).ok_or_else(|| de::Error::unknown_variant(&name, &Self::NAMES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_written_and_others_are_refused_with_all_names() {
        let names = std::iter::once(IsaChoice::Native).chain(Isa::ALL.map(IsaChoice::Only));
        assert!(names.clone().map(IsaChoice::name).eq(IsaChoice::NAMES));
        for choice in names {
            let text = serde_json::to_string(&choice).expect("written");
            assert_eq!(text, format!("\"{choice}\""));
            assert_eq!(serde_json::from_str::<IsaChoice>(&text).expect("read"), choice);
        }
        let error = serde_json::from_str::<IsaChoice>("\"sse\"").expect_err("no such name").to_string();
        assert!(IsaChoice::NAMES.iter().all(|name| error.contains(name)) && error.contains("sse"), "{error}");
    }
}
