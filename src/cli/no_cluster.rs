//! What takes the place of the commands of many machines in a build without the feature `cluster`: they take any arguments and
//! refuse them.

use crate::error::{Error, Result};
use crate::registry::Registry;
use clap::Args;

/// Arguments that are not read.
#[derive(Clone, Debug, Args)]
pub struct IgnoredArgs {
    /// Anything
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// `vecaz work`.
pub mod work {
    use super::*;
    use crate::report::progress::Verbosity;
    use crate::stop::Stop;

    /// Arguments that are not read.
    pub type WorkArgs = IgnoredArgs;

    /// Refuses the command.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn execute(_: WorkArgs, _: &Registry, _: Verbosity, _: &Stop) -> Result<()> {
        Err(Error::without_feature("vecaz work", "cluster"))
    }
}

/// `vecaz top`.
pub mod top {
    use super::*;

    /// Arguments that are not read.
    pub type TopArgs = IgnoredArgs;

    /// Refuses the command.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn execute(_: TopArgs) -> Result<()> {
        Err(Error::without_feature("vecaz top", "cluster"))
    }
}

/// `vecaz run --cluster`.
pub mod learner {
    use super::*;
    use crate::run::factory::ComponentFactory;
    use std::path::Path;

    /// Refuses the flag.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn learner_factory(
        _: &Registry,
        url: &str,
        _: u64,
        _: Option<&Path>,
        _: Option<&Path>,
    ) -> Result<Box<dyn ComponentFactory>> {
        Err(Error::flag_without_feature("--cluster", url, "cluster"))
    }
}
