//! Texts that come with a game, and how those of built-in games are embedded.

/// A text with its name: a configuration, or a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedText {
    /// The name by which users or other sources refer to it.
    pub name: &'static str,
    /// The whole text.
    pub text: &'static str,
}

/// The CUDA source of a game's rules: a header that defines the functions of `kernels/games/defaults.cuh` and the type `State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaSource {
    /// The name by which kernels include the header.
    pub header: &'static str,
    /// The header and what it includes beside the embedded files of `kernels/`; empty for a built-in game, whose files are embedded.
    pub files: &'static [NamedText],
}

/// Built-in configurations by the names of their files under `configs/`.
macro_rules! configs {
    ($($name:literal),+) => {
        &[$($crate::game::NamedText {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/configs/", $name, ".toml")),
        }),+]
    };
}
pub(crate) use configs;

/// The CUDA source of a built-in game, which is embedded with all files of `kernels/`.
macro_rules! embedded_cuda_source {
    ($name:literal) => {
        Some($crate::game::CudaSource { header: concat!("games/", $name, ".cuh"), files: &[] })
    };
}
pub(crate) use embedded_cuda_source;
