//! GTP, the Go Text Protocol (version 2), for Go, Hex and Gomoku, with the analysis commands of Leela Zero and KataGo.

mod analysis; // what a search found, as clients of Leela Zero and KataGo read it
mod commands; // the commands
mod game; // points, colours and moves of the three games
mod opponent; // another program, played against
mod time; // clocks: absolute, Canadian, byo-yomi

pub use commands::Gtp;
pub use opponent::GtpOpponent;
