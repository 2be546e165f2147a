//! Gomoku: five in a row wins, a full board draws.
//!
//! Actions are cells, row-major (0 top left), as in OpenSpiel. Player 0 has black and starts.
//!
//! With `opening = "swap2"` (Renju International Federation, gomoku rules) three actions follow the cells: `black`,
//! `white`, `more`. Player 0 puts down black, white, black; player 1 takes black, or takes white, or (`more`) puts down a
//! white and a black stone and leaves the choice of colours to player 0. Whoever has white then moves. So players move
//! several times in a row here, and player 0 may end up with white.

use super::board::{self, Cells, check_side};
use super::{Game, History, ObsShape, Sizes, Turn, parse_options, to_options};
use crate::error::Result;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// Which rows win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Five or more.
    Freestyle,
    /// Five and no more; a longer row is worth nothing.
    Exact,
}

/// How the game is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// Black moves anywhere.
    None,
    /// Three stones by player 0, then player 1 chooses; see the module's head.
    Swap2,
}

/// The settings of Gomoku.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gomoku {
    /// Side of the board, 5 to 19.
    pub size: u32,
    /// Which rows win.
    pub rule: Rule,
    /// How the game is opened.
    pub opening: Opening,
}

impl Default for Gomoku {
    fn default() -> Self {
        Self { size: 15, rule: Rule::Freestyle, opening: Opening::None }
    }
}

/// One position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
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
    pub phase: u8,
    /// 0 while the game goes on, 1 or 2 for the winner's number plus one, 3 for a draw.
    pub outcome: u8,
}

/// The phases of a game. All but [`Phase::Alternate`] belong to Swap2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
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

const ALTERNATE: u8 = Phase::Alternate as u8;
const OPENING: u8 = Phase::Opening as u8;
const FIRST_CHOICE: u8 = Phase::FirstChoice as u8;
const MORE: u8 = Phase::More as u8;
const LAST_CHOICE: u8 = Phase::LastChoice as u8;

const BLACK: usize = 0;
const DRAW: u8 = 3;

/// The choices of Swap2, counted from the last cell on.
const CHOICES: [&str; 3] = ["black", "white", "more"];
const TAKE_BLACK: u32 = 0;
const MORE_STONES: u32 = 2;

/// One step along a row, a column, and either diagonal.
const DIRECTIONS: [(i32, i32); 4] = [(0, 1), (1, 0), (1, 1), (1, -1)];

impl Gomoku {
    #[inline(always)]
    fn num_cells(&self) -> u32 {
        self.size * self.size
    }

    /// Stones that follow `cell` without a gap in one direction.
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

    /// True where the stone at `cell` stands in a row that wins.
    #[inline]
    fn wins(&self, stones: &Cells, cell: u32) -> bool {
        DIRECTIONS.iter().any(|&(down, right)| {
            let length = 1 + self.run(stones, cell, (down, right)) + self.run(stones, cell, (-down, -right));
            match self.rule {
                Rule::Freestyle => length >= 5,
                Rule::Exact => length == 5,
            }
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

    /// The colour whose stones stand in `player`'s first plane.
    fn first_colour(&self, s: &State, player: u8) -> usize {
        if s.phase == ALTERNATE { usize::from(player != s.black) } else { (s.placed & 1) as usize }
    }
}

impl Game for Gomoku {
    type State = State;
    const NAME: &'static str = "gomoku";

    fn from_options(options: &toml::Table) -> Result<Self> {
        let g: Self = parse_options(Self::NAME, options)?;
        check_side(g.size, 5..=board::MAX_SIDE)?;
        Ok(g)
    }

    fn options(&self) -> toml::Table {
        to_options(self)
    }

    fn sizes(&self) -> Sizes {
        let side = self.size as usize;
        let (choices, plies, planes) = match self.opening {
            Opening::None => (0, 0, 0),
            Opening::Swap2 => (CHOICES.len(), 2, 4),
        };
        Sizes {
            num_players: 2,
            num_actions: side * side + choices,
            max_legal: side * side,
            num_chance: 0,
            max_chance_run: 0,
            obs: ObsShape { channels: 2 + planes, height: side, width: side },
            max_plies: side * side + plies,
            num_symmetries: 8,
            zero_sum: true,
            hidden_information: false,
            uses_history: false,
        }
    }

    fn init(&self) -> State {
        let phase = match self.opening {
            Opening::None => Phase::Alternate,
            Opening::Swap2 => Phase::Opening,
        };
        State { stones: [Cells::EMPTY; 2], placed: 0, to_play: 0, black: 0, phase: phase as u8, outcome: 0 }
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
    /// opening in their order: 1 in the present phase for the player to move, -1 for the other, else 0.
    /// `[2 or 6, size, size]`
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let cells = self.num_cells() as usize;
        let (stones, phases) = out.split_at_mut(2 * cells);
        let colour = self.first_colour(s, player);
        s.stones[colour].write_plane(&mut stones[..cells]);
        s.stones[1 - colour].write_plane(&mut stones[cells..]);
        phases.fill(0.0);
        if s.phase != ALTERNATE {
            let sign = if player == s.to_play { 1.0 } else { -1.0 };
            phases[(usize::from(s.phase) - 1) * cells..][..cells].fill(sign);
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

    /// `X` black, `O` white; in Swap2 a last line tells what is to be done.
    fn display(&self, s: &State) -> String {
        let mut text = board::display(self.size, 0, |cell| {
            match (s.stones[BLACK].contains(cell as usize), s.stones[1 - BLACK].contains(cell as usize)) {
                (true, _) => 'X',
                (_, true) => 'O',
                _ => '.',
            }
        });
        if self.opening == Opening::Swap2 {
            text += &match s.phase {
                ALTERNATE => format!("player {} has X", s.black),
                OPENING | MORE => {
                    format!("player {} puts down {}", s.to_play, ["X", "O"][s.placed as usize & 1])
                }
                _ => format!("player {} chooses a colour", s.to_play),
            };
            text += "\n";
        }
        text
    }

    /// Column letter and row number from the top, or `black`, `white`, `more`.
    fn action_name(&self, _state: &State, action: u16) -> String {
        match u32::from(action).checked_sub(self.num_cells()) {
            None => board::cell_name(u32::from(action), self.size),
            Some(choice) => CHOICES[choice as usize].into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    fn gomoku(size: u32, rule: Rule) -> Gomoku {
        Gomoku { size, rule, opening: Opening::None }
    }

    fn legal(game: &Gomoku, s: &State) -> Vec<u16> {
        let mut out = [0; 361];
        let n = game.legal(s, History::default(), &mut out);
        out[..n].to_vec()
    }

    fn play(game: &Gomoku, names: &str) -> State {
        let mut s = game.init();
        for name in names.split_whitespace() {
            let action = game.parse_action(&s, History::default(), name).expect(name);
            game.step(&mut s, action, History::default());
        }
        s
    }

    /// Every row, column and diagonal of the board as text, read for rows of five.
    fn winner_by_text(side: i32, s: &State, rule: Rule) -> Option<char> {
        let mark = |row: i32, column: i32| {
            let cell = (row * side + column) as usize;
            [(0, 'X'), (1, 'O')]
                .into_iter()
                .find(|&(c, _)| s.stones[c].contains(cell))
                .map_or('.', |(_, m)| m)
        };
        let inside = |&(row, column): &(i32, i32)| (0..side).contains(&row) && (0..side).contains(&column);
        let read = |place: &dyn Fn(i32) -> (i32, i32)| -> String {
            (-side..2 * side).map(place).filter(inside).map(|(row, column)| mark(row, column)).collect()
        };
        let lines = (-side..2 * side).flat_map(|k| {
            [read(&|i| (k, i)), read(&|i| (i, k)), read(&|i| (i, i + k)), read(&|i| (i, k - i))]
        });
        let lines: Vec<String> = lines.collect();
        ['X', 'O'].into_iter().find(|&colour| {
            let mut runs = lines.iter().flat_map(|line| line.split(|c| c != colour)).map(str::len);
            match rule {
                Rule::Freestyle => runs.any(|length| length >= 5),
                Rule::Exact => runs.any(|length| length == 5),
            }
        })
    }

    #[test]
    fn random_games_end_where_the_text_of_a_line_shows_it() {
        let mut ends = [0; 4];
        for (size, games) in [(5, 60), (6, 60), (7, 40), (9, 10), (15, 4), (19, 2)] {
            for (seed, rule) in (0..games).flat_map(|seed| [(seed, Rule::Freestyle), (seed, Rule::Exact)]) {
                let game = gomoku(size, rule);
                let mut rng = Key::new(seed, Purpose::Evaluation).with(u64::from(size)).stream();
                let mut s = game.init();
                while game.turn(&s) != Turn::Over {
                    let actions = legal(&game, &s);
                    game.step(&mut s, actions[rng.below(actions.len())], History::default());
                    let expected = match winner_by_text(size as i32, &s, rule) {
                        Some('X') => 1,
                        Some(_) => 2,
                        None if s.placed == size * size => DRAW,
                        None => 0,
                    };
                    assert_eq!(s.outcome, expected, "{}", game.display(&s));
                }
                ends[usize::from(s.outcome)] += 1;
            }
        }
        assert!(ends[1..].iter().all(|&n| n > 20), "all three results were met: {ends:?}");
    }

    #[test]
    fn six_in_a_row_win_only_in_freestyle() {
        let moves = "a1 a3 b1 b3 c1 c3 e1 e3 f1 f3 d1";
        assert_eq!(play(&gomoku(15, Rule::Freestyle), moves).outcome, 1);
        assert_eq!(play(&gomoku(15, Rule::Exact), moves).outcome, 0);
        // The other player may then still win with five.
        assert_eq!(play(&gomoku(15, Rule::Exact), &format!("{moves} h8 o15 d3")).outcome, 0);
        assert_eq!(play(&gomoku(15, Rule::Exact), "a1 a3 b1 b3 c1 c3 e1 e3 f1 h9 d1 d3").outcome, 2);
        // A stone in a row of six and in one of five wins.
        let both = "a1 a15 b1 b15 c1 c15 e1 f15 f1 g15 d2 h15 d3 i15 d4 k15 d5 l15 d1";
        assert_eq!(play(&gomoku(15, Rule::Exact), both).outcome, 1);
    }

    #[test]
    fn rows_do_not_go_round_the_board() {
        assert_eq!(play(&gomoku(5, Rule::Freestyle), "c1 a3 d1 b3 e1 c3 a2 e4 b2").outcome, 0);
        assert_eq!(play(&gomoku(5, Rule::Freestyle), "e1 a1 d2 b1 c3 c1 b4 d1 a5").outcome, 1);
    }

    #[test]
    fn a_full_board_without_five_is_a_draw() {
        let board = ["XXOXX", "OOXOO", "XXOXX", "OOXOO", "XOXOX"].concat();
        let cells = |mark: char| {
            board.chars().enumerate().filter(move |&(_, c)| c == mark).map(|(cell, _)| cell as u16)
        };
        let game = gomoku(5, Rule::Freestyle);
        let mut s = game.init();
        let mut white = cells('O');
        for black in cells('X') {
            assert_eq!(s.outcome, 0);
            game.step(&mut s, black, History::default());
            white.by_ref().take(1).for_each(|cell| game.step(&mut s, cell, History::default()));
        }
        assert_eq!((s.outcome, s.placed), (DRAW, 25));
        let mut returns = [9.0; 2];
        game.returns(&s, &mut returns);
        assert_eq!(returns, [0.0; 2]);
    }

    #[test]
    fn swap2_gives_every_choice_its_colours_and_turns() {
        let game = Gomoku { opening: Opening::Swap2, ..Gomoku::default() };
        let turn_and_black = |names: &str| {
            let s = play(&game, names);
            (game.turn(&s), s.black)
        };
        let three = "h8 a1 h9";
        assert_eq!(legal(&game, &play(&game, three)), [225, 226, 227]);
        for (names, player) in [("", 0), ("h8", 0), ("h8 a1", 0), (three, 1)] {
            assert_eq!(turn_and_black(names).0, Turn::Player(player));
        }
        assert_eq!(turn_and_black(&format!("{three} black")), (Turn::Player(0), 1));
        assert_eq!(turn_and_black(&format!("{three} white")), (Turn::Player(1), 0));
        assert_eq!(turn_and_black(&format!("{three} more")).0, Turn::Player(1));
        assert_eq!(turn_and_black(&format!("{three} more a2")).0, Turn::Player(1));
        let five = format!("{three} more a2 h10");
        assert_eq!(legal(&game, &play(&game, &five)), [225, 226]);
        assert_eq!(turn_and_black(&five).0, Turn::Player(0));
        assert_eq!(turn_and_black(&format!("{five} black")), (Turn::Player(1), 0));
        assert_eq!(turn_and_black(&format!("{five} white")), (Turn::Player(0), 1));
        let s = play(&game, &five);
        assert_eq!(s.stones.map(|stones| stones.iter().count()), [3, 2]);
        // Player 0 took white; black's five (h8 to h12) is player 1's.
        let s = play(&game, &format!("{five} white b1 h11 b2 h12"));
        let mut returns = [9.0; 2];
        game.returns(&s, &mut returns);
        assert_eq!((game.turn(&s), returns), (Turn::Over, [-1.0, 1.0]));
    }

    #[test]
    fn swap2_shows_the_phase_and_the_colour_to_be_placed() {
        let game = Gomoku { size: 5, rule: Rule::Freestyle, opening: Opening::Swap2 };
        // The sum of each plane.
        let planes = |names: &str, player: u8| -> Vec<f32> {
            let mut out = [9.0; 150];
            game.observe(&play(&game, names), player, &mut out);
            out.chunks(25).map(|plane| plane.iter().sum::<f32>()).collect()
        };
        assert_eq!(planes("", 0), [0., 0., 25., 0., 0., 0.]);
        assert_eq!(planes("a1", 0), [0., 1., 25., 0., 0., 0.]);
        assert_eq!(planes("a1 b1 c1", 1), [1., 2., 0., 25., 0., 0.]);
        assert_eq!(planes("a1 b1 c1", 0), [1., 2., 0., -25., 0., 0.]);
        assert_eq!(planes("a1 b1 c1 more d2", 1), [2., 2., 0., 0., 25., 0.]);
        assert_eq!(planes("a1 b1 c1 more d2 d3", 0), [2., 3., 0., 0., 0., 25.]);
        assert_eq!(planes("a1 b1 c1 black", 0), [1., 2., 0., 0., 0., 0.]);
        assert_eq!(planes("a1 b1 c1 black d3", 1), [2., 2., 0., 0., 0., 0.]);
        assert_eq!(planes("a1 b1 c1 black d3 d4", 0), [2., 3., 0., 0., 0., 0.]);
    }

    #[test]
    fn bad_options_name_the_key() {
        for (options, part) in [
            ("size = 4", "game.size: got 4, expected 5..=19"),
            ("rule = 'renju'", "game.rule: got \"renju\", expected `freestyle` or `exact`"),
            ("opening = 'swap'", "game.opening: got \"swap\", expected `none` or `swap2`"),
        ] {
            let table = options.parse().expect("TOML");
            let message = Gomoku::from_options(&table).expect_err(options).to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
