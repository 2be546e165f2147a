//! Nim with one method broken at a time: the contract names the law and the actions that lead to the defect.

use crate::nim::{Nim, State};
use vecaz::Result;
use vecaz::contract::{self, BrokenLaw};
use vecaz::game::set_up::SetUp;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, View, Viewer};
use vecaz::game::{Game, History, Sizes, TallyCell, Turn};

/// The defect of a [`Broken`] game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// `max_legal` is one too small.
    MaxLegalTooSmall,
    /// The last stone is never taken.
    NeverOver,
    /// The winner's return is 2.
    ReturnOutOfRange,
    /// `observe` writes nothing.
    EmptyObservation,
    /// `step` panics once 12 stones are left.
    StepPanics,
    /// Two actions have one name.
    EqualNames,
    /// All stones are back in a position that is set up.
    StonesComeBack,
    /// Players count in a table that is not there.
    CountsWithoutTable,
    /// The game is over at its start.
    NobodyDecides,
    /// The name of an action is the number of another one.
    NamesAreNumbers,
}

/// Nim with a defect, whose number is the constant.
#[derive(Clone)]
struct Broken<const DEFECT: usize>(Nim);

const DEFECTS: [Defect; 10] = [
    Defect::MaxLegalTooSmall,
    Defect::NeverOver,
    Defect::ReturnOutOfRange,
    Defect::EmptyObservation,
    Defect::StepPanics,
    Defect::EqualNames,
    Defect::StonesComeBack,
    Defect::CountsWithoutTable,
    Defect::NobodyDecides,
    Defect::NamesAreNumbers,
];

impl<const DEFECT: usize> Broken<DEFECT> {
    fn has(&self, defect: Defect) -> bool {
        DEFECTS[DEFECT] == defect
    }
}

impl<const DEFECT: usize> Game for Broken<DEFECT> {
    type State = State;
    const NAME: &'static str = "broken";

    fn from_options(options: &toml::Table) -> Result<Self> {
        Nim::from_options(options).map(Self)
    }

    fn options(&self) -> toml::Table {
        self.0.options()
    }

    fn aim(&self, player: u8) -> String {
        self.0.aim(player)
    }

    fn sizes(&self) -> Sizes {
        let sizes = self.0.sizes();
        let max_legal = sizes.max_legal - usize::from(self.has(Defect::MaxLegalTooSmall));
        Sizes { max_legal, ..sizes }
    }

    fn init(&self) -> State {
        self.0.init()
    }

    fn is_valid(&self, state: &State) -> bool {
        self.0.is_valid(state)
    }

    fn turn(&self, state: &State) -> Turn {
        match self.0.turn(state) {
            Turn::Over if self.has(Defect::NeverOver) => Turn::Player(0),
            _ if self.has(Defect::NobodyDecides) => Turn::Over,
            turn => turn,
        }
    }

    fn legal(&self, state: &State, history: History<'_>, out: &mut [u16]) -> usize {
        match self.has(Defect::NeverOver) && self.0.turn(state) == Turn::Over {
            true => {
                out[0] = 0;
                1
            }
            false => self.0.legal(state, history, out),
        }
    }

    fn step(&self, state: &mut State, action: u16, history: History<'_>) {
        if self.has(Defect::NeverOver) && self.0.turn(state) == Turn::Over {
            return;
        }
        self.0.step(state, action, history);
        assert!(!self.has(Defect::StepPanics) || state.stones() >= 12, "no stone may be taken from 12");
    }

    fn observe(&self, state: &State, player: u8, out: &mut [f32]) {
        if !self.has(Defect::EmptyObservation) {
            self.0.observe(state, player, out);
        }
    }

    fn returns(&self, state: &State, out: &mut [f32]) {
        self.0.returns(state, out);
        if self.has(Defect::ReturnOutOfRange) {
            out.iter_mut().for_each(|value| *value *= 2.0);
        }
    }

    fn tally(&self, _: &State, _: &State, _: u8) -> Option<TallyCell> {
        self.has(Defect::CountsWithoutTable).then_some(TallyCell { row: 0, column: 0 })
    }

    fn canonical(&self, state: &State) -> State {
        self.0.canonical(state)
    }

    fn view(&self, state: &State, viewer: Viewer) -> View {
        if !self.has(Defect::StonesComeBack) {
            return self.0.view(state, viewer);
        }
        let heap = |_: usize, column: usize| Piece::of(column < state.stones() as usize, false);
        let pieces = Piece::pair([Shape::Disc; 2], ["stone", "none"]);
        let all = self.0.init().stones() as usize;
        View::new(
            Board::Grid(Grid::labelled(GridStyle::Squares, [1, all], |_| false, pieces, heap)),
            &Colour::ALL,
        )
    }

    fn set_up(&self, set_up: SetUp<'_>) -> Result<State> {
        match self.has(Defect::StonesComeBack) {
            true => Ok(self.0.init()),
            false => self.0.set_up(set_up),
        }
    }

    fn action_name(&self, state: &State, action: u16) -> String {
        match self.has(Defect::NamesAreNumbers) {
            true => (action + 1).to_string(),
            false => self.0.action_name(state, if self.has(Defect::EqualNames) { 0 } else { action }),
        }
    }
}

fn broken_law<const DEFECT: usize>() -> Box<BrokenLaw> {
    contract::check::<Broken<DEFECT>>().expect_err(&format!("{:?}", DEFECTS[DEFECT]))
}

#[test]
fn a_broken_law_is_named_with_the_actions_that_lead_to_it() {
    for (found, law, part) in [
        (broken_law::<0>(), "play_is_legal_and_ends", "3 actions are legal, more than max_legal = 2"),
        (broken_law::<1>(), "play_is_legal_and_ends", "not over after max_plies = 17"),
        (broken_law::<2>(), "returns_are_bounded", "2.0"),
        (broken_law::<3>(), "observations_are_finite_and_complete", "not written or not finite"),
        (broken_law::<4>(), "play_is_legal_and_ends", "panic: no stone may be taken from 12"),
        (broken_law::<5>(), "names_are_read_back", "the name \"take 1\""),
        (broken_law::<7>(), "tallies_are_cells_of_the_table", "player 0 counts in Some(TallyCell {"),
        (broken_law::<8>(), "play_is_legal_and_ends", "no player decides in any of 40 games"),
        (broken_law::<9>(), "names_are_read_back", "the name \"1\" is the number of another action than 0"),
        (broken_law::<6>(), "placed_pieces_give_the_position", "the pieces of a position that was set up"),
    ] {
        assert_eq!(found.law, law, "{found}");
        assert!(found.what.contains(part), "{part}: {found}");
        assert!(
            found.to_string().starts_with("broken (stones = 17, max_take = 3) breaks the law"),
            "{found}"
        );
        // The actions lead from the first position to the defect.
        let game = Nim::default();
        let mut state = game.init();
        for (&action, name) in found.actions.iter().zip(&found.names) {
            assert!(name.starts_with("take "), "{found}");
            if game.turn(&state) != Turn::Over {
                game.step(&mut state, action, History::default());
            }
        }
        match law {
            "returns_are_bounded" => assert_eq!(state.stones(), 0, "{found}"),
            "play_is_legal_and_ends" if part.contains("panic") => assert!(state.stones() < 12, "{found}"),
            _ => {}
        }
    }
}
