//! The look of a table of Blob: every player's bid, tricks and points, the trick, and the hands that the viewer may know.

use super::names::{card_name, trump_name};
use super::rules::list_cards;
use super::{Blob, NO_BID, NUM_CARDS, Phase, State};
use crate::game::view::{Board, Card, Cards, Colour, PlayedCard, Seat, View, Viewer};

pub(super) fn view(game: &Blob, s: &State, viewer: Viewer) -> View {
    let (table, round) = (game.table(s), usize::from(s.round));
    let caption = format!(
        "round {} of {}, {} a player, trump {}, dealer {}",
        round + 1,
        table.num_rounds(),
        match table.cards_in(round) {
            1 => "1 card".to_string(),
            cards => format!("{cards} cards"),
        },
        trump_name(table.trump_in(round)),
        table.dealer_in(round),
    );
    let played = |(index, &card): (usize, &u8)| PlayedCard {
        player: table.seat_after(usize::from(s.leader), index) as u8,
        card: card_of(u16::from(card)),
    };
    let cards = Cards {
        caption,
        columns: ["bid", "taken", "points"].map(String::from).to_vec(),
        seats: (0..table.players).map(|player| seat(s, player, viewer)).collect(),
        trick: s.trick().iter().enumerate().map(played).collect(),
    };
    let note = match s.phase() {
        Phase::Seating => "the number of players is drawn".to_string(),
        Phase::Deal => format!("dealt {} cards", s.count),
        Phase::Bid => format!("player {} bids", table.to_act(s)),
        Phase::Play => format!("player {} plays", table.to_act(s)),
        Phase::Over => "the game is over".to_string(),
    };
    View::new(Board::Cards(cards), &Colour::ALL[..table.seats]).with_note(note)
}

fn seat(s: &State, player: usize, viewer: Viewer) -> Seat {
    let bid = match s.bids[player] {
        NO_BID => "-".to_string(),
        bid => bid.to_string(),
    };
    let mut list = [0; NUM_CARDS];
    let count = list_cards(s.hands[player], &mut list);
    let known = if viewer.knows_hand_of(player as u8) { count } else { 0 };
    Seat {
        values: vec![bid, s.tricks[player].to_string(), s.scores[player].to_string()],
        hand: list[..known].iter().copied().map(card_of).collect(),
        hidden: (count - known) as u8,
    }
}

fn card_of(number: u16) -> Card {
    Card { number, name: card_name(number) }
}
