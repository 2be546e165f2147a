//! A uniform draw from the deals that are consistent with what one player of Blob knows, without rejection sampling.
//!
//! **Known facts**: the own hand, the cards played, the sizes of all hands, the voids shown by each player. Bids are choices,
//! not facts, and do not restrict the deals. The unseen cards are in the other hands and the stock.
//!
//! **Method.** Suits that the same hands may hold form one *class* of cards; hands that may hold the same classes form one
//! *group*. The hands that may hold anything, and the stock, come last and take the remaining cards. With r_c cards of class c
//! left, group g, which takes h_g cards, can take a_c cards of each class c it may hold in prod C(r_c, a_c) ways, so the number
//! of deals of the groups from g on is
//!
//! ```text
//! ways(g, r) = sum over a of prod_c C(r_c, a_c) * ways(g + 1, r - a),    ways(last, r) = C(sum of r_c allowed, h)
//! ```
//!
//! Each group's split a is drawn with these exact weights, then its cards uniformly from each class, then its hands uniformly
//! from its cards. So every deal has the same probability.
//!
//! **Exactness.** Counts are integers in `u128`: the largest possible, 46 cards in seven hands of six and a stock of
//! four, is 2.3e36 < 2^128. A split is drawn from enough random bits that every integer below the count is equally
//! likely; single cards through [`RngStream::below`], whose bias is below 52 / 2^64.
//!
//! **Cost.** Without voids, or with one void pattern, no sum is needed; with two, one sum; with more, `ways` is kept in a
//! table over the cards taken so far.

use super::rules::{PACK, suit_cards};
use super::{MAX_PLAYERS, NUM_CARDS, State};
use crate::rng::RngStream;
use std::ops::ControlFlow;

/// Cards of each class; there are never more classes than suits. `[class]`
type Counts = [u8; 4];

/// The entry of a table that has not been computed. No count is that large.
const UNKNOWN: u128 = u128::MAX;

/// C(n, k) for n, k up to 52. `[n][k]`
static BINOMIAL: [[u64; NUM_CARDS + 1]; NUM_CARDS + 1] = binomials();

const fn binomials() -> [[u64; NUM_CARDS + 1]; NUM_CARDS + 1] {
    let mut table = [[0; NUM_CARDS + 1]; NUM_CARDS + 1];
    let mut n = 0;
    while n <= NUM_CARDS {
        table[n][0] = 1;
        let mut k = 1;
        while k <= n {
            table[n][k] = table[n - 1][k - 1] + table[n - 1][k];
            k += 1;
        }
        n += 1;
    }
    table
}

fn choose(n: u8, k: u8) -> u128 {
    u128::from(BINOMIAL[usize::from(n)][usize::from(k)])
}

/// `s` with the unseen cards dealt anew to the players other than `observer`, uniformly over what `observer` knows.
pub(super) fn redeal(s: &State, observer: usize, rng: &mut RngStream) -> State {
    let mut out = *s;
    let unseen = PACK & !(s.hands[observer] | s.gone | s.trick_cards());
    let (groups, mut piles) = sort_unseen(s, observer, unseen);
    let mut is_dealt = 1u32 << observer;
    if !groups.list().is_empty() {
        let splits = draw_splits(&groups, piles.sizes(), rng);
        for (group, split) in groups.list().iter().zip(splits) {
            let mut cards = Pile::EMPTY;
            for (pile, &n) in piles.0.iter_mut().zip(&split) {
                (0..n).for_each(|_| cards.push(pile.draw(rng)));
            }
            for player in (0..MAX_PLAYERS).filter(|player| group.players >> player & 1 == 1) {
                out.hands[player] = cards.draw_hand(s.hands[player].count_ones(), rng);
            }
            is_dealt |= group.players;
        }
    }
    let mut rest = piles.merge();
    for player in (0..MAX_PLAYERS).filter(|player| is_dealt >> player & 1 == 0) {
        out.hands[player] = rest.draw_hand(s.hands[player].count_ones(), rng);
    }
    out
}

/// An unordered set of cards.
#[derive(Clone, Copy)]
struct Pile {
    cards: [u8; NUM_CARDS],
    len: usize,
}

impl Pile {
    const EMPTY: Self = Self { cards: [0; NUM_CARDS], len: 0 };

    fn push(&mut self, card: u8) {
        self.cards[self.len] = card;
        self.len += 1;
    }

    fn push_all(&mut self, mut set: u64) {
        while set != 0 {
            self.push(set.trailing_zeros() as u8);
            set &= set - 1;
        }
    }

    /// Removes a uniformly random card.
    fn draw(&mut self, rng: &mut RngStream) -> u8 {
        let index = rng.below(self.len);
        self.len -= 1;
        let card = self.cards[index];
        self.cards[index] = self.cards[self.len];
        card
    }

    fn draw_hand(&mut self, size: u32, rng: &mut RngStream) -> u64 {
        (0..size).fold(0, |hand, _| hand | 1 << self.draw(rng))
    }
}

/// The unseen cards of each class.
struct Piles([Pile; 4]);

impl Piles {
    fn sizes(&self) -> Counts {
        self.0.each_ref().map(|pile| pile.len as u8)
    }

    fn merge(self) -> Pile {
        let [mut all, others @ ..] = self.0;
        for pile in others {
            pile.cards[..pile.len].iter().for_each(|&card| all.push(card));
        }
        all
    }
}

/// Hands that may hold the same cards, and not all cards.
#[derive(Clone, Copy)]
struct HandGroup {
    /// Bit p: player p is one of them.
    players: u32,
    /// Bit s: none of them holds suit s.
    voids: u32,
    /// Bit c: they may hold class c.
    classes: u32,
    /// Cards they hold together.
    size: u8,
}

struct Groups {
    groups: [HandGroup; MAX_PLAYERS],
    len: usize,
}

impl Groups {
    fn list(&self) -> &[HandGroup] {
        &self.groups[..self.len]
    }

    /// Adds a hand of `size` cards of `player`.
    fn add(&mut self, player: usize, voids: u32, size: u8) {
        let found = self.list().iter().position(|group| group.voids == voids);
        let index = found.unwrap_or(self.len);
        self.len = self.len.max(index + 1);
        let group = &mut self.groups[index];
        group.voids = voids;
        group.players |= 1 << player;
        group.size += size;
    }
}

/// The groups, those that may hold the fewest suits first, and the `unseen` cards by class.
fn sort_unseen(s: &State, observer: usize, unseen: u64) -> (Groups, Piles) {
    let none = HandGroup { players: 0, voids: 0, classes: 0, size: 0 };
    let mut groups = Groups { groups: [none; MAX_PLAYERS], len: 0 };
    let suits =
        (0..4).filter(|&suit| unseen & suit_cards(suit) != 0).fold(0, |suits, suit| suits | 1 << suit);
    for player in (0..MAX_PLAYERS).filter(|&player| player != observer && s.hands[player] != 0) {
        // A void in a suit of which all cards are seen has no effect.
        let voids = s.voids_of(player) & suits;
        if voids != 0 {
            groups.add(player, voids, s.hands[player].count_ones() as u8);
        }
    }
    let len = groups.len;
    groups.groups[..len]
        .sort_unstable_by_key(|group| (4 - group.voids.count_ones(), group.size, group.voids));

    let mut piles = Piles([Pile::EMPTY; 4]);
    let mut holders_of_class = [None; 4];
    for suit in (0..4).filter(|suit| suits >> suit & 1 == 1) {
        let holders = (0..len).fold(0u32, |all, g| all | (!groups.groups[g].voids >> suit & 1) << g);
        let same = |&class: &Option<u32>| class.is_none_or(|others| others == holders);
        let class = holders_of_class.iter().position(same).unwrap_or(0);
        holders_of_class[class] = Some(holders);
        piles.0[class].push_all(unseen & suit_cards(suit));
        for group in &mut groups.groups[..len] {
            group.classes |= (!group.voids >> suit & 1) << class;
        }
    }
    (groups, piles)
}

/// How many cards of each class each group gets, drawn in proportion to the number of deals. `[group][class]`
fn draw_splits(groups: &Groups, mut left: Counts, rng: &mut RngStream) -> [Counts; MAX_PLAYERS] {
    let mut ways = Ways::new(groups.list(), left);
    let mut splits = [[0; 4]; MAX_PLAYERS];
    for (g, group) in groups.list().iter().enumerate() {
        let is_forced = group.classes.count_ones() == 1;
        let mut at = if is_forced { 0 } else { below(ways.count(g, left), rng) };
        for_each_split(group, left, |split| {
            splits[g] = split;
            if is_forced {
                return ControlFlow::Break(());
            }
            let weight = ways.of_split(g, left, split);
            if at < weight {
                return ControlFlow::Break(());
            }
            at -= weight;
            ControlFlow::Continue(())
        });
        left = minus(left, splits[g]);
    }
    splits
}

fn minus(a: Counts, b: Counts) -> Counts {
    std::array::from_fn(|c| a[c] - b[c])
}

/// An integer in 0..n, uniform: as many random bits as n has, drawn again if the result is n or more.
fn below(n: u128, rng: &mut RngStream) -> u128 {
    assert!(n > 0, "a state that contradicts itself has no deal");
    let shift = n.leading_zeros();
    loop {
        let high = if shift < 64 { u128::from(rng.next_u64()) << 64 } else { 0 };
        let x = (high | u128::from(rng.next_u64())) << shift >> shift;
        if x < n {
            return x;
        }
    }
}

/// Calls `visit` with every way to make up the cards of `group` from the classes it may hold, out of `left`.
fn for_each_split(group: &HandGroup, left: Counts, mut visit: impl FnMut(Counts) -> ControlFlow<()>) {
    let limits: Counts = std::array::from_fn(|c| if group.classes >> c & 1 == 1 { left[c] } else { 0 });
    // The minimum and maximum number of cards of a class, with `need` cards wanted of it and the `after` later classes.
    let range = |class: usize, need: u8, after: u8| need.saturating_sub(after)..=need.min(limits[class]);
    let size = group.size;
    for a in range(0, size, limits[1] + limits[2] + limits[3]) {
        for b in range(1, size - a, limits[2] + limits[3]) {
            for c in range(2, size - a - b, limits[3]) {
                let d = size - a - b - c;
                if d <= limits[3] && visit([a, b, c, d]).is_break() {
                    return;
                }
            }
        }
    }
}

/// The numbers of deals of the groups from g on, given the cards left of each class; memoised.
struct Ways<'a> {
    groups: &'a [HandGroup],
    start: Counts,
    /// Per group the counts by what has been taken of the first three classes (the fourth follows). Groups without a
    /// table, the first and the last, have no entries.
    table: Vec<u128>,
    /// Where a group's entries begin, and their extents in the first three classes. `[group]`
    layout: [(usize, [usize; 3]); MAX_PLAYERS],
}

impl<'a> Ways<'a> {
    fn new(groups: &'a [HandGroup], start: Counts) -> Self {
        let mut layout = [(0, [0; 3]); MAX_PLAYERS];
        let mut len = 0;
        let mut taken = 0;
        for (g, group) in groups.iter().enumerate() {
            if g > 0 && g + 1 < groups.len() {
                let extents: [usize; 3] = std::array::from_fn(|c| usize::from(start[c].min(taken)) + 1);
                layout[g] = (len, extents);
                len += extents.iter().product::<usize>();
            }
            taken += group.size;
        }
        Self { groups, start, table: vec![UNKNOWN; len], layout }
    }

    /// ways(g, left)
    fn count(&mut self, g: usize, left: Counts) -> u128 {
        let group = self.groups[g];
        if g + 1 == self.groups.len() {
            let allowed = (0..4).filter(|c| group.classes >> c & 1 == 1).map(|c| left[c]).sum();
            return choose(allowed, group.size);
        }
        let entry = (g > 0).then(|| self.entry(g, left));
        if let Some(entry) = entry
            && self.table[entry] != UNKNOWN
        {
            return self.table[entry];
        }
        let mut sum = 0;
        for_each_split(&group, left, |split| {
            sum += self.of_split(g, left, split);
            ControlFlow::Continue(())
        });
        if let Some(entry) = entry {
            self.table[entry] = sum;
        }
        sum
    }

    /// The deals of the groups from g on in which group g gets `split`.
    fn of_split(&mut self, g: usize, left: Counts, split: Counts) -> u128 {
        let later = if g + 1 == self.groups.len() { 1 } else { self.count(g + 1, minus(left, split)) };
        (0..4).fold(later, |product, c| product * choose(left[c], split[c]))
    }

    fn entry(&self, g: usize, left: Counts) -> usize {
        let (start, extents) = self.layout[g];
        (0..3).fold(0, |index, c| index * extents[c] + usize::from(self.start[c] - left[c])) + start
    }
}

#[cfg(test)]
mod tests;
