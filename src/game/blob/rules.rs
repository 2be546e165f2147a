//! The state of a game of Blob and its steps: deal, bid, play. Independent of observations and names.

use super::table::{NUM_CARDS, Table};
use super::{Blob, MAX_PLAYERS, Trump};
use crate::device_struct::{device_constants, device_enum, device_struct};
use bytemuck::{Pod, Zeroable};

device_constants! {
    fn device_constants;
    /// The entry of [`State::bids`] of a player who has not bid.
    pub const NO_BID: u8 = 255;
    /// Every card.
    pub(super) const PACK: u64 = (1 << NUM_CARDS) - 1;
    /// The cards of spades; suit s is this shifted by 13 s.
    const SPADES: u64 = (1 << 13) - 1;
}

device_enum! {
    /// The phase of a round.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Phase: u8 {
        /// Cards are dealt, one by one.
        Deal = 0,
        /// Players bid.
        Bid = 1,
        /// Players play cards.
        Play = 2,
        /// The game is over.
        Over = 3,
        /// The number of players is drawn.
        Seating = 4,
    }
}

device_struct! {
    /// One position. Sets of cards are bit masks, bit c for card c. Entries of seats without a player stay as at the start.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// Cards in each player's hand. `[8]`
        pub hands: [u64; MAX_PLAYERS],
        /// Cards of this round's finished tricks.
        pub gone: u64,
        /// Points of the finished rounds. `[8]`
        pub scores: [u16; MAX_PLAYERS],
        /// The cards of the current trick in order of play, the first from `leader`; 0 beyond them. `[8]`
        pub trick: [u8; MAX_PLAYERS],
        /// Bids of this round, [`NO_BID`] where none was made. `[8]`
        pub bids: [u8; MAX_PLAYERS],
        /// Tricks taken in this round. `[8]`
        pub tricks: [u8; MAX_PLAYERS],
        /// Points of the last finished round, 0 before the first. `[8]`
        pub round_points: [u8; MAX_PLAYERS],
        /// Bit 4 p + s: player p has shown, by not following suit, that it has no cards of suit s.
        pub voids: u32,
        /// The round, from 0.
        pub round: u8,
        /// The number of the round's [`Phase`].
        pub phase: u8 as "Phase",
        /// The player who bids first, or leads the current trick.
        pub leader: u8,
        /// Cards dealt, bids made or cards in the current trick, by phase.
        pub count: u8,
        /// Number of players, 0 until it is drawn.
        pub players: u8,
        /// Zeros, for a multiple of 8 bytes. `[7]`
        pub unused: [u8; 7],
    }
}

/// The cards of `suit`.
#[inline]
pub(super) fn suit_cards(suit: usize) -> u64 {
    SPADES << (13 * suit)
}

/// The suit of `card`.
#[inline]
pub(super) fn suit_of(card: u8) -> usize {
    usize::from(card) / 13
}

/// Writes `cards` in ascending order to the front of `out`; returns the count.
#[inline]
pub(super) fn list_cards(mut cards: u64, out: &mut [u16]) -> usize {
    let n = cards.count_ones() as usize;
    for index in &mut out[..n] {
        *index = cards.trailing_zeros() as u16;
        cards &= cards - 1;
    }
    n
}

impl State {
    /// The state before the number of players is drawn.
    pub(super) fn at_seating() -> Self {
        Self { bids: [NO_BID; MAX_PLAYERS], phase: Phase::Seating as u8, ..Self::zeroed() }
    }

    /// The state before the first card of `round` is dealt.
    pub(super) fn at_deal(table: &Table, round: usize) -> Self {
        Self {
            bids: [NO_BID; MAX_PLAYERS],
            round: round as u8,
            phase: Phase::Deal as u8,
            leader: table.seat_after(table.dealer_in(round), 1) as u8,
            players: table.players as u8,
            ..Self::zeroed()
        }
    }

    /// The round that was finished last, in a finished game or before a deal.
    pub(super) fn last_finished(&self) -> usize {
        usize::from(if self.phase() == Phase::Over { self.round } else { self.round.saturating_sub(1) })
    }

    /// The phase.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self.phase {
            0 => Phase::Deal,
            1 => Phase::Bid,
            2 => Phase::Play,
            3 => Phase::Over,
            _ => Phase::Seating,
        }
    }

    /// The cards of the current trick in order of play.
    #[inline]
    pub fn trick(&self) -> &[u8] {
        let n = if self.phase() == Phase::Play { usize::from(self.count) } else { 0 };
        &self.trick[..n]
    }

    /// The cards of the current trick as a set.
    pub(super) fn trick_cards(&self) -> u64 {
        self.trick().iter().fold(0, |cards, &card| cards | 1 << card)
    }

    /// The cards neither in a hand nor played: before the play, the undealt ones.
    #[inline]
    pub(super) fn stock(&self) -> u64 {
        let held = self.hands.iter().fold(0, |all, hand| all | hand);
        PACK & !(held | self.gone | self.trick_cards())
    }

    /// The suits in which `player` has shown a void, bit s for suit s.
    #[inline]
    pub fn voids_of(&self, player: usize) -> u32 {
        self.voids >> (4 * player) & 0b1111
    }
}

impl Blob {
    /// Whether all numbers are in the ranges of this game's seats, rounds, bids and cards.
    pub(super) fn fits(&self, s: &State) -> bool {
        if s.players == 0 {
            return self.seated == 0 && *s == State::at_seating();
        }
        self.numbers_of_players().contains(&usize::from(s.players)) && self.table(s).fits(s)
    }
}

impl Table {
    /// The points of `player` minus the mean of the others', as a share of the maximum of a game.
    pub(super) fn lead(&self, s: &State, player: usize) -> f32 {
        self.share_of(s.scores.map(i32::from), player, self.max_points())
    }

    /// The same of the points of the last finished round alone, as a share of the maximum of that round.
    pub(super) fn lead_in_round(&self, s: &State, player: usize) -> f32 {
        self.share_of(s.round_points.map(i32::from), player, 10 + self.cards_in(s.last_finished()))
    }

    /// The player who bids or plays next.
    #[inline]
    pub(super) fn to_act(self, s: &State) -> usize {
        self.seat_after(usize::from(s.leader), usize::from(s.count))
    }

    fn fits(&self, s: &State) -> bool {
        let (players, round) = (self.players, usize::from(s.round));
        if round >= self.num_rounds() || usize::from(s.leader) >= players || s.phase > Phase::Over as u8 {
            return false;
        }
        let cards = self.cards_in(round);
        let tricks: usize = s.tricks.iter().map(|&n| usize::from(n)).sum();
        let (max, tricks_begun) = match s.phase() {
            Phase::Deal => (players * cards, tricks),
            Phase::Bid => (players, tricks),
            Phase::Play => (players, tricks + usize::from(s.count > 0)),
            Phase::Over | Phase::Seating => (1, tricks),
        };
        usize::from(s.count) < max
            && tricks_begun <= cards
            && s.bids.iter().all(|&bid| bid == NO_BID || usize::from(bid) <= NUM_CARDS / 4)
            && s.trick.iter().all(|&card| usize::from(card) < NUM_CARDS)
    }

    pub(super) fn legal_bids(&self, s: &State, out: &mut [u16]) -> usize {
        let players = self.players;
        let cards = self.cards_in(usize::from(s.round));
        let bidder_is_last = usize::from(s.count) + 1 == players;
        let sum: usize =
            s.bids[..players].iter().filter(|&&bid| bid != NO_BID).map(|&bid| usize::from(bid)).sum();
        let mut n = 0;
        for bid in (0..=cards).filter(|bid| !bidder_is_last || bid + sum != cards) {
            out[n] = bid as u16;
            n += 1;
        }
        n
    }

    /// The cards that the player to act may play: of the suit led, if there are any in hand.
    #[inline]
    pub(super) fn playable(&self, s: &State) -> u64 {
        let hand = s.hands[self.to_act(s)];
        if s.count == 0 {
            return hand;
        }
        let following = hand & suit_cards(suit_of(s.trick[0]));
        if following == 0 { hand } else { following }
    }

    #[inline]
    pub(super) fn deal(&self, s: &mut State, card: u16) {
        s.hands[usize::from(s.count) % self.players] |= 1 << card;
        s.count += 1;
        if usize::from(s.count) == self.players * self.cards_in(usize::from(s.round)) {
            s.phase = Phase::Bid as u8;
            s.count = 0;
        }
    }

    pub(super) fn bid(&self, s: &mut State, bid: u16) {
        s.bids[self.to_act(s)] = bid as u8;
        s.count += 1;
        if usize::from(s.count) == self.players {
            s.phase = Phase::Play as u8;
            s.count = 0;
        }
    }

    #[inline]
    pub(super) fn play(&self, s: &mut State, card: u16) {
        let player = self.to_act(s);
        let card = card as u8;
        s.hands[player] &= !(1 << card);
        s.trick[usize::from(s.count)] = card;
        let led = suit_of(s.trick[0]);
        if suit_of(card) != led {
            s.voids |= 1 << (4 * player + led);
        }
        s.count += 1;
        if usize::from(s.count) == self.players {
            self.finish_trick(s);
        }
    }

    /// The player whose card is the best of the current trick so far, which is not empty.
    #[inline]
    pub(super) fn trick_winner(&self, s: &State) -> usize {
        let (trick, trump) = (s.trick(), self.trump_in(usize::from(s.round)));
        let led = suit_of(trick[0]);
        let strength = |card: u8| {
            let suit = suit_of(card);
            let is_trump = trump != Trump::None && suit == trump as usize;
            32 * u8::from(is_trump) + 16 * u8::from(suit == led) + card % 13
        };
        let (mut best, mut index) = (strength(trick[0]), 0);
        for (i, &card) in trick.iter().enumerate().skip(1) {
            if strength(card) > best {
                (best, index) = (strength(card), i);
            }
        }
        self.seat_after(usize::from(s.leader), index)
    }

    fn finish_trick(&self, s: &mut State) {
        let winner = self.trick_winner(s);
        s.gone |= s.trick_cards();
        s.trick = [0; MAX_PLAYERS];
        s.tricks[winner] += 1;
        s.leader = winner as u8;
        s.count = 0;
        if s.hands[winner] == 0 {
            self.finish_round(s);
        }
    }

    fn finish_round(&self, s: &mut State) {
        for player in 0..self.players {
            let points = if s.bids[player] == s.tricks[player] { 10 + s.bids[player] } else { 0 };
            s.round_points[player] = points;
            s.scores[player] += u16::from(points);
        }
        let next = usize::from(s.round) + 1;
        if next == self.num_rounds() {
            s.phase = Phase::Over as u8;
        } else {
            let (scores, round_points) = (s.scores, s.round_points);
            *s = State { scores, round_points, ..State::at_deal(self, next) };
        }
    }
}
