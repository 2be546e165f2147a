//! Blob (Oh Hell): bid the tricks you will take, then take exactly that many. 3 to 8 players, hidden hands.
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
//! the k-th of a round to player k mod P whoever deals, each uniform over the cards not yet dealt; the remaining cards
//! are the stock, which no player sees. Order of play is by rising player number; the left of player p is p + 1 mod P.
//!
//! **Returns.** A player's return is its points minus the mean of the others' points, over the maximum number that one player can
//! make in the whole game (the sum of 10 + cards over its rounds): in [-1, 1], summing to 0. It is linear in points, so
//! the expected return is the expected lead, a round counts the same independent of earlier scores, and a player also gains when
//! others miss their bids, as in human play. [`Game::scores`] are the raw points.
//!
//! **Search** never crosses a deal: after a round that is followed by another, the state is a horizon
//! ([`Game::is_horizon`]), so no chance state is ever expanded (`max_chance_run` is 0). [`Game::returns`] is defined there
//! too: the lead so far, which is also the expected final lead among equal players, apart from the order of seats.
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
#[cfg(test)]
mod tests;

pub use rules::{NO_BID, NUM_CARDS, Phase, State};

use super::view::{Spot, View, Viewer};
use super::{Game, History, MAX_PLAYERS, ObsShape, Sizes, TallyCell, TallyTable, Turn};
use crate::config::keys::{names, section, within};
use crate::error::{Error, Result};
use crate::rng::RngStream;

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
        /// Number of players.
        players: u32 [3..=MAX_PLAYERS as u32] = 4,
        /// Cards each player holds in the first (or only) round; players * cards is at most 52.
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
    /// P.
    #[inline]
    pub fn num_players(&self) -> usize {
        self.players as usize
    }

    /// Rounds of the game.
    #[inline]
    pub fn num_rounds(&self) -> usize {
        if self.full { (2 * self.cards + self.players - 2) as usize } else { 1 }
    }

    /// Cards each player gets in `round`.
    #[inline]
    pub fn cards_in(&self, round: usize) -> usize {
        let (cards, players) = (self.cards as usize, self.num_players());
        let (single, last) = (cards - 1, cards - 1 + players);
        if round < single {
            cards - round
        } else if round < last {
            1
        } else {
            round - last + 2
        }
    }

    /// Trump of `round`.
    #[inline]
    pub fn trump_in(&self, round: usize) -> Trump {
        const ROTATION: [Trump; 5] =
            [Trump::Spades, Trump::Hearts, Trump::Clubs, Trump::Diamonds, Trump::None];
        ROTATION[(self.trump as usize + round) % 5]
    }

    /// Dealer of `round`.
    #[inline]
    pub fn dealer_in(&self, round: usize) -> usize {
        (self.dealer as usize + round) % self.num_players()
    }

    /// Maximum number of points one player can make in the game: 10 + cards, summed over the rounds.
    #[inline]
    fn max_points(&self) -> usize {
        let (cards, players) = (self.cards as usize, self.num_players());
        let all_cards = if self.full { cards * (cards + 1) + players - 2 } else { cards };
        10 * self.num_rounds() + all_cards
    }

    /// Maximum number of points one player can make in the rounds after `round`.
    fn max_points_after(&self, round: usize) -> usize {
        (round + 1..self.num_rounds()).map(|later| 10 + self.cards_in(later)).sum()
    }

    /// The points of `player` minus the mean of the others', as a share of the most points of a game.
    fn lead(&self, s: &State, player: usize) -> f32 {
        let players = self.num_players();
        let total: i32 = s.scores[..players].iter().map(|&points| i32::from(points)).sum();
        let ahead = players as i32 * i32::from(s.scores[player]) - total;
        ahead as f32 / ((players - 1) * self.max_points()) as f32
    }

    fn check(&self) -> Result<()> {
        let max = 13.min(NUM_CARDS as u32 / self.players);
        if !(1..=max).contains(&self.cards) {
            let expected = format!(
                "a whole number from 1 to {max}, for {} players share {NUM_CARDS} cards",
                self.players
            );
            return Err(Error::config("game.cards", self.cards, expected));
        }
        within("game.dealer", self.dealer, 0..=self.players - 1)
    }
}

impl Game for Blob {
    type State = State;
    const NAME: &'static str = "blob";
    const CONFIGS: &'static [super::NamedText] = super::configs!("blob", "blob_light", "blob_heavy");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("blob");
    const VARIANTS: &'static [&'static str] = &[
        "players = 3\ncards = 2\nfull = true",
        "players = 5\ncards = 10",
        "players = 8\ncards = 3",
        "players = 4\ncards = 5",
        "network_sees = 'deal'",
        "players = 5\ncards = 3\nfull = true\nnetwork_sees = 'deal'",
    ];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];

    super::options_by_section!(Self::check);

    fn aim(&self, _player: u8) -> String {
        "takes exactly the tricks that it bids, for 10 points and one for each trick".into()
    }

    fn sizes(&self) -> Sizes {
        let players = self.num_players();
        Sizes {
            num_players: players,
            num_actions: NUM_CARDS,
            max_legal: self.cards as usize + 1,
            num_chance: NUM_CARDS,
            obs: ObsShape { channels: observe::obs_len(self), height: 1, width: 1 },
            max_plies: (0..self.num_rounds()).map(|round| players * (2 * self.cards_in(round) + 1)).sum(),
            hidden_information: true,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::at_deal(self, 0, [0; MAX_PLAYERS])
    }

    fn is_valid(&self, s: &State) -> bool {
        self.fits(s)
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        match s.phase() {
            Phase::Deal => Turn::Chance,
            Phase::Bid | Phase::Play => Turn::Player(self.to_act(s) as u8),
            Phase::Over => Turn::Over,
        }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        match s.phase() {
            Phase::Deal => rules::list_cards(s.stock(), out),
            Phase::Bid => self.legal_bids(s, out),
            Phase::Play => rules::list_cards(self.playable(s), out),
            Phase::Over => 0,
        }
    }

    #[inline]
    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        match s.phase() {
            Phase::Deal => self.deal(s, action),
            Phase::Bid => self.bid(s, action),
            Phase::Play => self.play(s, action),
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
        is_end.then_some(TallyCell { row: usize::from(bid), column })
    }

    /// The lead over the mean of the others, scaled; at any state, the lead so far.
    fn returns(&self, s: &State, out: &mut [f32]) {
        for (player, value) in out.iter_mut().enumerate() {
            *value = self.lead(s, player);
        }
    }

    fn is_horizon(&self, s: &State) -> bool {
        s.phase() == Phase::Deal && s.count == 0 && s.round > 0
    }

    fn determinise(&self, s: &State, player: u8, rng: &mut RngStream) -> State {
        determinise::redeal(s, usize::from(player), rng)
    }

    /// If the network observes one hand, the hands of the other players are zeroed.
    fn canonical(&self, s: &State) -> State {
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
        s.scores[..self.num_players()].iter().map(|&points| f32::from(points)).collect()
    }

    fn view(&self, s: &State, viewer: Viewer) -> View {
        look::view(self, s, viewer)
    }

    fn spot(&self, s: &State, action: u16) -> Spot {
        if s.phase() == Phase::Bid { Spot::Button } else { Spot::Card(action) }
    }

    /// Bids and plays are open; the k-th card of a deal is seen by player k mod P.
    fn sees_action(&self, s: &State, _action: u16, player: u8) -> bool {
        s.phase() != Phase::Deal || usize::from(s.count) % self.num_players() == usize::from(player)
    }

    /// `bid 3` while bidding, else a card: `K♥`, `10♠`.
    fn action_name(&self, s: &State, action: u16) -> String {
        if s.phase() == Phase::Bid { format!("bid {action}") } else { names::card_name(action) }
    }

    /// Takes `bid 3` and `3` while bidding; cards as `K♥`, `KH`, `10♠`, `TS`, in any case.
    fn parse_action(&self, s: &State, history: History<'_>, text: &str) -> Option<u16> {
        let action = if s.phase() == Phase::Bid { names::parse_bid(text) } else { names::parse_card(text) }?;
        let mut legal = [0; NUM_CARDS];
        let n = self.legal(s, history, &mut legal);
        legal[..n].contains(&action).then_some(action)
    }
}
