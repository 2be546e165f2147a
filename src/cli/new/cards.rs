//! Your game. Now it is "high card": both players are dealt cards that the other does not see; one leads a card, the other plays one, the
//! higher takes the trick and leads next; most tricks win. Replace its rules by your own, function by function; `cargo test` says which law
//! a change broke, and with which actions.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{Board, Card, Cards, Colour, PlayedCard, Seat, Spot, View, Viewer};
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};
use vecaz::rng::RngStream;

section! {
    // The settings of the game, which users give as `--set game.hand=3`.
    Rules {
        /// Cards that each player is dealt.
        hand: u32 [1..=6] = 5,
    }
}

/// Cards of the deck, of values 1 to 16.
const DECK: u16 = 16;

/// One position: plain numbers only, always of the same size, whatever the settings.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// The cards in each hand, as bits.
    hands: [u16; 2],
    /// The cards that were played, as bits: both players know them.
    played: u16,
    /// The value of the card that was led, 0 between tricks.
    led: u16,
    tricks: [u16; 2],
    /// Cards that were dealt.
    dealt: u16,
    to_play: u16,
}

impl Rules {
    fn is_dealing(&self, s: &State) -> bool {
        u32::from(s.dealt) < 2 * self.hand
    }

    /// The cards of a set, the lowest first.
    fn cards(set: u16) -> impl Iterator<Item = u16> {
        (0..DECK).filter(move |card| set >> card & 1 != 0)
    }
}

impl Game for Rules {
    type State = State;
    const NAME: &'static str = "NAME";
    // Settings with which the laws are checked, besides the defaults.
    const VARIANTS: &'static [&'static str] = &["hand = 1", "hand = 6"];

    options_by_section!();

    fn aim(&self, player: u8) -> String {
        format!("player {player} takes more tricks than the other")
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: usize::from(DECK),
            max_legal: self.hand as usize,
            num_chance: usize::from(DECK),
            // Cards are dealt before the first decision: search meets no chance.
            max_chance_run: 0,
            max_plies: 4 * self.hand as usize,
            obs: ObsShape { channels: 3 * usize::from(DECK) + 2, height: 1, width: 1 },
            hidden_information: true,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::zeroed()
    }

    // Can a state with these numbers be observed? States are read from files, too.
    fn is_valid(&self, s: &State) -> bool {
        s.to_play < 2 && s.led <= DECK && s.dealt as u32 <= 2 * self.hand
    }

    fn turn(&self, s: &State) -> Turn {
        match self.is_dealing(s) {
            true => Turn::Chance,
            false if s.hands == [0, 0] => Turn::Over,
            false => Turn::Player(s.to_play as u8),
        }
    }

    // Where chance decides, these are its outcomes: the next card of the deck. All are equally likely.
    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let set = match self.is_dealing(s) {
            true => !(s.hands[0] | s.hands[1]),
            false => s.hands[usize::from(s.to_play)],
        };
        out.iter_mut().zip(Self::cards(set)).map(|(out, card)| *out = card).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        if self.is_dealing(s) {
            s.hands[usize::from(s.dealt % 2)] |= 1 << action;
            s.dealt += 1;
            return;
        }
        let player = usize::from(s.to_play);
        s.hands[player] &= !(1 << action);
        s.played |= 1 << action;
        if s.led == 0 {
            (s.led, s.to_play) = (action + 1, 1 - s.to_play);
            return;
        }
        let taker = if action + 1 > s.led { player } else { 1 - player };
        s.tricks[taker] += 1;
        (s.led, s.to_play) = (0, taker as u16);
    }

    // What the network sees: nothing that `player` may not know.
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let led = if s.led == 0 { 0 } else { 1 << (s.led - 1) };
        let (cards, tricks) = out.split_at_mut(3 * usize::from(DECK));
        for (plane, set) in
            cards.chunks_exact_mut(usize::from(DECK)).zip([s.hands[usize::from(player)], s.played, led])
        {
            plane.iter_mut().enumerate().for_each(|(card, out)| *out = f32::from(set >> card & 1));
        }
        for (out, of) in tricks.iter_mut().zip([player, 1 - player]) {
            *out = f32::from(s.tricks[usize::from(of)]) / self.hand as f32;
        }
    }

    // The same position with another hand of the other player, each as likely as any, as far as `player` knows.
    fn determinise(&self, s: &State, player: u8, rng: &mut RngStream) -> State {
        let (own, other) = (usize::from(player), usize::from(1 - player));
        let mut unknown: Vec<u16> = Self::cards(!(s.hands[own] | s.played)).collect();
        let mut hands = s.hands;
        hands[other] = 0;
        for _ in 0..s.hands[other].count_ones() {
            hands[other] |= 1 << unknown.swap_remove(rng.below(unknown.len()));
        }
        State { hands, ..*s }
    }

    // A card that is played is seen by both, one that is dealt by its owner.
    fn sees_action(&self, s: &State, _: u16, player: u8) -> bool {
        !self.is_dealing(s) || s.dealt % 2 == u16::from(player)
    }

    // In [-1, 1] for each player: 1 won, -1 lost, 0 drawn.
    fn returns(&self, s: &State, out: &mut [f32]) {
        let lead = f32::from(s.tricks[0]) - f32::from(s.tricks[1]);
        let first = if lead == 0.0 { 0.0 } else { lead.signum() };
        out.copy_from_slice(&[first, -first]);
    }

    // The look of a position, with nothing that the viewer may not know.
    fn view(&self, s: &State, viewer: Viewer) -> View {
        let card = |number: u16| Card { number, name: (number + 1).to_string() };
        let seat = |player: u8| {
            let set = s.hands[usize::from(player)];
            let is_known = viewer.knows_hand_of(player);
            Seat {
                values: vec![s.tricks[usize::from(player)].to_string()],
                hand: if is_known { Self::cards(set).map(card).collect() } else { Vec::new() },
                hidden: if is_known { 0 } else { set.count_ones() as u8 },
            }
        };
        let led = (s.led != 0).then(|| PlayedCard { player: 1 - s.to_play as u8, card: card(s.led - 1) });
        let cards = Cards {
            caption: "high card".into(),
            columns: vec!["tricks".into()],
            seats: vec![seat(0), seat(1)],
            trick: led.into_iter().collect(),
        };
        View::new(Board::Cards(cards), &Colour::ALL[..2])
    }

    fn spot(&self, _: &State, action: u16) -> Spot {
        Spot::Card(action)
    }

    fn action_name(&self, _: &State, action: u16) -> String {
        // Not "5" alone: people may type the number of an action, and card 5 is action 4.
        format!("card {}", action + 1)
    }
}
