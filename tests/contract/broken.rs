//! Nim with one method broken at a time: the contract names the law and the actions that lead to the defect.

use crate::as_inside::broken_inside;
use crate::nim::{Nim, State};
use vecaz::Result;
use vecaz::contract::{self, BrokenLaw};
use vecaz::game::set_up::SetUp;
use vecaz::game::view::{Board, Cards, Colour, Grid, GridStyle, Piece, Seat, Shape, View, Viewer};
use vecaz::game::{Game, History, Sizes, TallyCell, Target, TargetKind, TargetShape, Turn};

/// The defect of a [`Broken`] game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// There is no symmetry, not even the identity.
    NoSymmetry,
    /// `max_legal` is one too small.
    MaxLegalTooSmall,
    /// The last stone is never taken.
    NeverOver,
    /// `step` panics once 12 stones are left.
    StepPanics,
    /// The game is over at its start.
    NobodyDecides,
    /// One of the `VARIANTS` has a value that `from_options` refuses.
    VariantIsRefused,
    /// `options` lacks `max_take`.
    OptionIsLost,
    /// `from_options` takes a key that the game does not have.
    UnknownOptionIsTaken,
    /// A rule is listed in `SIGHT_OPTIONS`.
    SightIsARule,
    /// The winner's return is 2.
    ReturnOutOfRange,
    /// Players who win and lose say that they do not compete.
    SaysThatAllWin,
    /// Players count in a table that is not there.
    CountsWithoutTable,
    /// `observe` writes nothing.
    EmptyObservation,
    /// `canonical` is the start for every position.
    CanonicalForgetsStones,
    /// All bytes are valid.
    AnyBytesAreValid,
    /// `observe` panics for more stones than `is_valid` refuses.
    ObservationPanics,
    /// A target has the name of the values.
    TargetNameIsReserved,
    /// A target has more numbers than a network may learn.
    TargetIsTooLong,
    /// `write_target` leaves out the last entry.
    TargetIsNotWritten,
    /// `write_target` writes numbers of stones.
    TargetOutOfRange,
    /// The second player has no seat, and moves.
    EmptySeatMoves,
    /// There is no aim for the second player.
    AimPanics,
    /// An aim ends with a full stop.
    AimHasAFullStop,
    /// Two actions have one name.
    EqualNames,
    /// The name of an action is the number of another one.
    NamesAreNumbers,
    /// Names end with a blank.
    NamesEndWithBlanks,
    /// Names have a comma.
    NamesHaveCommas,
    /// Names have nine words.
    NamesHaveNineWords,
    /// An action has the name of a command.
    NamesAreCommands,
    /// The drawing is too wide for a terminal.
    ViewIsWide,
    /// A table of cards lacks a seat's value of its one column.
    SeatLacksAValue,
    /// All stones are back in a position that is set up.
    StonesComeBack,
    /// A position that is set up is none that `is_valid` knows.
    SetUpIsInvalid,
}

broken_inside!(Nim);

impl<const DEFECT: usize> Game for Broken<DEFECT> {
    type State = State;
    const NAME: &'static str = "broken";
    const VARIANTS: &'static [&'static str] = if DEFECT == Defect::VariantIsRefused as usize {
        &["max_take = 99"]
    } else if DEFECT == Defect::OptionIsLost as usize || DEFECT == Defect::SightIsARule as usize {
        &["max_take = 2"]
    } else {
        &[]
    };
    const SIGHT_OPTIONS: &'static [&'static str] =
        if DEFECT == Defect::SightIsARule as usize { &["max_take"] } else { &[] };

    fn from_options(options: &toml::Table) -> Result<Self> {
        let mut options = options.clone();
        if DEFECT == Defect::UnknownOptionIsTaken as usize {
            options.remove("no_such_option");
        }
        Nim::from_options(&options).map(Self)
    }

    fn options(&self) -> toml::Table {
        let mut options = self.0.options();
        if self.has(Defect::OptionIsLost) {
            options.remove("max_take");
        }
        options
    }

    fn aim(&self, player: u8) -> String {
        assert!(!self.has(Defect::AimPanics) || player == 0, "no aim");
        let end = if self.has(Defect::AimHasAFullStop) { "." } else { "" };
        self.0.aim(player) + end
    }

    fn num_seated(&self, _: &State, seats: usize) -> usize {
        if self.has(Defect::EmptySeatMoves) { seats - 1 } else { seats }
    }

    fn sizes(&self) -> Sizes {
        let sizes = self.0.sizes();
        Sizes {
            max_legal: sizes.max_legal - usize::from(self.has(Defect::MaxLegalTooSmall)),
            num_symmetries: u64::from(!self.has(Defect::NoSymmetry)),
            cooperative: self.has(Defect::SaysThatAllWin),
            ..sizes
        }
    }

    fn init(&self) -> State {
        self.0.init()
    }

    fn is_valid(&self, state: &State) -> bool {
        self.has(Defect::AnyBytesAreValid) || self.0.is_valid(state)
    }

    fn turn(&self, state: &State) -> Turn {
        match self.0.turn(state) {
            Turn::Over if self.has(Defect::NeverOver) => Turn::Player(0),
            _ if self.has(Defect::NobodyDecides) => Turn::Over,
            Turn::Player(player) if self.has(Defect::SetUpIsInvalid) => Turn::Player(player % 2),
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
        let is_refused = self.has(Defect::ObservationPanics) && state.stones() > self.0.stones;
        assert!(!is_refused, "more stones than at the start");
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
        match self.has(Defect::CanonicalForgetsStones) {
            true => self.0.init(),
            false => self.0.canonical(state),
        }
    }

    fn targets(&self) -> Vec<Target> {
        let of = |name: &str, len| vec![Target::new(name, TargetShape::Vector(len), TargetKind::Amount)];
        if self.has(Defect::TargetNameIsReserved) {
            of("values", 2)
        } else if self.has(Defect::TargetIsTooLong) {
            of("stones", 65_537)
        } else if self.has(Defect::TargetIsNotWritten) || self.has(Defect::TargetOutOfRange) {
            of("stones", 2)
        } else {
            Vec::new()
        }
    }

    fn write_target(&self, _: usize, position: &State, end: &State, _: u8, out: &mut [f32]) {
        out[0] = end.stones() as f32;
        if self.has(Defect::TargetOutOfRange) {
            out[1] = position.stones() as f32;
        }
    }

    fn view(&self, state: &State, viewer: Viewer) -> View {
        if self.has(Defect::ViewIsWide) {
            return View::text("o".repeat(81));
        }
        if self.has(Defect::SeatLacksAValue) {
            let seats = vec![Seat { values: Vec::new(), hand: Vec::new(), hidden: 0 }];
            let cards =
                Cards { caption: "table".into(), columns: vec!["bid".into()], seats, trick: Vec::new() };
            return View::new(Board::Cards(cards), &Colour::ALL);
        }
        if !self.has(Defect::StonesComeBack) && !self.has(Defect::SetUpIsInvalid) {
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
        if self.has(Defect::SetUpIsInvalid) {
            let stones = set_up.cells.iter().filter(|&&cell| cell == Some(0)).count() as u32;
            return Ok(bytemuck::cast([stones, u32::from(set_up.player) + 2]));
        }
        match self.has(Defect::StonesComeBack) {
            true => Ok(self.0.init()),
            false => self.0.set_up(set_up),
        }
    }

    fn action_name(&self, state: &State, action: u16) -> String {
        let name = self.0.action_name(state, if self.has(Defect::EqualNames) { 0 } else { action });
        if self.has(Defect::NamesAreNumbers) {
            (action + 1).to_string()
        } else if self.has(Defect::NamesEndWithBlanks) {
            name + " "
        } else if self.has(Defect::NamesHaveCommas) {
            name + ", please"
        } else if self.has(Defect::NamesHaveNineWords) {
            name + " of all the stones in the heap"
        } else if self.has(Defect::NamesAreCommands) && action == 0 {
            "hint".into()
        } else {
            name
        }
    }
}

/// What the contract finds in the game with this defect.
macro_rules! found {
    ($defect:ident) => {
        contract::check::<Broken<{ Defect::$defect as usize }>>().expect_err(stringify!($defect))
    };
}

#[test]
fn a_broken_law_is_named_with_the_actions_that_lead_to_it() {
    let found: [(Box<BrokenLaw>, &str, &str); 33] = [
        (found!(NoSymmetry), "sizes_are_consistent", "num_symmetries is 0"),
        (found!(MaxLegalTooSmall), "play_is_legal_and_ends", "3 actions are legal, more than max_legal = 2"),
        (found!(NeverOver), "play_is_legal_and_ends", "not over after max_plies = 17"),
        (found!(StepPanics), "play_is_legal_and_ends", "panic: no stone may be taken from 12"),
        (found!(NobodyDecides), "play_is_legal_and_ends", "no player decides in any of 40 games"),
        (found!(EmptySeatMoves), "empty_seats_take_no_part", "player 1 is to move, of 1"),
        (found!(AimPanics), "aims_are_sentences", "panic: no aim"),
        (found!(AimHasAFullStop), "aims_are_sentences", "expected a sentence without a full stop"),
        (found!(VariantIsRefused), "variants_are_valid", "max_take"),
        (found!(OptionIsLost), "options_make_the_same_game", "again.sizes()"),
        (found!(UnknownOptionIsTaken), "unknown_options_are_refused", "no_such_option is not refused"),
        (found!(SightIsARule), "sight_options_change_no_rule", "Sizes { obs: own.obs, ..sizes }: got"),
        (found!(ReturnOutOfRange), "returns_are_bounded", "2.0"),
        (
            found!(SaysThatAllWin),
            "returns_are_bounded",
            "declared cooperative, but the returns at the end are",
        ),
        (found!(CountsWithoutTable), "tallies_are_cells_of_the_table", "player 0 counts in Some(TallyCell {"),
        (found!(EmptyObservation), "observations_are_finite_and_complete", "not written or not finite"),
        (
            found!(CanonicalForgetsStones),
            "canonical_states_share_an_evaluation",
            "one cache entry for two evaluations",
        ),
        (
            found!(AnyBytesAreValid),
            "bytes_that_are_valid_can_be_observed",
            "a state of changed bytes passes `is_valid`, and its turn is that of player ",
        ),
        (
            found!(ObservationPanics),
            "bytes_that_are_valid_can_be_observed",
            "`is_valid`, and observing or transforming it panics (more stones than at the start): State",
        ),
        (found!(TargetNameIsReserved), "targets_are_complete", "a target is called values"),
        (
            found!(TargetIsTooLong),
            "targets_are_complete",
            "the target stones is Vector(65537), expected 1 to 65536 numbers",
        ),
        (found!(TargetIsNotWritten), "targets_are_complete", "after 0 plies: entry 1 is not written"),
        (found!(TargetOutOfRange), "targets_are_complete", "after 0 plies: entry 1 is 17, expected"),
        (found!(EqualNames), "names_are_read_back", "the name \"take 1\""),
        (
            found!(NamesAreNumbers),
            "names_are_read_back",
            "the name \"1\" is the number of another action than 0",
        ),
        (found!(NamesEndWithBlanks), "names_are_read_back", "the name \"take 1 \" of action 0 is read as"),
        (found!(NamesHaveCommas), "names_are_read_back", "of action 0 has a comma"),
        (found!(NamesHaveNineWords), "names_are_read_back", "of action 0 has 9 words, expected at most 8"),
        (found!(NamesAreCommands), "names_are_read_back", "is a command of `vecaz play`"),
        (found!(ViewIsWide), "views_describe_the_position", "a line of more than 80 columns"),
        (
            found!(SeatLacksAValue),
            "views_describe_the_position",
            "the columns [\"bid\"] and the values of Some(Seat",
        ),
        (
            found!(StonesComeBack),
            "placed_pieces_give_the_position",
            "the pieces of a position that was set up",
        ),
        (
            found!(SetUpIsInvalid),
            "placed_pieces_give_the_position",
            "`is_valid` refuses a position that was set up",
        ),
    ];
    for (found, law, part) in found {
        assert_eq!(found.law, law, "{found}");
        assert!(found.what.contains(part), "{part}: {found}");
        let options = match law {
            "variants_are_valid" => "max_take = 99",
            "options_make_the_same_game" => "stones = 17",
            "sight_options_change_no_rule" => "stones = 17, max_take = 2",
            _ => "stones = 17, max_take = 3",
        };
        assert!(found.to_string().starts_with(&format!("broken ({options}) breaks the law")), "{found}");
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
            "returns_are_bounded" | "targets_are_complete" if !found.actions.is_empty() => {
                assert_eq!(state.stones(), 0, "{found}")
            }
            "play_is_legal_and_ends" if part.contains("panic") => assert!(state.stones() < 12, "{found}"),
            _ => {}
        }
    }
}
