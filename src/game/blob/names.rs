//! Names of cards and bids in Blob, and the display of a position.

use super::rules::list_cards;
use super::{Blob, NO_BID, NUM_CARDS, Phase, State, Trump};

const SUITS: [char; 4] = ['♠', '♥', '♣', '♦'];
const RANKS: [&str; 13] = ["2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A"];

/// `K♥`, `10♠`.
pub(super) fn card_name(card: u16) -> String {
    let card = usize::from(card);
    format!("{}{}", RANKS[card % 13], SUITS[card / 13])
}

/// The card that `text` names: a rank (2..10, T, J, Q, K, A) and a suit (♠♥♣♦ or S, H, C, D), in any case.
pub(super) fn parse_card(text: &str) -> Option<u16> {
    // U+FE0F selects the coloured form of the suit and is ignored.
    let text = text.trim().trim_end_matches('\u{fe0f}').to_uppercase();
    let suit = text.chars().last()?;
    let rank = text.strip_suffix(suit)?.trim_end();
    let rank = if rank == "T" { "10" } else { rank };
    let suit =
        SUITS.iter().zip("SHCD".chars()).position(|(&symbol, letter)| suit == symbol || suit == letter)?;
    let rank = RANKS.iter().position(|&name| name == rank)?;
    Some((13 * suit + rank) as u16)
}

/// The bid that `text` names: `bid 3` or `3`.
pub(super) fn parse_bid(text: &str) -> Option<u16> {
    let text = text.trim().to_ascii_lowercase();
    text.strip_prefix("bid").unwrap_or(&text).trim_start().parse().ok()
}

fn trump_name(trump: Trump) -> String {
    SUITS.get(trump as usize).map_or("none".to_string(), char::to_string)
}

fn hand_names(cards: u64) -> String {
    let mut list = [0; NUM_CARDS];
    let n = list_cards(cards, &mut list);
    list[..n].iter().map(|&card| card_name(card)).collect::<Vec<_>>().join(" ")
}

/// The round, every player's bid, tricks and points, the current trick, and the hand of the player to move.
pub(super) fn display(game: &Blob, s: &State) -> String {
    let round = usize::from(s.round);
    let mut text = format!(
        "round {} of {}, {} a player, trump {}, dealer {}\n",
        round + 1,
        game.num_rounds(),
        match game.cards_in(round) {
            1 => "1 card".to_string(),
            cards => format!("{cards} cards"),
        },
        trump_name(game.trump_in(round)),
        game.dealer_in(round),
    );
    text += "player  bid  taken  points\n";
    for player in 0..game.num_players() {
        let bid = match s.bids[player] {
            NO_BID => "-".to_string(),
            bid => bid.to_string(),
        };
        text += &format!("{player:6}  {bid:>3}  {:5}  {:6}\n", s.tricks[player], s.scores[player]);
    }
    match s.phase() {
        Phase::Deal => text += &format!("dealt {} cards\n", s.count),
        Phase::Bid | Phase::Play => {
            for (place, &card) in s.trick().iter().enumerate() {
                let player = game.seat_after(usize::from(s.leader), place);
                text += &format!("{player} played {}\n", card_name(u16::from(card)));
            }
            let player = game.to_act(s);
            let verb = if s.phase() == Phase::Bid { "bids" } else { "plays" };
            text += &format!("{player} {verb}, holding {}\n", hand_names(s.hands[player]));
        }
        Phase::Over => text += "the game is over\n",
    }
    text
}
