//! Gomoku: five in a row wins, a full board draws.
//!
//! Actions are cells, row-major (0 top left), as in OpenSpiel. Player 0 has black and starts.
//!
//! With `opening = "swap2"` (Renju International Federation, gomoku rules) three actions follow the cells: `black`,
//! `white`, `more`. Player 0 puts down black, white, black; player 1 takes black, or takes white, or (`more`) puts down a
//! white and a black stone and leaves the choice of colours to player 0. The player with white then moves. So players move
//! several times in a row here, and player 0 may end up with white.

use super::board::{self, Cells};
use super::set_up::{SetUp, refused};
use super::view::{Board, Colour, GridStyle, Piece, Shape, Spot, View, Viewer};
use super::{Game, History, ObsShape, PointActions, Sizes, Turn};
use crate::config::keys::{names, section};
use crate::device_struct::{device_constants, device_enum, device_struct};
use crate::error::Result;
use bytemuck::{Pod, Zeroable};
use threats::MARGIN;

names! {
    /// The rows that win.
    Rule {
        /// Five or more.
        Freestyle = "freestyle",
        /// Exactly five; a longer row does not win. A move that makes a five and a longer row wins by the five.
        Exact = "exact",
    }

    /// The opening of a game.
    Opening {
        /// Black moves anywhere.
        None = "none",
        /// Three stones by player 0, then player 1 chooses; see the module's head.
        Swap2 = "swap2",
    }

    /// What an observation has.
    Sight {
        /// The stones.
        Stones = "stones",
        /// Also the rows of five that a player can still complete, with three or four stones in them.
        Threats = "threats",
    }
}

section! {
    /// The settings of Gomoku.
    Gomoku {
        /// Side of the board.
        size: u32 [5..=board::MAX_SIDE] = 15,
        /// The rows that win: five or more, or exactly five; a move that makes a five and a longer row wins by the five.
        rule: Rule = Rule::Freestyle,
        /// The opening: black moves anywhere, or player 0 puts down three stones and player 1 chooses (Swap2).
        opening: Opening = Opening::None,
        /// What the network observes: the stones, or also the empty cells of each line of five in which one player has three or four stones and the
        /// other none.
        network_sees: Sight = Sight::Stones,
    }
}

device_struct! {
    /// One position.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// The stones of each colour: black, white.
        pub stones: [Cells; 2],
        /// Stones on the board; black is to be placed next where it is even.
        pub placed: u32,
        /// The player to move.
        pub to_play: u8,
        /// The player who has black; 0 until the colours are chosen.
        pub black: u8,
        /// The number of the game's [`Phase`].
        pub phase: u8 as "Phase",
        /// 0 while the game is in progress, 1 or 2 for the winner's number plus one, 3 for a draw.
        pub outcome: u8,
    }
}

device_enum! {
    /// The phases of a game. All but [`Phase::Alternate`] belong to Swap2.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Phase: u8 {
        /// The colours are given; players move in turn.
        Alternate = 0,
        /// Player 0 puts down the first three stones.
        Opening = 1,
        /// Player 1 chooses black, white or two stones more.
        FirstChoice = 2,
        /// Player 1 puts down two stones more.
        More = 3,
        /// Player 0 chooses black or white.
        LastChoice = 4,
    }
}

const ALTERNATE: u8 = Phase::Alternate as u8;
const OPENING: u8 = Phase::Opening as u8;
const FIRST_CHOICE: u8 = Phase::FirstChoice as u8;
const MORE: u8 = Phase::More as u8;
const LAST_CHOICE: u8 = Phase::LastChoice as u8;

const BLACK: usize = 0;

/// Planes of an observation with the phase of the opening.
const PHASE_PLANES: usize = 4;
/// Planes with the threats of both players.
const THREAT_PLANES: usize = 4;

/// The choices of Swap2, counted from the last cell on.
const CHOICES: [&str; 3] = ["black", "white", "more"];

device_constants! {
    fn device_constants;
    /// The outcome of a full board without a winning row.
    const DRAW: u8 = 3;
    /// The choice of black in Swap2, counted from the last cell on.
    const TAKE_BLACK: u32 as "int" = 0;
    /// The choice of two stones more.
    const MORE_STONES: u32 as "int" = 2;
}

/// One step along a row, a column, and either diagonal.
const DIRECTIONS: [(i32, i32); 4] = [(0, 1), (1, 0), (1, 1), (1, -1)];

impl Rule {
    /// True if a row of this length wins.
    #[inline(always)]
    fn wins(self, length: u32) -> bool {
        match self {
            Self::Freestyle => length >= 5,
            Self::Exact => length == 5,
        }
    }
}

impl Gomoku {
    #[inline(always)]
    fn num_cells(&self) -> u32 {
        self.size * self.size
    }

    /// Number of consecutive stones after `cell` in one direction.
    #[inline]
    fn run(&self, stones: &Cells, cell: u32, (down, right): (i32, i32)) -> u32 {
        let side = self.size as i32;
        let (mut row, mut column) = (cell as i32 / side + down, cell as i32 % side + right);
        let mut length = 0;
        while (0..side).contains(&row)
            && (0..side).contains(&column)
            && stones.contains((row * side + column) as usize)
        {
            length += 1;
            row += down;
            column += right;
        }
        length
    }

    /// True if the stone at `cell` is in a winning row.
    #[inline]
    fn wins(&self, stones: &Cells, cell: u32) -> bool {
        DIRECTIONS.iter().any(|&(down, right)| {
            let length = 1 + self.run(stones, cell, (down, right)) + self.run(stones, cell, (-down, -right));
            self.rule.wins(length)
        })
    }

    fn place(&self, s: &mut State, cell: u32) {
        let colour = (s.placed & 1) as usize;
        s.stones[colour].insert(cell as usize);
        s.placed += 1;
        match (s.phase, s.placed) {
            (ALTERNATE, placed) => {
                if self.wins(&s.stones[colour], cell) {
                    s.outcome = s.to_play + 1;
                } else if placed == self.num_cells() {
                    s.outcome = DRAW;
                }
                s.to_play ^= 1;
            }
            (OPENING, 3) => (s.phase, s.to_play) = (FIRST_CHOICE, 1),
            (MORE, 5) => (s.phase, s.to_play) = (LAST_CHOICE, 0),
            _ => {}
        }
    }

    fn choose(&self, s: &mut State, choice: u32) {
        if choice == MORE_STONES {
            s.phase = MORE;
            return;
        }
        s.black = if choice == TAKE_BLACK { s.to_play } else { 1 - s.to_play };
        s.to_play = 1 - s.black;
        s.phase = ALTERNATE;
    }

    /// The colour of `player`'s first plane.
    fn first_colour(&self, s: &State, player: u8) -> usize {
        if s.phase == ALTERNATE { usize::from(player != s.black) } else { (s.placed & 1) as usize }
    }
}

impl Game for Gomoku {
    type State = State;
    const NAME: &'static str = "gomoku";
    const CONFIGS: &'static [super::NamedText] = super::configs!("gomoku");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("gomoku");
    const VARIANTS: &'static [&'static str] =
        &["size = 7", "size = 9\nrule = 'exact'", "size = 15\nopening = 'swap2'", "network_sees = 'threats'"];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];

    super::options_by_section!();

    fn aim(&self, player: u8) -> String {
        let row = match self.rule {
            Rule::Freestyle => "five or more in a row",
            Rule::Exact => "exactly five in a row",
        };
        match self.opening {
            Opening::None => format!("{} makes {row}", ["X", "O"][usize::from(player)]),
            Opening::Swap2 => format!("makes {row}, with the colour that the opening gives"),
        }
    }

    fn sizes(&self) -> Sizes {
        let side = self.size as usize;
        let (choices, plies, planes) = match self.opening {
            Opening::None => (0, 0, 0),
            Opening::Swap2 => (CHOICES.len(), 2, PHASE_PLANES),
        };
        let threats = if self.network_sees == Sight::Threats { THREAT_PLANES } else { 0 };
        Sizes {
            num_actions: side * side + choices,
            point_actions: Some(PointActions::ONE),
            max_legal: side * side,
            obs: ObsShape { channels: 2 + planes + threats, height: side, width: side },
            max_plies: side * side + plies,
            num_symmetries: 8,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        let phase = match self.opening {
            Opening::None => Phase::Alternate,
            Opening::Swap2 => Phase::Opening,
        };
        State { stones: [Cells::EMPTY; 2], placed: 0, to_play: 0, black: 0, phase: phase as u8, outcome: 0 }
    }

    fn is_valid(&self, s: &State) -> bool {
        let last_phase = if self.opening == Opening::Swap2 { LAST_CHOICE } else { ALTERNATE };
        s.to_play < 2
            && s.black < 2
            && s.phase <= last_phase
            && s.stones.iter().all(|cells| cells.fits(self.num_cells()))
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        if s.outcome == 0 { Turn::Player(s.to_play) } else { Turn::Over }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        let choices = match s.phase {
            FIRST_CHOICE => 3,
            LAST_CHOICE => 2,
            _ => return (s.stones[0] | s.stones[1]).write_free(self.num_cells() as usize, out),
        };
        for (choice, action) in out[..choices].iter_mut().enumerate() {
            *action = self.num_cells() as u16 + choice as u16;
        }
        choices
    }

    #[inline]
    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        match u32::from(action).checked_sub(self.num_cells()) {
            None => self.place(s, u32::from(action)),
            Some(choice) => self.choose(s, choice),
        }
    }

    /// Planes: own stones, the other player's stones; before the colours are chosen, stones of the colour to be placed
    /// next, stones of the other colour. With `opening = "swap2"` four constant planes more, one a [`Phase`] of the
    /// opening in their order: 1 in the present phase for the player to move, -1 for the other, else 0. With
    /// `network_sees = "threats"` four planes more: the empty cells of five in a line without a stone of the other colour that
    /// have three stones of the first, those that have four, and the same of the second colour.
    /// `[2, 6 or 10, size, size]`
    #[inline(always)]
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let cells = self.num_cells() as usize;
        let colour = self.first_colour(s, player);
        let (own, other) = (&s.stones[colour], &s.stones[1 - colour]);
        let (stones, rest) = out.split_at_mut(2 * cells);
        own.write_plane(&mut stones[..cells]);
        other.write_plane(&mut stones[cells..]);
        let num_threats = if self.network_sees == Sight::Threats { THREAT_PLANES } else { 0 };
        let (phases, threats) = rest.split_at_mut(rest.len() - num_threats * cells);
        phases.fill(0.0);
        if s.phase != ALTERNATE {
            let sign = if player == s.to_play { 1.0 } else { -1.0 };
            phases[(usize::from(s.phase) - 1) * cells..][..cells].fill(sign);
        }
        if self.network_sees == Sight::Threats {
            let side = self.size as usize;
            for (plane, rows) in threats.chunks_exact_mut(cells).zip(self.threats([own, other])) {
                board::write_plane_of_rows(&rows[..side], side, MARGIN, plane);
            }
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let value = match s.outcome {
            1 => 1.0,
            2 => -1.0,
            _ => 0.0,
        };
        out[0] = value;
        out[1] = -value;
    }

    fn set_up(&self, set_up: SetUp<'_>) -> Result<State> {
        if self.opening != Opening::None {
            return Err(refused(
                Self::NAME,
                "with the opening swap2 the choice of colours is part of it; play its moves",
            ));
        }
        let cells = set_up.stones(Self::NAME, self.num_cells() as usize)?;
        set_up.check_turn(Self::NAME, [cells[0].len(), cells[1].len()])?;
        let placed = (cells[0].len() + cells[1].len()) as u32;
        let mut s = State { placed, to_play: set_up.player, ..self.init() };
        for (stones, cells) in s.stones.iter_mut().zip(&cells) {
            cells.iter().for_each(|&cell| stones.insert(cell));
        }
        for (colour, stones) in s.stones.iter().enumerate() {
            if stones.iter().any(|cell| self.wins(stones, cell as u32)) {
                return Err(refused(Self::NAME, format!("{} has five in a row already", ["X", "O"][colour])));
            }
        }
        match placed == self.num_cells() {
            true => Err(refused(Self::NAME, "the board is full, so the game is over")),
            false => Ok(s),
        }
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        State { stones: s.stones.map(|stones| stones.transform(self.size, symmetry)), ..*s }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        let cell = u32::from(action);
        if cell >= self.num_cells() {
            return action;
        }
        board::transform_cell(cell, self.size, symmetry) as u16
    }

    fn sgf_point(&self, action: u16) -> Option<String> {
        let cell = u32::from(action);
        (cell < self.size * self.size).then(|| board::sgf_point(cell, self.size))
    }

    /// `X` black, `O` white; in Swap2, a last line has the phase.
    fn view(&self, s: &State, _viewer: Viewer) -> View {
        let side = self.size as usize;
        let has = |colour: usize, cell: usize| s.stones[colour].contains(cell);
        let mut pieces = Piece::pair([Shape::Disc; 2], ["black", "white"]);
        (pieces[BLACK].owner, pieces[1 - BLACK].owner) = (Some(s.black), Some(1 - s.black));
        let grid = board::grid(self.size, GridStyle::Lines, pieces, |cell| {
            Piece::of(has(BLACK, cell as usize), has(1 - BLACK, cell as usize))
        });
        let wins = |length| self.rule.wins(length as u32);
        let run = |colour| board::winning_run(side, side, |cell| has(colour, cell), wins);
        // Until the colours are chosen, five in a row count for nothing.
        let over = (1..DRAW).contains(&s.outcome);
        let colours =
            if s.black == 0 { [Colour::Black, Colour::White] } else { [Colour::White, Colour::Black] };
        let view = View::new(Board::Grid(grid), &colours).with_line((0..2).filter(|_| over).flat_map(run));
        if self.opening == Opening::None {
            return view;
        }
        view.with_note(match s.phase {
            ALTERNATE => format!("player {} has X", s.black),
            OPENING | MORE => {
                format!("player {} puts down {}", s.to_play, ["X", "O"][s.placed as usize & 1])
            }
            _ => format!("player {} chooses a colour", s.to_play),
        })
    }

    fn spot(&self, _state: &State, action: u16) -> Spot {
        if u32::from(action) < self.num_cells() { Spot::Place(action) } else { Spot::Button }
    }

    fn action_name(&self, _state: &State, action: u16) -> String {
        match u32::from(action).checked_sub(self.num_cells()) {
            None => board::cell_name(u32::from(action), self.size),
            Some(choice) => CHOICES[choice as usize].into(),
        }
    }
}

mod threats;

#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;
