//! Nim, a game outside the registry: a minimal complete game by the steps of docs/games.md. It shows that the trait suffices, for search
//! too.

use crate::support::{plan, search};
use vecaz::config::SearchConfig;
use vecaz::config::keys::section;
use vecaz::game::view::{View, Viewer};
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};
use vecaz::isa::Isa;
use vecaz::net::{IoShape, UniformNet};
use vecaz::registry::erase;
use vecaz::search::root::Exploration;
use vecaz::searcher::SearchRequest;

section! {
    /// One heap; a player takes 1 to `max_take` stones; the player who takes the last one wins.
    Nim {
        /// Stones at the start.
        stones: u32 [1..=100] = 17,
        /// Maximum number of stones that a player may take.
        max_take: u32 [1..=9] = 3,
    }
}

/// A position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct State {
    stones: u32,
    to_play: u32,
}

impl State {
    /// Stones that are left.
    pub fn stones(&self) -> u32 {
        self.stones
    }
}

impl Game for Nim {
    type State = State;
    const NAME: &'static str = "nim";
    const VARIANTS: &'static [&'static str] = &["stones = 30\nmax_take = 5", "stones = 1"];

    options_by_section!();

    fn aim(&self, player: u8) -> String {
        format!("player {player} takes the last stone")
    }

    fn sizes(&self) -> Sizes {
        let max_take = self.max_take as usize;
        Sizes {
            num_actions: max_take,
            max_legal: max_take,
            obs: ObsShape { channels: 1, height: 1, width: 1 },
            max_plies: self.stones as usize,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { stones: self.stones, to_play: 0 }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.to_play < 2
    }

    fn turn(&self, state: &State) -> Turn {
        if state.stones == 0 { Turn::Over } else { Turn::Player(state.to_play as u8) }
    }

    fn legal(&self, state: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        let count = state.stones.min(self.max_take);
        out.iter_mut().zip(0..count).for_each(|(out, action)| *out = action as u16);
        count as usize
    }

    fn step(&self, state: &mut State, action: u16, _history: History<'_>) {
        *state = State { stones: state.stones - u32::from(action) - 1, to_play: 1 - state.to_play };
    }

    fn observe(&self, state: &State, _player: u8, out: &mut [f32]) {
        out[0] = state.stones as f32 / self.stones as f32;
    }

    fn returns(&self, state: &State, out: &mut [f32]) {
        // No stone is left for the player to move.
        out.fill(1.0);
        out[state.to_play as usize] = -1.0;
    }

    fn canonical(&self, state: &State) -> State {
        State { to_play: 0, ..*state }
    }

    fn view(&self, state: &State, _viewer: Viewer) -> View {
        View::text(format!("{} stones", state.stones))
    }

    fn action_name(&self, _state: &State, action: u16) -> String {
        format!("take {}", action + 1)
    }
}

/// 17 stones, 1 to 3 at a time: taking 1 leaves a multiple of 4, which is lost.
#[test]
fn search_finds_the_winning_move_of_a_game_outside_the_registry() {
    let game = Nim::default();
    let sizes = game.sizes();
    let config = SearchConfig { simulations: 400, ..SearchConfig::default() };
    let position =
        SearchRequest { state: bytemuck::bytes_of(&game.init()).to_vec(), ..SearchRequest::default() };
    let mut backend = erase(game).cpu_backend(plan(&config, &sizes, 1), Isa::detect()).expect("detected");
    let mut network = UniformNet(IoShape::of(&sizes));
    let roots = search(backend.as_mut(), &mut network, &[position], config.simulations, Exploration::Plain);
    assert_eq!(roots[0].actions[roots[0].best], 0, "take 1: {:?}", roots[0]);
}
