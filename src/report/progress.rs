//! What a run says in the terminal while it goes on.

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Errors and the figures asked for.
    Quiet,
    /// The table, and bars where a person is watching.
    #[default]
    Normal,
    /// Diagnostics as well.
    Verbose,
}
