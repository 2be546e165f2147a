//! What takes the place of `vecaz serve` in a build without the feature `http`: it takes any arguments and refuses them.

use crate::error::{Error, Result};
use crate::registry::Registry;
use crate::stop::Stop;
use clap::Args;

/// Arguments that are not read.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Anything
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Refuses the command.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn execute(_: ServeArgs, _: &Registry, _: &Stop) -> Result<()> {
    Err(Error::without_feature("vecaz serve", "http"))
}
