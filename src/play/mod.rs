//! The rules of self-play on one game slot: what a configuration asks for, the game in progress with its samples, the choice of an
//! action, and the record of a finished game. A search's result comes in as a summary of the root; positions and samples go out.
//! Knows no network, no backend and no training.

pub mod plan; // configuration -> how games are played
pub mod act; // root summary -> action
mod decided_ply; // one ply: a search's result and the action chosen from it
mod sample; // one position to learn from
mod finished_game; // one finished game with its samples
pub mod slot; // the game in progress
mod record; // what of a game does not follow from its key and the rules

pub use decided_ply::DecidedPly;
pub use finished_game::FinishedGame;
pub use plan::{PlayPlan, SampleKind};
pub use record::GameRecord;
pub use sample::Sample;
pub(crate) use sample::{is_policy, is_value};
pub use slot::{GameSlot, Proof, SlotStart, new_slots};
