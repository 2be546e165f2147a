//! The observation of Blob for one player, the observer: a vector of F = `175 + 33 P` elements; 307 for 4 players. Seats are
//! relative to the observer: with n players, seat k < n is player (observer + k) mod n, and the seats from n on are 0. Only public facts
//! and the observer's own hand are read, so states that the observer cannot distinguish have equal observations.
//!
//! | elements | content |
//! |---|---|
//! | 52 | own hand, one element a card |
//! | 52 | cards of this round's finished tricks |
//! | 52 | cards of the current trick |
//! | 33 a seat, seat 0 first | the seat, below |
//! | 5 | trump of the round, one-hot ♠ ♥ ♣ ♦ none |
//! | 4 | suit led, one-hot; 0 before the lead |
//! | 4 | phase, one-hot: deal, bid, play, over |
//! | 6 | cards of the round / 13; tricks still to come / 13; (bids made - cards) / 13; bids still to come / 8; rounds after this one / all rounds; points still to be had in them / in the game |
//!
//! A seat: its card in the current trick (suit one-hot 4, (rank + 1) / 13, 1 if it is the best so far); bid one-hot 14
//! (0 bids: all 0); bid / 13, tricks taken / 13, (bid - taken) / 13, 1 if bid = taken (all but the second 0 before its
//! bid); cards in hand / 13; suits shown void 4; 1 if dealer; 1 if first to bid or leader of the trick; 1 if to act; lead
//! so far, as a share of the maximum of the game.
//!
//! With `network_sees = "deal"` ([`Sight::Deal`]) 52 (P + 1) elements follow, F = 567 in total for 4 players:
//!
//! | elements | content |
//! |---|---|
//! | 52 a seat, seat 0 first | its hand |
//! | 52 | the best card of the current trick |
//!
//! There a card's index is 13 x (its suit, counted from the trump on) + the number of higher live cards of the suit. Live cards
//! are those in hands and the best of the trick. The value of a card in a deal depends on its rank among these only; all other
//! cards of the pack are out of play, and two deals that differ only in them have equal observations.

use super::rules::{suit_cards, suit_of};
use super::table::Table;
use super::{Blob, NO_BID, NUM_CARDS, Phase, Sight, State, Trump};
use crate::device_struct::device_constants;

device_constants! {
    fn device_constants;
    /// The first element of the seats.
    const SEATS_AT: usize as "int" = 3 * NUM_CARDS;
    /// Elements of a seat.
    const SEAT_LEN: usize as "int" = 33;
    /// Elements of the round, which follow the seats.
    const ROUND_LEN: usize as "int" = 19;
}

/// Number of leading elements of an observation that depend only on information of the observer.
pub(super) fn known_len(game: &Blob) -> usize {
    SEATS_AT + SEAT_LEN * game.players as usize + ROUND_LEN
}

/// F: elements of an observation.
pub(super) fn obs_len(game: &Blob) -> usize {
    match game.network_sees {
        Sight::Hand => known_len(game),
        Sight::Deal => known_len(game) + NUM_CARDS * (game.players as usize + 1),
    }
}

/// Writes elements in order into a zeroed array.
struct Writer<'a> {
    out: &'a mut [f32],
    at: usize,
}

impl Writer<'_> {
    fn number(&mut self, x: f32) {
        self.out[self.at] = x;
        self.at += 1;
    }

    fn share(&mut self, x: usize, of: usize) {
        self.number(x as f32 / of as f32);
    }

    /// Leaves `n` elements 0.
    fn skip(&mut self, n: usize) {
        self.at += n;
    }

    /// The first `n` bits of `set`.
    fn bits(&mut self, set: u64, n: usize) {
        for (i, x) in self.out[self.at..self.at + n].iter_mut().enumerate() {
            *x = (set >> i & 1) as f32;
        }
        self.at += n;
    }

    /// A one-hot of `n` elements, all 0 without an index.
    fn one_hot(&mut self, index: Option<usize>, n: usize) {
        if let Some(i) = index {
            self.out[self.at + i] = 1.0;
        }
        self.at += n;
    }
}

/// Writes the observation of `observer`. `[F]`
pub(super) fn write(game: &Blob, s: &State, observer: usize, out: &mut [f32]) {
    out.fill(0.0);
    let mut w = Writer { out, at: 0 };
    w.bits(s.hands[observer], NUM_CARDS);
    w.bits(s.gone, NUM_CARDS);
    w.bits(s.trick_cards(), NUM_CARDS);
    let table = &game.table(s);
    // One without a seat sees the table as player 0 does, without a hand.
    let first = if observer < table.players { observer } else { 0 };
    for k in 0..table.players {
        write_seat(table, s, table.seat_after(first, k), &mut w);
    }
    w.skip(SEAT_LEN * (table.seats - table.players));
    write_round(table, s, &mut w);
    if game.network_sees == Sight::Deal {
        write_deal(table, s, first, &mut w);
    }
}

/// Cards that `player` holds, from public facts only.
fn hand_size(table: &Table, s: &State, player: usize) -> usize {
    let players = table.players;
    let cards = table.cards_in(usize::from(s.round));
    match s.phase() {
        Phase::Deal => (usize::from(s.count) + players - 1 - player) / players,
        Phase::Bid => cards,
        Phase::Play => cards - tricks_made(s) - usize::from(index_in_trick(table, s, player).is_some()),
        Phase::Over | Phase::Seating => 0,
    }
}

fn tricks_made(s: &State) -> usize {
    s.tricks.iter().map(|&n| usize::from(n)).sum()
}

/// The index of `player`'s card in the current trick, if it has played one.
fn index_in_trick(table: &Table, s: &State, player: usize) -> Option<usize> {
    let in_trick = table.seat_after(player, table.players - usize::from(s.leader));
    (in_trick < s.trick().len()).then_some(in_trick)
}

fn write_seat(table: &Table, s: &State, player: usize, w: &mut Writer) {
    let card = index_in_trick(table, s, player).map(|in_trick| s.trick[in_trick]);
    w.one_hot(card.map(suit_of), 4);
    w.share(card.map_or(0, |card| usize::from(card % 13) + 1), 13);
    w.bits(u64::from(card.is_some() && table.trick_winner(s) == player), 1);

    let (bid, taken) = (s.bids[player], s.tricks[player]);
    let bid = (bid != NO_BID).then_some(usize::from(bid));
    w.one_hot(bid, 14);
    w.share(bid.unwrap_or(0), 13);
    w.share(usize::from(taken), 13);
    w.number(bid.map_or(0.0, |bid| (bid as f32 - f32::from(taken)) / 13.0));
    w.bits(u64::from(bid == Some(usize::from(taken))), 1);

    w.share(hand_size(table, s, player), 13);
    w.bits(u64::from(s.voids_of(player)), 4);
    let is_acting = matches!(s.phase(), Phase::Bid | Phase::Play);
    w.bits(u64::from(table.dealer_in(usize::from(s.round)) == player), 1);
    w.bits(u64::from(usize::from(s.leader) == player), 1);
    w.bits(u64::from(is_acting && table.to_act(s) == player), 1);
    w.number(table.lead(s, player));
}

fn write_round(table: &Table, s: &State, w: &mut Writer) {
    let (players, round) = (table.players, usize::from(s.round));
    let cards = table.cards_in(round);
    w.one_hot(Some(table.trump_in(round) as usize), 5);
    w.one_hot(s.trick().first().map(|&card| suit_of(card)), 4);
    w.one_hot(Some(s.phase() as usize).filter(|&phase| phase < 4), 4);

    let bids = s.bids[..players].iter().filter(|&&bid| bid != NO_BID);
    let (num_bids, sum) = bids.fold((0, 0), |(n, sum), &bid| (n + 1, sum + usize::from(bid)));
    w.share(cards, 13);
    w.share(cards - tricks_made(s), 13);
    w.number((sum as f32 - cards as f32) / 13.0);
    w.share(players - num_bids, 8);
    w.share(table.num_rounds() - 1 - round, table.num_rounds());
    w.share(table.max_points_after(round), table.max_points());
}

/// The card that wins the current trick so far, as a set.
fn best_of_trick(table: &Table, s: &State) -> u64 {
    if s.trick().is_empty() {
        return 0;
    }
    let in_trick = table.seat_after(table.trick_winner(s), table.players - usize::from(s.leader));
    1 << s.trick[in_trick]
}

/// The hands and the best card of the trick, each card by its index in its suit among all of these.
fn write_deal(table: &Table, s: &State, observer: usize, w: &mut Writer) {
    let best = best_of_trick(table, s);
    let live = s.hands.iter().fold(best, |all, hand| all | hand);
    for k in 0..table.players {
        write_by_rank(table, s, s.hands[table.seat_after(observer, k)], live, w);
    }
    w.skip(NUM_CARDS * (table.seats - table.players));
    write_by_rank(table, s, best, live, w);
}

/// 52 elements: for each suit from the trump on, which of its `live` cards, the highest first, are of `cards`.
fn write_by_rank(table: &Table, s: &State, cards: u64, live: u64, w: &mut Writer) {
    let first = match table.trump_in(usize::from(s.round)) {
        Trump::None => 0,
        trump => trump as usize,
    };
    for i in 0..4 {
        let suit = suit_cards((first + i) % 4);
        let mut left = cards & suit;
        while left != 0 {
            let above = live & suit & !(left ^ (left - 1));
            w.out[w.at + above.count_ones() as usize] = 1.0;
            left &= left - 1;
        }
        w.at += 13;
    }
}
