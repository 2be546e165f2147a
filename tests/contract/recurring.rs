//! A game in which positions recur more often than not: it keeps the laws of history, and each of its defects breaks one of them.

use crate::as_inside::assert_broken;
use bytemuck::{Pod, Zeroable};
use vecaz::Result;
use vecaz::config::keys::section;
use vecaz::contract;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, View, Viewer};
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, parse_options};

/// What is wrong with a [`Circle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// Nothing.
    None,
    /// The key has the player to move, and not the square.
    KeyWithoutSquare,
    /// The trait's key, which is 0, in a game whose look is a text.
    NoKey,
    /// Only positions of the game as played count, not those of a search's path.
    PathIsIgnored,
    /// Where there is a path, its positions alone count, and not those of the game as played.
    PathReplacesPlayed,
}

/// Squares of the circle.
const SQUARES: u8 = 4;
/// Plies after which some position has come up for the third time: each player is to move on two squares only.
const MAX_PLIES: usize = 2 * SQUARES as usize;

section! {
    /// The game has no settings.
    Settings {}
}

/// Two players in turn move one token to a neighbouring square of a circle. Who makes a position for the third time loses. The constant is the
/// number of a defect.
#[derive(Clone)]
struct Circle<const DEFECT: usize>;

/// A position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct State {
    square: u8,
    to_play: u8,
    /// Earlier times that the position has come up.
    times: u8,
}

impl<const DEFECT: usize> Circle<DEFECT> {
    fn has(&self, defect: Defect) -> bool {
        DEFECT == defect as usize
    }
}

impl<const DEFECT: usize> Game for Circle<DEFECT> {
    type State = State;
    const NAME: &'static str = "circle";

    fn from_options(options: &toml::Table) -> Result<Self> {
        parse_options::<Settings>(Self::NAME, options).map(|_| Self)
    }

    fn options(&self) -> toml::Table {
        toml::Table::new()
    }

    fn aim(&self, player: u8) -> String {
        format!("player {player} does not make a position for the third time")
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 2,
            max_legal: 2,
            max_plies: MAX_PLIES,
            obs: ObsShape { channels: usize::from(SQUARES) + 1, height: 1, width: 1 },
            uses_history: true,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::zeroed()
    }

    fn is_valid(&self, state: &State) -> bool {
        state.square < SQUARES && state.to_play < 2
    }

    fn turn(&self, state: &State) -> Turn {
        if state.times >= 2 { Turn::Over } else { Turn::Player(state.to_play) }
    }

    fn legal(&self, _: &State, _: History<'_>, out: &mut [u16]) -> usize {
        out[..2].copy_from_slice(&[0, 1]);
        2
    }

    fn step(&self, state: &mut State, action: u16, history: History<'_>) {
        state.square = (state.square + [1, SQUARES - 1][usize::from(action)]) % SQUARES;
        state.to_play = 1 - state.to_play;
        let history = match history.path {
            _ if self.has(Defect::PathIsIgnored) => History { path: &[], ..history },
            [_, ..] if self.has(Defect::PathReplacesPlayed) => History { played: &[], ..history },
            _ => history,
        };
        let key = self.history_key(state);
        state.times = history.latest_first().filter(|&earlier| earlier == key).count() as u8;
    }

    fn observe(&self, state: &State, _: u8, out: &mut [f32]) {
        out.fill(0.0);
        out[usize::from(state.square)] = 1.0;
        out[usize::from(SQUARES)] = f32::from(state.times);
    }

    fn returns(&self, state: &State, out: &mut [f32]) {
        out.fill(-1.0);
        out[usize::from(state.to_play)] = 1.0;
    }

    fn history_key(&self, state: &State) -> u64 {
        let player = u64::from(state.to_play);
        match self.has(Defect::KeyWithoutSquare) {
            true => player,
            false if self.has(Defect::NoKey) => 0,
            false => 2 * u64::from(state.square) + player,
        }
    }

    fn view(&self, state: &State, _: Viewer) -> View {
        if self.has(Defect::NoKey) {
            return View::text(format!("{state:?}"));
        }
        let pieces = Piece::pair([Shape::Disc; 2], ["token", "none"]);
        let token = |_: usize, column: usize| Piece::of(column == usize::from(state.square), false);
        let sides = [1, usize::from(SQUARES)];
        let grid = Grid::labelled(GridStyle::Squares, sides, |_| false, pieces, token);
        View::new(Board::Grid(grid), &Colour::ALL)
    }

    fn action_name(&self, _: &State, action: u16) -> String {
        ["right", "left"][usize::from(action)].into()
    }
}

#[test]
fn a_game_whose_positions_recur_keeps_the_laws() {
    contract::check::<Circle<{ Defect::None as usize }>>().unwrap();
}

#[test]
fn keys_that_do_not_tell_positions_apart_and_paths_that_do_not_count_are_found() {
    for (found, law, part) in [
        (
            contract::check::<Circle<{ Defect::KeyWithoutSquare as usize }>>(),
            "history_keys_follow_the_position",
            "positions with different boards have one history_key, ",
        ),
        (
            contract::check::<Circle<{ Defect::NoKey as usize }>>(),
            "history_keys_follow_the_position",
            "history_key is the same for all ",
        ),
        (
            contract::check::<Circle<{ Defect::PathIsIgnored as usize }>>(),
            "search_paths_are_history",
            "keys in `played` and the others in `path`",
        ),
        (
            contract::check::<Circle<{ Defect::PathReplacesPlayed as usize }>>(),
            "search_paths_are_history",
            "keys in `played` and the others in `path`",
        ),
    ] {
        assert_broken(found, law, part);
    }
}
