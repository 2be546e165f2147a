//! Blob (Oh Hell): bid the tricks you will take, then take exactly that many. 3 to 8 players, hidden hands.
//!
//! **Players.** There are P seats and at most as many players. The others' seats are empty, so that one network serves every number of players:
//! with `seated = 0` each game begins with a chance outcome n, its number of players, each from 3 to P as probable.
//!
//! **Rules.** A round: every player gets the same number of cards; from the dealer's left everyone bids a number of
//! tricks, the dealer last, who may not make the bids sum to the cards each player holds; the dealer's left leads, suit
//! is followed where possible, the highest trump takes the trick, else the highest card of the suit led, and the taker
//! leads next. An exact bid scores 10 + bid, any other 0. A game is one round of `cards` cards, or with `full = true` the
//! rounds `cards`, ..., 2, then as many rounds of one card as there are players, then 2, ..., `cards`. The deal passes
//! to the left each round and trump goes round ♠ ♥ ♣ ♦ none, both from their settings for the first round.
//!
//! **Numbers.** Suits in the order ♠ ♥ ♣ ♦; a card is suit x 13 + rank, rank 0 = two ... 12 = ace. While bidding action b
//! is the bid b, in play action c is the card c, and a chance outcome c deals the card c. Cards are dealt one by one,
//! the k-th of a round to player k mod n (of n players) whoever deals, each uniform over the cards not yet dealt; the remaining cards
//! are the stock, which no player sees. Order of play is by rising player number; the left of player p is p + 1 mod n.
//!
//! **Returns.** A player's return is its points minus the mean of the others' points, over the maximum number that one player can
//! make in the whole game (the sum of 10 + cards over its rounds): in [-1, 1], summing to 0. It is linear in points, so
//! the expected return is the expected lead, a round counts the same independent of earlier scores, and a player also gains when
//! others miss their bids, as in human play. [`Game::scores`] are the raw points. Search and value targets take the same of one round
//! ([`Game::stage_returns`]): the points that a player makes in a round, over the maximum that one can make in it. Earlier rounds change
//! nothing and later ones are noise, the same for all actions.
//!
//! **Search** never crosses a deal: after a round that is followed by another, the state is a horizon
//! ([`Game::is_horizon`]), so no chance state is ever expanded (`max_chance_run` is 0).
//! Determinised search has a known limit, strategy fusion: each sampled deal is searched as if all hands were known.
//!
//! **The network** sees one hand, or all hands of the determinisation (`network_sees`). A value computed from one hand is the same
//! in every determinisation, so search cannot distinguish deals until the round ends. With `"deal"`, search is perfect-information
//! Monte Carlo with a learned value (Long, Sturtevant, Buro, Furtak 2010, <https://doi.org/10.1609/aaai.v24i1.7562>). A sample has
//! the true deal, the result of the game, and the policies of the player's determinisations combined, which were drawn without
//! knowledge of the true deal. So values and priors are those of play with hidden hands. The true hands are
//! never searched: only draws of [`Game::determinise`], which depend only on what the player knows, become roots.

mod determinise;
mod look;
mod names;
mod observe;
mod rules;
mod table;
#[cfg(test)]
mod tests;

pub use rules::{NO_BID, Phase, State};
pub use table::NUM_CARDS;

use super::view::{Spot, View, Viewer};
use super::{Game, History, MAX_PLAYERS, ObsShape, Sizes, TallyCell, TallyTable, Turn};
use crate::config::keys::{names, section, within};
use crate::error::{Error, Result};
use crate::rng::RngStream;
use std::ops::RangeInclusive;
use table::{MIN_PLAYERS, Table};

names! {
    /// The trump of a round, in the order of the rotation.
    Trump {
        /// ♠
        Spades = "spades",
        /// ♥
        Hearts = "hearts",
        /// ♣
        Clubs = "clubs",
        /// ♦
        Diamonds = "diamonds",
        /// No suit is trump.
        None = "none",
    }

    /// The hands in an observation.
    Sight {
        /// The observer's own.
        Hand = "hand",
        /// All hands of the state. Search observes only states that it has drawn itself.
        Deal = "deal",
    }
}

section! {
    /// The settings of Blob.
    Blob {
        /// P: number of seats, and of players unless `seated` is lower.
        players: u32 [MIN_PLAYERS..=MAX_PLAYERS as u32] = 4,
        /// Players who take part where there are more seats; 0: each game draws a number from 3 to `players`. A network is that of its seats and
        /// plays at tables with any number of players.
        seated: u32 [0..=MAX_PLAYERS as u32] = MAX_PLAYERS as u32,
        /// Cards each player holds in the first (or only) round; players * cards is at most 52. A game whose number of players is drawn has fewer
        /// if the pack does not suffice.
        cards: u32 [1..=13] = 5,
        /// The full game; otherwise a single round.
        full: bool = false,
        /// Trump of the first (or only) round.
        trump: Trump = Trump::Spades,
        /// Dealer of the first (or only) round, below `players`; the next player bids and leads first.
        dealer: u32 [0..=MAX_PLAYERS as u32 - 1] = 0,
        /// The hands in the network's observation: the player's own, or all hands of the deal that is searched.
        network_sees: Sight = Sight::Hand,
    }
}

impl Blob {
    /// The numbers of players that a game can have.
    fn numbers_of_players(&self) -> RangeInclusive<usize> {
        match self.seated {
            0 => MIN_PLAYERS as usize..=self.players as usize,
            seated => seated.min(self.players) as usize..=seated.min(self.players) as usize,
        }
    }

    /// The table of the game of `s`. While the number of players is not drawn, all seats are taken.
    #[inline]
    fn table(&self, s: &State) -> Table {
        Table::of(self, usize::from(if s.players == 0 { self.players as u8 } else { s.players }))
    }

    /// Writes the `lead` of every player, 0 for empty seats. `[P]`
    fn write_leads(&self, s: &State, lead: fn(&Table, &State, usize) -> f32, out: &mut [f32]) {
        let table = self.table(s);
        out.fill(0.0);
        let players = out[..table.players].iter_mut().enumerate();
        players.for_each(|(player, value)| *value = lead(&table, s, player));
    }

    fn tables(&self) -> impl Iterator<Item = Table> {
        self.numbers_of_players().map(|players| Table::of(self, players))
    }

    fn check(&self) -> Result<()> {
        if (1..MIN_PLAYERS).contains(&self.seated) {
            let expected = format!("{MIN_PLAYERS} to {MAX_PLAYERS}, or 0 for a number drawn for each game");
            return Err(Error::config("game.seated", self.seated, expected));
        }
        // With a drawn number, each game has at most as many cards as its players share.
        let players = *self.numbers_of_players().start() as u32;
        let max = 13.min(NUM_CARDS as u32 / players);
        if !(1..=max).contains(&self.cards) {
            let expected =
                format!("a whole number from 1 to {max}, for {players} players share {NUM_CARDS} cards");
            return Err(Error::config("game.cards", self.cards, expected));
        }
        within("game.dealer", self.dealer, 0..=players - 1)
    }
}

impl Game for Blob {
    type State = State;
    const NAME: &'static str = "blob";
    const CONFIGS: &'static [super::NamedText] = super::configs!("blob", "blob_tables");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("blob");
    const VARIANTS: &'static [&'static str] = &[
        "players = 3\ncards = 2\nfull = true",
        "players = 5\ncards = 10",
        "players = 8\ncards = 3",
        "players = 4\ncards = 5",
        "network_sees = 'deal'",
        "players = 5\ncards = 3\nfull = true\nnetwork_sees = 'deal'",
        "players = 8\ncards = 9\nseated = 0\nnetwork_sees = 'deal'",
        "players = 6\nseated = 4\ncards = 2\nfull = true",
    ];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];
    /// A network observes the round: it plays with any number of players and cards.
    const SPAN_OPTIONS: &'static [&'static str] = &["seated", "cards", "full", "trump", "dealer"];

    super::options_by_section!(Self::check);

    fn aim(&self, _player: u8) -> String {
        "takes exactly the tricks that it bids, for 10 points and one for each trick".into()
    }

    fn sizes(&self) -> Sizes {
        let max_of = |size: fn(&Table) -> usize| self.tables().map(|table| size(&table)).max().unwrap_or(0);
        Sizes {
            num_players: self.players as usize,
            num_actions: NUM_CARDS,
            max_legal: max_of(Table::max_cards) + 1,
            num_chance: NUM_CARDS,
            obs: ObsShape { channels: observe::obs_len(self), height: 1, width: 1 },
            max_plies: max_of(Table::num_plies) + usize::from(self.seated == 0),
            hidden_information: true,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        match self.seated {
            0 => State::at_seating(),
            _ => State::at_deal(&Table::of(self, *self.numbers_of_players().start()), 0),
        }
    }

    fn is_valid(&self, s: &State) -> bool {
        self.fits(s)
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        match s.phase() {
            Phase::Seating | Phase::Deal => Turn::Chance,
            Phase::Bid | Phase::Play => Turn::Player(self.table(s).to_act(s) as u8),
            Phase::Over => Turn::Over,
        }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        match s.phase() {
            Phase::Seating => list_numbers(self.numbers_of_players(), out),
            Phase::Deal => rules::list_cards(s.stock(), out),
            Phase::Bid => self.table(s).legal_bids(s, out),
            Phase::Play => rules::list_cards(self.table(s).playable(s), out),
            Phase::Over => 0,
        }
    }

    #[inline]
    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        match s.phase() {
            Phase::Seating => *s = State::at_deal(&Table::of(self, usize::from(action)), 0),
            Phase::Deal => self.table(s).deal(s, action),
            Phase::Bid => self.table(s).bid(s, action),
            Phase::Play => self.table(s).play(s, action),
            Phase::Over => {}
        }
    }

    /// A vector; its layout is described at the head of `observe.rs`.
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        observe::write(self, s, usize::from(player), out);
    }

    /// All but the deal.
    fn known_obs(&self) -> usize {
        observe::known_len(self)
    }

    fn tally_table(&self) -> Option<TallyTable> {
        let rows = (0..=self.cards).map(|bid| bid.to_string()).collect();
        Some(TallyTable { title: "Bids", rows, columns: &["made", "too many tricks", "too few tricks"] })
    }

    /// A bid counts when its round ends.
    fn tally(&self, before: &State, after: &State, player: u8) -> Option<TallyCell> {
        let is_end =
            before.phase() == Phase::Play && (after.phase() == Phase::Over || after.round != before.round);
        let player = usize::from(player);
        let (bid, tricks) = (before.bids[player], before.tricks[player]);
        // The state after the last trick is the next deal. A bid that its tricks had reached before it was missed by that trick.
        let column = match after.scores[player] > before.scores[player] {
            true => 0,
            false if tricks >= bid => 1,
            false => 2,
        };
        let has_bid = player < usize::from(after.players);
        (is_end && has_bid).then_some(TallyCell { row: usize::from(bid), column })
    }

    /// The lead over the mean of the others, scaled; at any state, the lead so far.
    fn returns(&self, s: &State, out: &mut [f32]) {
        self.write_leads(s, Table::lead, out);
    }

    /// The same of the last round alone.
    fn stage_returns(&self, s: &State, out: &mut [f32]) {
        self.write_leads(s, Table::lead_in_round, out);
    }

    #[inline]
    fn num_seated(&self, s: &State, _seats: usize) -> usize {
        self.table(s).players
    }

    fn is_horizon(&self, s: &State) -> bool {
        s.phase() == Phase::Deal && s.count == 0 && s.round > 0
    }

    fn determinise(&self, s: &State, player: u8, rng: &mut RngStream) -> State {
        determinise::redeal(s, usize::from(player), rng)
    }

    /// If the network observes one hand, the hands of the other players are zeroed.
    fn canonical(&self, s: &State) -> State {
        let s = &State { round_points: [0; MAX_PLAYERS], ..*s };
        if self.network_sees == Sight::Deal {
            return *s;
        }
        let observer = match self.turn(s) {
            Turn::Player(player) => usize::from(player),
            Turn::Chance | Turn::Over => 0,
        };
        let mut out = *s;
        out.hands = [0; MAX_PLAYERS];
        out.hands[observer] = s.hands[observer];
        out
    }

    /// Points so far.
    fn scores(&self, s: &State) -> Vec<f32> {
        s.scores[..self.players as usize].iter().map(|&points| f32::from(points)).collect()
    }

    fn view(&self, s: &State, viewer: Viewer) -> View {
        look::view(self, s, viewer)
    }

    fn spot(&self, s: &State, action: u16) -> Spot {
        match s.phase() {
            Phase::Seating | Phase::Bid => Spot::Button,
            Phase::Deal | Phase::Play | Phase::Over => Spot::Card(action),
        }
    }

    /// Bids and plays are open; the k-th card of a deal is seen by player k mod n.
    fn sees_action(&self, s: &State, _action: u16, player: u8) -> bool {
        s.phase() != Phase::Deal || usize::from(s.count) % self.table(s).players == usize::from(player)
    }

    /// `bid 3` while bidding, `5 players` before the first deal, else a card: `K♥`, `10♠`.
    fn action_name(&self, s: &State, action: u16) -> String {
        match s.phase() {
            Phase::Seating => format!("{action} players"),
            Phase::Bid => format!("bid {action}"),
            Phase::Deal | Phase::Play | Phase::Over => names::card_name(action),
        }
    }

    /// Takes `bid 3` and `3` while bidding; cards as `K♥`, `KH`, `10♠`, `TS`, in any case.
    fn parse_action(&self, s: &State, history: History<'_>, text: &str) -> Option<u16> {
        let action = match s.phase() {
            Phase::Seating => names::parse_players(text),
            Phase::Bid => names::parse_bid(text),
            Phase::Deal | Phase::Play | Phase::Over => names::parse_card(text),
        }?;
        let mut legal = [0; NUM_CARDS];
        let n = self.legal(s, history, &mut legal);
        legal[..n].contains(&action).then_some(action)
    }
}

/// Writes `numbers` to the front of `out`; returns how many.
fn list_numbers(numbers: RangeInclusive<usize>, out: &mut [u16]) -> usize {
    let count = numbers.clone().count();
    out.iter_mut().zip(numbers).for_each(|(out, number)| *out = number as u16);
    count
}
