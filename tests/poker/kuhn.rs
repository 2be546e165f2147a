//! Kuhn poker (Kuhn 1950) for two players, by the rules of OpenSpiel's `kuhn_poker`.
//!
//! **Rules.** Each player pays one chip and is dealt one of three cards, which the other does not see. Player 0 passes or bets one more
//! chip, then player 1 does; if player 1 is the first to bet, player 0 decides once more. Who passes after a bet has folded; otherwise the
//! higher card takes the pot.
//!
//! **Numbers.** Actions: 0 pass, 1 bet. Outcomes of chance: the card, 0 the lowest; player 0's is dealt first. Returns are chips over
//! [`MAX_CHIPS`], scores are chips. The observation is OpenSpiel's tensor of the information state. Player 0 loses 1/18 of a chip a game if
//! both play an equilibrium.

use crate::deck;
use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{View, Viewer};
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};
use vecaz::rng::RngStream;

/// Maximum number of chips that a player can win.
pub const MAX_CHIPS: f32 = 2.0;

const NUM_CARDS: u16 = 3;
const CARDS: [&str; NUM_CARDS as usize] = ["J", "Q", "K"];
const ACTIONS: [&str; 2] = ["pass", "bet"];

// Actions as a state holds them: the number plus 1.
const PASS: u8 = 1;
const BET: u8 = 2;

section! {
    /// Kuhn poker has no settings.
    Kuhn {}
}

/// One position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// Each player's card plus 1; 0 before it is dealt. `[2]`
    cards: [u8; 2],
    /// What the players did, in turns, as the action's number plus 1; 0 for what is to come. `[3]`
    betting: [u8; 3],
}

/// How the betting ended.
enum Outcome {
    /// Each player has paid this many chips, and the higher card wins.
    Showdown(f32),
    /// This player has folded, after both paid one chip.
    Fold(usize),
}

impl State {
    fn num_actions(&self) -> usize {
        self.betting.iter().take_while(|&&action| action != 0).count()
    }

    /// The player whose action is next, if the betting goes on.
    fn mover(&self) -> usize {
        self.num_actions() % 2
    }

    fn ending(&self) -> Option<Outcome> {
        match self.betting {
            [PASS, PASS, _] => Some(Outcome::Showdown(1.0)),
            [BET, BET, _] | [PASS, BET, BET] => Some(Outcome::Showdown(2.0)),
            [BET, PASS, _] => Some(Outcome::Fold(1)),
            [PASS, BET, PASS] => Some(Outcome::Fold(0)),
            _ => None,
        }
    }

    /// The chips that player 0 has won, 0 before the end.
    fn chips(&self) -> f32 {
        match self.ending() {
            Some(Outcome::Showdown(chips)) if self.cards[0] > self.cards[1] => chips,
            Some(Outcome::Showdown(chips)) => -chips,
            Some(Outcome::Fold(0)) => -1.0,
            Some(Outcome::Fold(_)) => 1.0,
            None => 0.0,
        }
    }
}

impl Game for Kuhn {
    type State = State;
    const NAME: &'static str = "kuhn_poker";

    options_by_section!();

    fn aim(&self, _player: u8) -> String {
        "wins chips with the higher card, or by a bet that the other does not call".into()
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: ACTIONS.len(),
            max_legal: ACTIONS.len(),
            num_chance: CARDS.len(),
            max_plies: 5,
            obs: ObsShape { channels: 11, height: 1, width: 1 },
            hidden_information: true,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::zeroed()
    }

    fn is_valid(&self, s: &State) -> bool {
        s.cards.iter().all(|&card| u16::from(card) <= NUM_CARDS) && s.betting.iter().all(|&a| a <= BET)
    }

    fn turn(&self, s: &State) -> Turn {
        match s.ending() {
            _ if s.cards.contains(&0) => Turn::Chance,
            Some(_) => Turn::Over,
            None => Turn::Player(s.mover() as u8),
        }
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let actions = match s.cards.contains(&0) {
            true => deck::left(NUM_CARDS, &s.cards).collect(),
            false => vec![0, 1],
        };
        out[..actions.len()].copy_from_slice(&actions);
        actions.len()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        match s.cards.iter().position(|&card| card == 0) {
            Some(player) => s.cards[player] = deck::held(action),
            None => s.betting[s.num_actions()] = action as u8 + 1,
        }
    }

    /// One-hot: the observer `[2]`, the observer's card `[3]`, each action `[3][2]`.
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        out.fill(0.0);
        out[usize::from(player)] = 1.0;
        deck::set_one_hot(&mut out[2..], s.cards[usize::from(player)]);
        for (number, &action) in s.betting.iter().enumerate() {
            deck::set_one_hot(&mut out[5 + 2 * number..], action);
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        out.copy_from_slice(&[s.chips() / MAX_CHIPS, -s.chips() / MAX_CHIPS]);
    }

    /// Chips.
    fn scores(&self, s: &State) -> Vec<f32> {
        vec![s.chips(), -s.chips()]
    }

    fn determinise(&self, s: &State, player: u8, rng: &mut RngStream) -> State {
        let mut drawn = *s;
        deck::redeal(&mut drawn.cards, usize::from(1 - player), NUM_CARDS, rng);
        drawn
    }

    /// A card is seen by the player to whom it is dealt, all else by both.
    fn sees_action(&self, s: &State, _: u16, player: u8) -> bool {
        s.cards.iter().position(|&card| card == 0).is_none_or(|dealt_to| dealt_to == usize::from(player))
    }

    fn view(&self, s: &State, viewer: Viewer) -> View {
        let hand = |player: u8| match s.cards[usize::from(player)] {
            0 => "-",
            card if viewer.knows_hand_of(player) => CARDS[usize::from(card) - 1],
            _ => "?",
        };
        let played = s.betting[..s.num_actions()].iter().map(|&action| ACTIONS[usize::from(action) - 1]);
        let words: Vec<&str> = [hand(0), hand(1)].into_iter().chain(played).collect();
        View::text(words.join(" "))
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        let names = if s.cards.contains(&0) { &CARDS[..] } else { &ACTIONS[..] };
        names[usize::from(action)].into()
    }
}
