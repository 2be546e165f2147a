//! Names of devices and lists of them.

use super::keys::Value;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A device: `cpu`; `cuda:N`, the NVIDIA GPU with number N, where `cuda` is `cuda:0`; or `metal`, a Mac's GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceName {
    /// The CPU and its threads.
    #[default]
    Cpu,
    /// The GPU with this number in the driver.
    Cuda(u32),
    /// The GPU of a Mac, on which candle executes networks.
    Metal,
}

impl DeviceName {
    /// Whether this build can execute networks on a Mac's GPU.
    const HAS_METAL: bool = cfg!(all(feature = "candle-metal", target_os = "macos"));
    /// The error of a build that cannot.
    pub(crate) const WITHOUT_METAL: &str = "this program was built without the feature candle-metal, which macOS has; \
         `cargo build --release --features candle-metal` builds one with it there";

    /// Refuses a GPU that this build has no code for.
    pub(super) fn check(self, key: &str) -> Result<()> {
        let why = match self {
            Self::Cuda(_) if cfg!(not(feature = "cuda")) => Error::feature_is_off("cuda"),
            Self::Metal if !Self::HAS_METAL => Self::WITHOUT_METAL.into(),
            Self::Cpu | Self::Cuda(_) | Self::Metal => return Ok(()),
        };
        Err(Error::config(key, self, format!("cpu: {why}")))
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |n: &str| n.parse().ok().filter(|_| n.bytes().all(|b| b.is_ascii_digit()));
        match text {
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            "metal" => Some(Self::Metal),
            _ => text.strip_prefix("cuda:").and_then(number).map(Self::Cuda),
        }
        .ok_or_else(|| format!("{text} is not a device, expected cpu, cuda, cuda:N, or metal"))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(n) => write!(f, "cuda:{n}"),
            Self::Metal => f.write_str("metal"),
        }
    }
}

/// The devices of one task: one of any kind, or several GPUs of one machine, `cuda:0,cuda:1`.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Devices {
    /// The first `count` are in use; the rest are [`DeviceName::Cpu`].
    names: [DeviceName; Self::MAX],
    count: u8,
}

impl Devices {
    /// Maximum number of devices of a list.
    pub const MAX: usize = 16;

    /// The devices, in the order given.
    pub fn all(&self) -> &[DeviceName] {
        &self.names[..usize::from(self.count)]
    }

    /// The first device, which runs what is not split over devices.
    pub fn first(&self) -> DeviceName {
        self.names[0]
    }

    /// True for the CPU.
    pub fn is_cpu(&self) -> bool {
        self.first() == DeviceName::Cpu
    }

    /// Refuses GPUs that this build has no code for.
    pub(super) fn check(&self, key: &str) -> Result<()> {
        self.all().iter().try_for_each(|name| name.check(key))
    }
}

impl Default for Devices {
    fn default() -> Self {
        DeviceName::default().into()
    }
}

impl Value for Devices {
    fn any() -> String {
        "cpu, cuda, cuda:N, or several GPUs as cuda:0,cuda:1; metal for net.device only".into()
    }
}

impl From<DeviceName> for Devices {
    fn from(name: DeviceName) -> Self {
        let mut names = [DeviceName::Cpu; Self::MAX];
        names[0] = name;
        Self { names, count: 1 }
    }
}

impl FromStr for Devices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut list = Self { names: [DeviceName::Cpu; Self::MAX], count: 0 };
        for part in text.split(',') {
            if part.is_empty() && text.contains(',') {
                return Err(format!("{text} has an empty entry, expected GPUs as in cuda:0,cuda:1"));
            }
            let name: DeviceName = part.parse()?;
            if list.all().contains(&name) {
                return Err(format!("{text} names {name} twice"));
            }
            let Some(entry) = list.names.get_mut(usize::from(list.count)) else {
                return Err(format!("{text} names more than {} devices", Self::MAX));
            };
            *entry = name;
            list.count += 1;
        }
        if list.count > 1 && list.all().contains(&DeviceName::Cpu) {
            return Err(format!("{text} names the CPU and a GPU, expected cpu or GPUs only"));
        }
        if list.count > 1 && list.all().contains(&DeviceName::Metal) {
            return Err(format!("{text} names metal and another device, expected metal alone"));
        }
        Ok(list)
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.all().iter().enumerate() {
            write!(f, "{}{name}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Devices {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Devices> for String {
    fn from(devices: Devices) -> Self {
        devices.to_string()
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
            ("metal", DeviceName::Metal, "metal"),
        ] {
            assert_eq!(text.parse(), Ok(name));
            assert_eq!(name.to_string(), printed);
        }
    }

    #[test]
    fn invalid_device_names_are_refused() {
        for text in [
            "",
            "gpu",
            "CUDA",
            "cuda:",
            "cuda:x",
            "cuda:-1",
            "cuda:+1",
            "cuda:4294967296",
            "cpu:0",
            "metal:0",
        ] {
            let expected = format!("{text} is not a device, expected cpu, cuda, cuda:N, or metal");
            assert_eq!(text.parse::<DeviceName>(), Err(expected));
        }
    }

    #[test]
    fn lists_are_read_and_printed() {
        let list = |text: &str| text.parse::<Devices>();
        for (text, printed) in [
            ("cpu", "cpu"),
            ("cuda", "cuda:0"),
            ("cuda:1,cuda:0", "cuda:1,cuda:0"),
            ("cuda,cuda:3", "cuda:0,cuda:3"),
        ] {
            let devices = list(text).expect(text);
            assert_eq!(devices.to_string(), printed);
            assert_eq!(list(printed), Ok(devices));
        }
        let devices = list("cuda:2,cuda:5").expect("two");
        assert_eq!(devices.all(), [DeviceName::Cuda(2), DeviceName::Cuda(5)]);
        assert_eq!((devices.first(), devices.is_cpu()), (DeviceName::Cuda(2), false));
        assert_eq!(Devices::default(), DeviceName::Cpu.into());
    }

    #[test]
    fn invalid_device_lists_are_refused() {
        let many: Vec<String> = (0..=Devices::MAX).map(|n| format!("cuda:{n}")).collect();
        for (text, expected) in [
            ("", " is not a device, expected cpu, cuda, cuda:N, or metal"),
            ("cuda:0,", "cuda:0, has an empty entry, expected GPUs as in cuda:0,cuda:1"),
            ("cuda:0, cuda:1", " cuda:1 is not a device, expected cpu, cuda, cuda:N, or metal"),
            ("cuda,cuda:0", "cuda,cuda:0 names cuda:0 twice"),
            ("cpu,cpu", "cpu,cpu names cpu twice"),
            ("cpu,cuda:0", "cpu,cuda:0 names the CPU and a GPU, expected cpu or GPUs only"),
            ("cuda,metal", "cuda,metal names metal and another device, expected metal alone"),
            (&many.join(","), &format!("{} names more than 16 devices", many.join(","))),
        ] {
            assert_eq!(text.parse::<Devices>(), Err(expected.to_string()));
        }
    }
}
