//! `vecaz serve`: a page in the browser to play, analyse and review games and to watch runs, and the HTTP interface under it.
//!
//! Input: requests. Output: JSON, streams of events, the files of the page. A **table** is a game with its seats; engines move at tables
//! and analyse them in threads of their own, each search by [`crate::engine`]. Nothing that a viewer may not know leaves the server: all
//! replies are made from [`crate::game::view`]. Knows no game and no network by name.

mod refusal; // a status and one sentence
mod action_list; // actions in a request
mod options; // a game's options between JSON and TOML
mod run_folder; // a run's metrics and stored games
mod catalogue; // games, networks, runs
mod seat; // who plays, how strong
mod table; // one game with its seats
mod tables; // all tables, and the events about them
mod engines; // the engines of the tables
mod clusters; // runs with workers on other machines
mod site; // everything that a server has
mod state; // a table as JSON
mod call; // a request, and replies
mod feed; // events of a thread that works
mod opponent; // engines that move
mod analysis; // engines that analyse
mod review; // a whole game analysed
mod new_table; // where tables come from
mod table_calls; // requests about one table
mod site_calls; // requests about the server
mod page; // the files of the page
mod guard; // who is answered
mod routes; // the paths
mod server; // all of it at an address

pub use clusters::{Cluster, ReadCluster};
pub use server::{Options, Server, Token};
