//! The games that `vecaz new` writes.

#[path = "../../../src/cli/new/board.rs"]
pub mod board;
#[path = "../../../src/cli/new/cards.rs"]
pub mod cards;
#[path = "../../../src/cli/new/dice.rs"]
pub mod dice;
#[path = "../../../src/cli/new/solo.rs"]
pub mod solo;
