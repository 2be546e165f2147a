//! Names of cards and bids in Blob.

use super::Trump;

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

/// The number of players that `text` names: `5 players` or `5`.
pub(super) fn parse_players(text: &str) -> Option<u16> {
    let text = text.trim().to_ascii_lowercase();
    text.strip_suffix("players").unwrap_or(&text).trim_end().parse().ok()
}

/// `♠`, or `none`.
pub(super) fn trump_name(trump: Trump) -> String {
    SUITS.get(trump as usize).map_or("none".to_string(), char::to_string)
}
