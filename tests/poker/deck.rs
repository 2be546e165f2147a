//! Cards that are dealt one by one. A card is held as its number plus 1, and as 0 before it is dealt.

use vecaz::rng::RngStream;

/// The numbers of the cards, of a deck of `num_cards`, that are not among `dealt`; ascending.
pub fn left(num_cards: u16, dealt: &[u8]) -> impl Iterator<Item = u16> {
    (0..num_cards).filter(move |&card| !dealt.contains(&held(card)))
}

/// A card as it is held.
pub fn held(card: u16) -> u8 {
    card as u8 + 1
}

/// Sets the element of `out` for a card as it is held, or for anything else that is held in this way; none for 0.
pub fn set_one_hot(out: &mut [f32], held: u8) {
    if held != 0 {
        out[usize::from(held) - 1] = 1.0;
    }
}

/// Deals card number `index` of `cards` anew, if it was dealt: one that the deck of `num_cards` has beside the other cards, each as likely as
/// any.
pub fn redeal(cards: &mut [u8], index: usize, num_cards: u16, rng: &mut RngStream) {
    if cards[index] != 0 {
        cards[index] = 0;
        let unseen: Vec<u16> = left(num_cards, cards).collect();
        cards[index] = held(unseen[rng.below(unseen.len())]);
    }
}
