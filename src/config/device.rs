//! Names of devices, as typed.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where something runs: `cpu`, or `cuda:N`, the NVIDIA GPU of that number; `cuda` is number 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceName {
    /// The processor and its threads.
    #[default]
    Cpu,
    /// A GPU, by the driver's number.
    Cuda(u32),
}

impl DeviceName {
    /// Refuses a device that this build of the program knows nothing of.
    pub(super) fn check(self, key: &str) -> Result<()> {
        if self == Self::Cpu || cfg!(feature = "cuda") {
            return Ok(());
        }
        let expected = "cpu; this program was built without CUDA, \
                        `cargo build --release --features cuda` makes one that has it (see the README, \"On a GPU\")";
        Err(Error::config(key, self, expected))
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |n: &str| n.parse().ok().filter(|_| n.bytes().all(|b| b.is_ascii_digit()));
        match text {
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            _ => text.strip_prefix("cuda:").and_then(number).map(Self::Cuda),
        }
        .ok_or_else(|| format!("{text} is no device, expected cpu, cuda, or cuda:N"))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(n) => write!(f, "cuda:{n}"),
        }
    }
}

impl TryFrom<String> for DeviceName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed() {
        for (text, name, printed) in [
            ("cpu", DeviceName::Cpu, "cpu"),
            ("cuda", DeviceName::Cuda(0), "cuda:0"),
            ("cuda:0", DeviceName::Cuda(0), "cuda:0"),
            ("cuda:13", DeviceName::Cuda(13), "cuda:13"),
        ] {
            assert_eq!(text.parse(), Ok(name));
            assert_eq!(name.to_string(), printed);
        }
    }

    #[test]
    fn what_is_no_device_is_refused() {
        for text in ["", "gpu", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:+1", "cuda:4294967296", "cpu:0"] {
            let expected = format!("{text} is no device, expected cpu, cuda, or cuda:N");
            assert_eq!(text.parse::<DeviceName>(), Err(expected));
        }
    }
}
