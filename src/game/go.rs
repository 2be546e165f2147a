//! Go on 5x5 to 19x19: area scoring, positional superko, two passes end.
//!
//! The rules are those of Tromp and Taylor, except that suicide is illegal: a move that would repeat an earlier position of
//! the board, whoever is to move, is not legal; all stones on the board at the end are alive; a side's score is its stones
//! and the empty regions that reach only its stones, white gets komi. A game is scored as it stands after `max_plies` plies
//! (by default twice the points, as in OpenSpiel and pgx). With equal scores (whole komi) it is drawn.
//!
//! Actions are points row by row from the top left, then pass, as in pgx and OpenSpiel. Those two bar only the immediate
//! retaking of a ko; another move that repeats a position ends their game (OpenSpiel: a draw; pgx: a loss). Here it is not
//! legal, and that is the only difference between the lists. Equal scores are white's win in pgx, a draw in OpenSpiel.
//!
//! A state has bitboards of stones, of the stones of each colour's groups in atari, and of the points that superko bars. From these
//! all legal moves follow by a few operations on whole boards. Only a step reads the history.

mod points;
mod position;
mod set_up;
#[cfg(test)]
mod tests;

use super::set_up::SetUp;
use super::view::{
    Board as BoardView, Colour, Grid as GridView, GridStyle, Piece, Shape, Spot, View, Viewer,
};
use super::{Game, History, ObsShape, PointActions, Sizes, Target, Turn, board, ownership};
use crate::config::keys::{names, section};
use crate::device_struct::{device_constants, device_struct};
use crate::error::Result;
use bytemuck::{Pod, Zeroable};
use points::{Points, STATE_WORDS, with_words};
use position::{Board, keys_of, owned, write_liberties};

const PLANES: usize = 8;
/// Planes of groups with two and three liberties, for each player.
const LIBERTY_PLANES: usize = 4;

names! {
    /// What an observation has.
    Sight {
        /// The stones, and which groups are in atari.
        Stones = "stones",
        /// Also which groups have two liberties, and which three.
        Liberties = "liberties",
    }
}

device_constants! {
    fn device_constants;
    /// No point: at the start and after a pass.
    const NOWHERE: u16 = u16::MAX;
    /// The seed of the table of the stones' keys.
    const KEY_SEED: u64 = 5;
    /// Keys of one player; the key of a stone has the index player * KEYS_PER_PLAYER + point.
    const KEYS_PER_PLAYER: usize as "u32" = 512;
    /// The low bits of a key, which are its own index.
    const KEY_INDEX: u64 = 2 * KEYS_PER_PLAYER as u64 - 1;
}

section! {
    /// The settings of Go.
    Go {
        /// Rows and columns of the board.
        size: u32 [5..=19] = 9,
        /// Points white gets for moving second; 7.5 on every size unless set, as in pgx and OpenSpiel.
        komi: f32 [-361.0..=361.0] = 7.5,
        /// Plies after which the current position is scored; 0 = twice the points of the board.
        max_plies: u32 [0..=10_000] = 0,
        /// What the network observes: the stones and which groups are in atari, or also which have two or three liberties.
        network_sees: Sight = Sight::Stones,
    }
}

device_struct! {
    /// One position. Player 0 is black and moves first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// Stones of each player, bit row * size + column. `[P]`
        pub stones: [[u64; STATE_WORDS]; 2],
        /// Those of them in groups with one liberty. `[P]`
        pub atari: [[u64; STATE_WORDS]; 2],
        /// Points that may not be played because the position would repeat.
        pub barred: [u64; STATE_WORDS],
        /// Key of the stones (Zobrist 1970).
        pub hash: u64,
        /// Point of the last move; `NOWHERE` at the start and after a pass.
        pub last: u16,
        /// Plies played.
        pub plies: u16,
        /// Passes in a row, 0 to 2.
        pub passes: u8,
        /// 1 once stones have been captured: before that no position can repeat.
        pub captures: u8,
        /// Always 0.
        pub padding: u16,
    }
}

impl Go {
    fn points(&self) -> u16 {
        (self.size * self.size) as u16
    }

    fn max_plies(&self) -> u32 {
        if self.max_plies == 0 { 2 * self.size * self.size } else { self.max_plies }
    }

    /// Points of black minus those of white, komi included.
    fn lead(&self, s: &State) -> f32 {
        let [black, white] = self.areas(s);
        black as f32 - white as f32 - self.komi
    }

    /// Points of black and of white on the board, without komi: stones, and empty regions touching only that colour.
    pub fn areas(&self, s: &State) -> [u32; 2] {
        with_words!(self.size, W => owned::<W>(self.size, s).map(|points| points.count()))
    }

    /// `point` under one of the eight symmetries of the square: bit 2 transposes, bit 1 flips rows, bit 0 columns.
    fn transform_point(&self, point: u16, symmetry: u64) -> u16 {
        let n = self.size as u16;
        if point >= n * n {
            return point;
        }
        let (mut row, mut column) = (point / n, point % n);
        if symmetry & 4 != 0 {
            std::mem::swap(&mut row, &mut column);
        }
        if symmetry & 2 != 0 {
            row = n - 1 - row;
        }
        if symmetry & 1 != 0 {
            column = n - 1 - column;
        }
        row * n + column
    }
}

fn has(words: &[u64; STATE_WORDS], point: u16) -> bool {
    words[usize::from(point) / 64] >> (point % 64) & 1 == 1
}

/// Column letters skip I.
fn column_letter(column: u32) -> char {
    char::from(b'A' + column as u8 + u8::from(column >= 8))
}

impl Game for Go {
    type State = State;
    const NAME: &'static str = "go";
    const CONFIGS: &'static [super::NamedText] = super::configs!("go");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("go");
    const VARIANTS: &'static [&'static str] =
        &["size = 5", "size = 9", "size = 13\nkomi = 0.5\nmax_plies = 300", "network_sees = 'liberties'"];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];
    const SPAN_OPTIONS: &'static [&'static str] = &["max_plies"];

    super::options_by_section!();

    fn aim(&self, player: u8) -> String {
        match player {
            0 => format!("X (black) ends with more points than O (white) with its komi of {}", self.komi),
            _ => format!("O (white) with its komi of {} ends with more points than X (black)", self.komi),
        }
    }

    fn sizes(&self) -> Sizes {
        let n = self.size as usize;
        let liberties = if self.network_sees == Sight::Liberties { LIBERTY_PLANES } else { 0 };
        Sizes {
            num_actions: n * n + 1,
            point_actions: Some(PointActions::ONE),
            max_legal: n * n + 1,
            obs: ObsShape { channels: PLANES + liberties, height: n, width: n },
            max_plies: self.max_plies() as usize,
            num_symmetries: 8,
            uses_history: true,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { last: NOWHERE, ..Zeroable::zeroed() }
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        if s.passes >= 2 || u32::from(s.plies) >= self.max_plies() {
            Turn::Over
        } else {
            Turn::Player((s.plies & 1) as u8)
        }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        let n = with_words!(self.size, W => {
            Board::<W>::new(self.size, s).playable().without(Points::load(&s.barred)).list(out)
        });
        out[n] = self.points();
        n + 1
    }

    /// The history is that of the game as played. A state transformed by a symmetry other than the identity finds only its
    /// current position in it.
    #[inline]
    fn step(&self, s: &mut State, action: u16, history: History<'_>) {
        let passes = action == self.points();
        s.passes = if passes { s.passes + 1 } else { 0 };
        s.last = if passes { NOWHERE } else { action };
        with_words!(self.size, W => {
            let mut board = Board::<W>::new(self.size, s);
            let before = s.hash;
            if !passes {
                board.place(s, action);
                board.write(s);
            }
            s.plies += 1;
            if s.captures != 0 {
                board.turned().repeating(s, before, history).store(&mut s.barred);
            }
        });
    }

    /// Planes, the top row first: own stones, the other player's, own in atari, the other's in atari, points barred by
    /// superko, the last move, all ones after a pass, all ones for white's view; with `network_sees = "liberties"` then own stones in
    /// groups with two liberties, with three, and the other player's likewise. `[8 or 12, size, size]`
    #[inline(always)]
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let points = usize::from(self.points());
        let (own, other) = (usize::from(player), usize::from(1 - player));
        let (planes, liberties) = out.split_at_mut(PLANES * points);
        let (boards, rest) = planes.split_at_mut(5 * points);
        let sets = [&s.stones[own], &s.stones[other], &s.atari[own], &s.atari[other], &s.barred];
        for (set, plane) in sets.into_iter().zip(boards.chunks_exact_mut(points)) {
            board::write_plane_of_words(set, plane);
        }
        rest.fill(0.0);
        if let Some(point) = rest[..points].get_mut(usize::from(s.last)) {
            *point = 1.0;
        }
        rest[points..2 * points].fill(f32::from(s.passes.min(1)));
        rest[2 * points..].fill(f32::from(player));
        if self.network_sees == Sight::Liberties {
            let (of_own, of_other) = liberties.split_at_mut(2 * points);
            with_words!(self.size, W => {
                write_liberties::<W>(self.size, s, own, of_own);
                write_liberties::<W>(self.size, s, other, of_other);
            });
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let lead = self.lead(s);
        let value = if lead == 0.0 { 0.0 } else { lead.signum() };
        out[0] = value;
        out[1] = -value;
    }

    fn targets(&self) -> Vec<Target> {
        vec![ownership()]
    }

    fn write_target(&self, _number: usize, _position: &State, end: &State, player: u8, out: &mut [f32]) {
        let player = usize::from(player);
        out.fill(0.0);
        with_words!(self.size, W => {
            let owned = owned::<W>(self.size, end);
            owned[player].iter().for_each(|point| out[usize::from(point)] = 1.0);
            owned[1 - player].iter().for_each(|point| out[usize::from(point)] = -1.0);
        });
    }

    /// Points on the board, white's with komi.
    fn scores(&self, s: &State) -> Vec<f32> {
        let [black, white] = self.areas(s);
        vec![black as f32, white as f32 + self.komi]
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        let image = |words: &[u64; STATE_WORDS]| {
            let mut out = [0; STATE_WORDS];
            for point in (0..self.points()).filter(|&point| has(words, point)) {
                let to = usize::from(self.transform_point(point, symmetry));
                out[to / 64] |= 1 << (to % 64);
            }
            out
        };
        let mut t = State {
            stones: [image(&s.stones[0]), image(&s.stones[1])],
            atari: [image(&s.atari[0]), image(&s.atari[1])],
            last: self.transform_point(s.last, symmetry),
            barred: image(&s.barred),
            ..*s
        };
        t.hash = (0..2)
            .fold(0, |hash, player| hash ^ keys_of(player, Points::<STATE_WORDS>::load(&t.stones[player])));
        t
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        self.transform_point(action, symmetry)
    }

    /// Removes the count of plies except its parity, which gives the player to move.
    fn canonical(&self, s: &State) -> State {
        State { plies: s.plies & 1, captures: 0, hash: 0, ..*s }
    }

    /// The key of the stones, without the player to move: superko is positional.
    #[inline]
    fn history_key(&self, s: &State) -> u64 {
        s.hash
    }

    fn set_up(&self, set_up: SetUp<'_>) -> Result<State> {
        set_up::set_up(self, set_up)
    }

    fn view(&self, s: &State, _viewer: Viewer) -> View {
        let pieces = Piece::pair([Shape::Disc; 2], ["black", "white"]);
        let stone = |point: u32| Piece::of(has(&s.stones[0], point as u16), has(&s.stones[1], point as u16));
        let grid = GridView {
            columns: (0..self.size).map(|column| column_letter(column).to_string()).collect(),
            rows: (1..=self.size).rev().map(|row| row.to_string()).collect(),
            ..board::grid(self.size, GridStyle::Lines, pieces, stone)
        };
        let barred = (0..self.points()).filter(|&point| has(&s.barred, point)).map(usize::from);
        View::new(BoardView::Grid(grid), &[Colour::Black, Colour::White]).with_marks(barred, "superko")
    }

    fn spot(&self, _state: &State, action: u16) -> Spot {
        if action == self.points() { Spot::Button } else { Spot::Place(action) }
    }

    fn sgf_point(&self, action: u16) -> Option<String> {
        let pass = action == self.points();
        Some(if pass { String::new() } else { board::sgf_point(action.into(), self.size) })
    }

    /// A column letter without I and the row counted from below, as in GTP: `D4`; or `pass`.
    fn action_name(&self, _state: &State, action: u16) -> String {
        if action == self.points() {
            return "pass".into();
        }
        let (row, column) = (u32::from(action) / self.size, u32::from(action) % self.size);
        format!("{}{}", column_letter(column), self.size - row)
    }
}
