//! One position for any caller: a terminal, a protocol, a browser, another language.
//!
//! An [`Engine`] holds a network and the trees of one position. Moves played keep the tree, the opponent's and the dice's too;
//! [`Engine::analyse`] searches until a number of simulations, a time, or a stop from another thread, and always has a result.
//! **Pondering** is an analysis on the opponent's time: analyse the opponent's position until a stop, then play the reply; its subtree
//! stays. [`PositionBatch`] is the form for many positions at once, as matches need it. Knows no files; `Engine::open` is in
//! [`crate::source`].
//!
//! ```rust
//! use std::time::Duration;
//! use vecaz::registry::any_game;
//! use vecaz::config::Config;
//! use vecaz::engine::{Engine, Limit, Settings};
//! use vecaz::net::{IoShape, UniformNet};
//!
//! let game = any_game("connect_four", &Default::default())?;
//! let sizes = game.sizes();
//! let settings = Settings { threads: 2, ..Settings::new(&Config::default(), &sizes) };
//! let mut engine = Engine::new(game, &UniformNet(IoShape::of(&sizes)), settings)?;
//! let limit = Limit { time: Some(Duration::from_secs(1)), ..Limit::simulations(200) };
//! while !engine.playthrough().legal().is_empty() {
//!     let found = engine.analyse(&limit)?;
//!     let best = found.best();
//!     println!("{} {:+.2} after {} simulations: {:?}", best.name, found.own_value(), found.visits, best.line_names);
//!     engine.play(best.action)?;
//! }
//! # Ok::<(), vecaz::Error>(())
//! ```

mod analysis;
mod limit;
mod position;
mod position_batch;
mod settings;
mod shard;
mod trees;

pub use analysis::{Analysis, Move};
pub use limit::{EndCause, Limit};
pub use position::Engine;
pub use position_batch::{PositionBatch, determinised};
pub use settings::Settings;
