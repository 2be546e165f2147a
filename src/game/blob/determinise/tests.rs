use super::*;
use crate::game::blob::tests::{observation, random_states};
use crate::game::blob::{Blob, Phase};
use crate::game::tests::legal;
use crate::game::{Game, Turn};
use crate::rng::{Key, Purpose};
use std::collections::BTreeMap;

fn stream(counter: u64) -> RngStream {
    Key::new(11, Purpose::Evaluation).with(counter).stream()
}

/// A position for the deals: player 0 holds two cards; the hands of `sizes` and a stock of `stock` cards come from a small random pack; all
/// other cards are out of play. A hand has shown each of its voids with probability `void_share`.
fn random_table(sizes: &[u32], stock: u32, void_share: f32, rng: &mut RngStream) -> State {
    let mut s = Blob::default().init();
    let mut pack = Pile::EMPTY;
    pack.push_all(PACK);
    s.hands[0] = pack.draw_hand(2, rng);
    for (player, &size) in (1..).zip(sizes) {
        s.hands[player] = pack.draw_hand(size, rng);
        for suit in (0..4).filter(|&suit| s.hands[player] & suit_cards(suit) == 0) {
            s.voids |= u32::from(rng.uniform() < void_share) << (4 * player + suit);
        }
    }
    pack.draw_hand(stock, rng);
    s.gone = pack.draw_hand(pack.len as u32, rng);
    s
}

/// Every deal of the unseen cards that is consistent with the information of player 0, by trying every holder of every card.
fn all_deals(s: &State, players: usize) -> Vec<[u64; MAX_PLAYERS]> {
    fn extend(
        s: &State,
        players: usize,
        rest: u64,
        hands: [u64; MAX_PLAYERS],
        stock: u32,
        out: &mut Vec<[u64; 8]>,
    ) {
        if rest == 0 {
            out.push(hands);
            return;
        }
        let (card, rest_after) = (rest & rest.wrapping_neg(), rest & (rest - 1));
        for player in 1..players {
            let has_room = hands[player].count_ones() < s.hands[player].count_ones();
            let suit = card.trailing_zeros() / 13;
            if has_room && s.voids_of(player) >> suit & 1 == 0 {
                let mut next = hands;
                next[player] |= card;
                extend(s, players, rest_after, next, stock, out);
            }
        }
        if stock > 0 {
            extend(s, players, rest_after, hands, stock - 1, out);
        }
    }
    let unseen = PACK & !(s.hands[0] | s.gone | s.trick_cards());
    let held: u32 = (1..players).map(|player| s.hands[player].count_ones()).sum();
    let mut hands = [0; MAX_PLAYERS];
    hands[0] = s.hands[0];
    let mut out = Vec::new();
    extend(s, players, unseen, hands, unseen.count_ones() - held, &mut out);
    out
}

/// The standard normal deviate of a chi-square sum with `freedom` degrees of freedom (Wilson and Hilferty 1931).
fn deviate(chi_square: f64, freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    ((chi_square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Draws 100 times as often as there are deals and compares the frequencies with equal ones. 5 standard deviations are
/// exceeded by chance in one test of two million.
fn assert_uniform(s: &State, players: usize, rng: &mut RngStream) -> usize {
    let deals = all_deals(s, players);
    let mut seen: BTreeMap<[u64; MAX_PLAYERS], u64> = deals.iter().map(|&hands| (hands, 0)).collect();
    assert_eq!(seen.len(), deals.len());
    for _ in 0..100 * deals.len() {
        let drawn = redeal(s, 0, rng);
        *seen.get_mut(&drawn.hands).expect("a deal that is possible") += 1;
    }
    if deals.len() > 1 {
        let chi_square: f64 = seen.values().map(|&n| (n as f64 - 100.0).powi(2) / 100.0).sum();
        let z = deviate(chi_square, deals.len() as f64 - 1.0);
        assert!(z.abs() < 5.0, "{} deals, z = {z:.2}: {s:?}", deals.len());
    }
    deals.len()
}

#[test]
fn every_possible_deal_is_equally_likely() {
    let shapes: [(&[u32], u32); 6] = [
        (&[2, 2, 2], 0),
        (&[2, 3, 2], 2),
        (&[1, 2], 6),
        (&[2, 1, 2, 1], 1),
        (&[3, 3], 3),
        (&[1, 1, 1, 1, 1], 2),
    ];
    let mut rng = stream(1);
    let mut sizes = Vec::new();
    for (hands, stock) in shapes {
        for void_share in [0.0, 0.5, 0.5, 0.8, 1.0] {
            let s = random_table(hands, stock, void_share, &mut rng);
            sizes.push(assert_uniform(&s, hands.len() + 1, &mut rng));
        }
    }
    // The tables are neither trivial nor all without voids.
    assert!(sizes.iter().filter(|&&n| n > 20).count() >= 20, "{sizes:?}");
}

#[test]
fn late_positions_of_real_games_are_uniform() {
    let game = Blob { cards: 13, ..Blob::default() };
    let mut rng = stream(2);
    let mut tested = 0;
    for s in random_states(&game, 12, 3) {
        let unseen = PACK & !(s.hands[0] | s.gone | s.trick_cards());
        if s.phase() == Phase::Play && (4..=8).contains(&unseen.count_ones()) && s.voids != 0 {
            assert_uniform(&s, 4, &mut rng);
            tested += 1;
        }
    }
    assert!(tested > 20, "{tested}");
}

/// The number of ways to deal the groups' cards one by one in order, counted without any splits, divided by the orders.
fn count_card_by_card(groups: &[HandGroup], left: Counts) -> f64 {
    let mut counts = BTreeMap::from([(left, 1.0f64)]);
    for group in groups {
        for drawn in 0..group.size {
            let mut next = BTreeMap::new();
            for (left, count) in counts {
                for c in (0..4).filter(|c| group.classes >> c & 1 == 1 && left[*c] > 0) {
                    let mut after = left;
                    after[c] -= 1;
                    *next.entry(after).or_insert(0.0) += count * f64::from(left[c]) / f64::from(drawn + 1);
                }
            }
            counts = next;
        }
    }
    counts.values().sum()
}

#[test]
fn counts_of_large_deals_are_right() {
    let mut rng = stream(3);
    let mut most_groups = 0;
    for (hands, stock) in
        [(&[13u32, 13, 13][..], 0), (&[6; 7][..], 4), (&[7; 6][..], 3), (&[5, 5, 5][..], 30)]
    {
        for trial in 0..30 {
            // Small hands have more voids to show, so that groups of all kinds come up.
            let sizes: Vec<u32> = hands.iter().map(|&n| 1 + rng.below(n as usize) as u32).collect();
            let s = random_table(&sizes, stock, 0.3 + 0.1 * (trial % 7) as f32, &mut rng);
            let unseen = PACK & !(s.hands[0] | s.gone);
            let (groups, piles) = sort_unseen(&s, 0, unseen);
            if groups.list().is_empty() {
                continue;
            }
            most_groups = most_groups.max(groups.len);
            let exact = Ways::new(groups.list(), piles.sizes()).count(0, piles.sizes()) as f64;
            let other = count_card_by_card(groups.list(), piles.sizes());
            assert!((exact / other - 1.0).abs() < 1e-9, "{exact} {other}");
        }
    }
    assert!(most_groups >= 5, "{most_groups}");
}

#[test]
fn draws_never_contradict_what_the_observer_knows() {
    let mut rng = stream(4);
    let mut draws = 0;
    for (players, cards) in [(3, 13), (4, 13), (4, 5), (5, 10), (6, 8), (7, 7), (8, 6)] {
        let game = Blob { players, cards, ..Blob::default() };
        for s in random_states(&game, 6, u64::from(players)) {
            for observer in 0..players as usize {
                assert_consistent(&game, &s, &redeal(&s, observer, &mut rng), observer);
                draws += 1;
            }
        }
    }
    assert!(draws > 10_000, "{draws}");
}

fn assert_consistent(game: &Blob, s: &State, drawn: &State, observer: usize) {
    let mut known = *s;
    known.hands = drawn.hands;
    assert_eq!(*drawn, known, "only hands may differ");
    assert_eq!(drawn.hands[observer], s.hands[observer]);
    let mut all = s.gone | s.trick_cards();
    for player in 0..MAX_PLAYERS {
        let hand = drawn.hands[player];
        assert_eq!(hand.count_ones(), s.hands[player].count_ones());
        assert_eq!(hand & (all | !PACK), 0, "a card twice");
        all |= hand;
        for suit in (0..4).filter(|suit| player != observer && s.voids_of(player) >> suit & 1 == 1) {
            assert_eq!(hand & suit_cards(suit), 0, "a card of a suit the player is out of");
        }
    }
    assert_eq!(observation(game, s, observer), observation(game, drawn, observer));
    if game.turn(s) == Turn::Player(observer as u8) {
        assert_eq!(legal(game, s), legal(game, drawn));
    }
}

#[test]
fn draws_below_a_bound_are_uniform_for_wide_bounds() {
    let mut rng = stream(5);
    let n = 3u128 << 90;
    let mut thirds = [0u32; 3];
    for _ in 0..30_000 {
        let x = below(n, &mut rng);
        assert!(x < n);
        thirds[(x >> 90) as usize] += 1;
    }
    // The standard deviation of a third's count is 82.
    assert!(thirds.iter().all(|&count| count.abs_diff(10_000) < 410), "{thirds:?}");
    assert_eq!(below(1, &mut rng), 0);
}
