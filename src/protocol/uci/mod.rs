//! UCI, the Universal Chess Interface.

mod fen; // FENs as other programs write them
mod go; // limits of a search
mod info; // what a search found
mod opponent; // another program, played against
mod session; // the commands

pub use opponent::UciOpponent;
pub use session::Uci;
