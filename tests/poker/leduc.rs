//! Leduc poker (Southey et al. 2005) for two players, by the rules of OpenSpiel's `leduc_poker`.
//!
//! **Rules.** The deck has the ranks J, Q and K twice. Each player pays one chip and is dealt a card, which the other does not see. In a
//! round of betting player 0 begins. A player folds (only if the other has paid more), calls (pays as much as the other, perhaps nothing),
//! or raises (calls and pays 2 more, in the second round 4); a round has at most two raises. It ends by a call that is not its first action. After the first
//! round a card is dealt for both to see. After the second a pair with it wins the pot, else the higher rank; equal ranks divide it.
//!
//! **Numbers.** Actions: 0 fold, 1 call, 2 raise. Outcomes of chance: the card, rank x 2 + suit. Returns are chips over [`MAX_CHIPS`],
//! scores are chips. The observation is OpenSpiel's tensor of the information state: the suits, which mean nothing, are in it.

use crate::deck;
use bytemuck::{Pod, Zeroable};
use std::cmp::Ordering;
use vecaz::config::keys::section;
use vecaz::game::view::{View, Viewer};
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};
use vecaz::rng::RngStream;

/// Maximum number of chips that a player can win: one, and two raises of 2 and of 4.
pub const MAX_CHIPS: f32 = 13.0;

const NUM_CARDS: u16 = 6;
const CARDS: [&str; NUM_CARDS as usize] = ["J1", "J2", "Q1", "Q2", "K1", "K2"];
const ACTIONS: [&str; 3] = ["fold", "call", "raise"];
/// The index in [`State::cards`] of the card that both see.
const SHARED: usize = 2;
/// Chips of a raise in each round.
const RAISES: [u8; 2] = [2, 4];
const MAX_RAISES: usize = 2;
/// Maximum number of actions of a round: call, raise, raise, call.
const MAX_BETTING: usize = 4;

// Actions as a state holds them: the number plus 1.
const FOLD: u8 = 1;
const CALL: u8 = 2;
const RAISE: u8 = 3;

section! {
    /// Leduc poker has no settings.
    Leduc {}
}

/// One position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// Each player's card and the one that both see, plus 1; 0 before it is dealt. `[3]`
    cards: [u8; 3],
    /// What the players did in each round, in turns, as the action's number plus 1; 0 for what is to come. `[2][4]`
    betting: [[u8; MAX_BETTING]; 2],
}

impl State {
    fn round(&self) -> usize {
        usize::from(self.cards[SHARED] != 0)
    }

    /// The actions of `round` so far.
    fn actions(&self, round: usize) -> &[u8] {
        let betting = &self.betting[round];
        &betting[..betting.iter().position(|&action| action == 0).unwrap_or(MAX_BETTING)]
    }

    /// The player whose action is next, if the round goes on.
    fn mover(&self) -> usize {
        self.actions(self.round()).len() % 2
    }

    fn turn(&self) -> Turn {
        let actions = self.actions(self.round());
        match (actions.last(), self.round()) {
            _ if self.cards[..SHARED].contains(&0) => Turn::Chance,
            (Some(&FOLD), _) => Turn::Over,
            (Some(&CALL), 0) if actions.len() > 1 => Turn::Chance,
            (Some(&CALL), _) if actions.len() > 1 => Turn::Over,
            _ => Turn::Player(self.mover() as u8),
        }
    }

    /// The chips that each player has paid. `[2]`
    fn paid(&self) -> [u8; 2] {
        let mut paid = [1; 2];
        for (round, raise) in RAISES.into_iter().enumerate() {
            for (number, &action) in self.actions(round).iter().enumerate() {
                let max = paid[0].max(paid[1]);
                match action {
                    CALL => paid[number % 2] = max,
                    RAISE => paid[number % 2] = max + raise,
                    _ => {}
                }
            }
        }
        paid
    }

    /// The player's rank, 3 more for a pair.
    fn strength(&self, player: usize) -> u8 {
        let rank = |card: u8| card.saturating_sub(1) / 2;
        let own = rank(self.cards[player]);
        if own == rank(self.cards[SHARED]) { own + 3 } else { own }
    }

    /// The chips that player 0 has won, at the end.
    fn chips(&self) -> f32 {
        let paid = self.paid().map(f32::from);
        let [first, second] = match self.actions(self.round()).last() {
            // The player who would be next has not folded.
            Some(&FOLD) => [1 - self.mover() as u8, self.mover() as u8],
            _ => [0, 1].map(|player| self.strength(player)),
        };
        match first.cmp(&second) {
            Ordering::Greater => paid[1],
            Ordering::Less => -paid[0],
            Ordering::Equal => 0.0,
        }
    }

    fn legal_actions(&self) -> Vec<u16> {
        let (paid, mover, actions) = (self.paid(), self.mover(), self.actions(self.round()));
        let raises = actions.iter().filter(|&&action| action == RAISE).count();
        let can = [paid[mover] < paid[1 - mover], true, raises < MAX_RAISES];
        (0..).zip(can).filter(|&(_, can)| can).map(|(action, _)| action).collect()
    }
}

impl Game for Leduc {
    type State = State;
    const NAME: &'static str = "leduc_poker";

    options_by_section!();

    fn aim(&self, _player: u8) -> String {
        "wins chips with a pair or the higher card, or by a raise that the other does not call".into()
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: ACTIONS.len(),
            max_legal: ACTIONS.len(),
            num_chance: CARDS.len(),
            max_chance_run: 1,
            max_plies: 3 + 2 * MAX_BETTING,
            obs: ObsShape { channels: 30, height: 1, width: 1 },
            hidden_information: true,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::zeroed()
    }

    fn is_valid(&self, s: &State) -> bool {
        s.cards.iter().all(|&card| u16::from(card) <= NUM_CARDS)
            && s.betting.as_flattened().iter().all(|&action| action <= RAISE)
    }

    fn turn(&self, s: &State) -> Turn {
        s.turn()
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let actions = match s.turn() {
            Turn::Chance => deck::left(NUM_CARDS, &s.cards).collect(),
            Turn::Player(_) | Turn::Over => s.legal_actions(),
        };
        out[..actions.len()].copy_from_slice(&actions);
        actions.len()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        match s.turn() {
            Turn::Chance => {
                let next = s.cards.iter().position(|&card| card == 0).expect("a card to deal");
                s.cards[next] = deck::held(action);
            }
            Turn::Player(_) | Turn::Over => {
                let (round, number) = (s.round(), s.actions(s.round()).len());
                s.betting[round][number] = action as u8 + 1;
            }
        }
    }

    /// One-hot: the observer `[2]`, the observer's card `[6]`, the card that both see `[6]`, each call and raise `[2][4][2]`.
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        out.fill(0.0);
        out[usize::from(player)] = 1.0;
        deck::set_one_hot(&mut out[2..], s.cards[usize::from(player)]);
        deck::set_one_hot(&mut out[8..], s.cards[SHARED]);
        for (number, &action) in s.betting.as_flattened().iter().enumerate() {
            deck::set_one_hot(&mut out[14 + 2 * number..], action.saturating_sub(FOLD));
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

    /// A player's card is seen by the player to whom it is dealt, all else by both.
    fn sees_action(&self, s: &State, _: u16, player: u8) -> bool {
        let dealt_to = s.cards[..SHARED].iter().position(|&card| card == 0);
        dealt_to.is_none_or(|dealt_to| dealt_to == usize::from(player))
    }

    fn view(&self, s: &State, viewer: Viewer) -> View {
        let card = |index: usize| match s.cards[index] {
            0 => "-",
            card if index == SHARED || viewer.knows_hand_of(index as u8) => CARDS[usize::from(card) - 1],
            _ => "?",
        };
        let played =
            (0..2).flat_map(|round| s.actions(round)).map(|&action| ACTIONS[usize::from(action) - 1]);
        let words: Vec<&str> = (0..3).map(card).chain(played).collect();
        View::text(words.join(" "))
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        let names = if s.turn() == Turn::Chance { &CARDS[..] } else { &ACTIONS[..] };
        names[usize::from(action)].into()
    }
}
