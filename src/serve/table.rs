//! One game with its seats: the rules of what may be done when, and of who may know what. No threads, no search.

use super::refusal::{Refusal, Served};
use super::seat::{EngineSeat, Seat};
use crate::backend::AnyGame;
use crate::batch::{Playthrough, play_list};
use crate::game::Turn;
use crate::game::view::Viewer;
use crate::protocol::dialogue::Ponder;
use crate::rng::{Key, Purpose};
use crate::stop::Stop;
use std::sync::Arc;

/// A search that chooses the next move.
#[derive(Clone, Debug)]
pub struct Thinking {
    /// The player to move.
    pub player: u8,
    /// Simulations so far.
    pub simulations: u64,
    /// Ends the search. The thread that searches knows by it whether it is still wanted.
    pub stop: Stop,
}

/// What the last search for a move did.
#[derive(Clone, Copy, Debug)]
pub struct Searched {
    /// The player for whom it searched.
    pub player: u8,
    /// Visits of the position, those of the tree that was kept included.
    pub visits: u64,
    /// Simulations that it made.
    pub simulations: u64,
}

/// The seat of a request with its key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claim<'a> {
    /// The seat.
    pub seat: Option<u8>,
    /// What proves that the client sits there.
    pub key: Option<&'a str>,
}

/// The action of a request.
#[derive(Clone, Copy, Debug)]
pub enum Choice<'a> {
    /// Its number.
    Number(u16),
    /// Its name.
    Name(&'a str),
}

/// One game with its seats.
pub struct Table {
    game: Arc<dyn AnyGame>,
    play: Playthrough,
    seats: Vec<Seat>,
    seed: u64,
    paused: bool,
    version: u64,
    thinking: Option<Thinking>,
    /// Ends the search on the time of the person to move, where one has begun in this position.
    pondering: Option<Stop>,
    searched: Option<Searched>,
    error: Option<String>,
}

impl Table {
    /// A table at `play`'s position, or after the deals that follow it. `seats [P]`
    pub fn new(game: Arc<dyn AnyGame>, play: Playthrough, seats: Vec<Seat>, seed: u64) -> Self {
        let mut table = Self {
            game,
            play,
            seats,
            seed,
            paused: false,
            version: 1,
            thinking: None,
            pondering: None,
            searched: None,
            error: None,
        };
        table.deal();
        table
    }

    /// The rules.
    pub fn game(&self) -> &Arc<dyn AnyGame> {
        &self.game
    }

    /// The position and what led to it.
    pub fn playthrough(&self) -> &Playthrough {
        &self.play
    }

    /// The seats. `[P]`
    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// The seed of dice and deals.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// True if engines do not move.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The search in progress.
    pub fn thinking(&self) -> Option<&Thinking> {
        self.thinking.as_ref()
    }

    /// What the last search for a move did, until moves are dropped.
    pub fn searched(&self) -> Option<&Searched> {
        self.searched.as_ref()
    }

    /// Why an engine could not move.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// True if the game has ended.
    pub fn is_over(&self) -> bool {
        self.play.turn() == Turn::Over
    }

    /// True if something of the game is still hidden.
    pub fn has_secrets(&self) -> bool {
        self.game.sizes().hidden_information && !self.is_over()
    }

    /// What `claim` may know.
    ///
    /// # Errors
    /// 400 for a seat that the game does not have; 403, in a game with hidden information, for a seat without its key.
    pub fn viewer(&self, claim: Claim<'_>) -> Served<Viewer> {
        if let Some(seat) = claim.seat.filter(|&seat| usize::from(seat) >= self.seats.len()) {
            let last = self.seats.len() - 1;
            return Err(Refusal::bad(format!("seat: got {seat}, expected a whole number from 0 to {last}")));
        }
        let humans: Vec<u8> =
            (0..).zip(&self.seats).filter(|(_, s)| s.key().is_some()).map(|(p, _)| p).collect();
        match (claim.seat, humans.as_slice()) {
            _ if self.is_over() && self.game.sizes().hidden_information => Ok(Viewer::All),
            (None, _) if self.has_secrets() => Ok(Viewer::Public),
            (Some(seat), _) if self.has_secrets() && !self.holds_key(seat, claim.key) => {
                Err(Refusal::forbidden(format!(
                    "what player {seat} knows is hidden: it needs the key of that seat"
                )))
            }
            (Some(seat), _) => Ok(Viewer::Player(seat)),
            (None, &[only]) => Ok(Viewer::Player(only)),
            (None, _) => Ok(Viewer::All),
        }
    }

    /// Checks that `claim` may change what the whole table shares. With hidden hands it must come from a seat of the table; at a table without
    /// people every claim may.
    ///
    /// # Errors
    /// 403, while something is hidden from people at the table, without a seat; those of [`Table::viewer`].
    pub fn admit(&self, claim: Claim<'_>) -> Served<()> {
        self.viewer(claim)?;
        if self.has_secrets() && claim.seat.is_none() && self.seats.iter().any(|seat| seat.key().is_some()) {
            return Err(Refusal::forbidden(
                "with hidden hands only who sits at the table may do this: it needs a seat and its key",
            ));
        }
        Ok(())
    }

    /// True if `key` is the key of this seat. Seats of engines have none.
    fn holds_key(&self, seat: u8, key: Option<&str>) -> bool {
        let own = self.seats[usize::from(seat)].key();
        own.is_some() && own == key
    }

    /// Plays for the person to move, and deals what follows.
    ///
    /// # Errors
    /// 409 if the game is over, an engine is to move, `seat` is not to move, or the table is not at `ply`; 400 for an illegal action;
    /// those of [`Table::viewer`].
    pub fn play(&mut self, claim: Claim<'_>, choice: Choice<'_>, ply: Option<usize>) -> Served<()> {
        self.viewer(claim)?;
        let plies = self.play.actions().len();
        if let Some(ply) = ply.filter(|&ply| ply != plies) {
            return Err(Refusal::conflict(format!("the table is at ply {plies}, not at ply {ply}")));
        }
        let player = match self.play.turn() {
            Turn::Player(player) => player,
            Turn::Chance => return Err(Refusal::conflict("chance decides")),
            Turn::Over => return Err(Refusal::conflict("the game is over")),
        };
        if let Some(seat) = claim.seat.filter(|&seat| seat != player) {
            return Err(Refusal::conflict(format!("player {player} is to move, not player {seat}")));
        }
        if self.seats[usize::from(player)].engine().is_some() {
            return Err(Refusal::conflict(format!("an engine plays for player {player}, who is to move")));
        }
        // Without a seat nobody has shown that they may play for this hand.
        self.viewer(Claim { seat: Some(player), ..claim })?;
        match choice {
            Choice::Number(action) => self.play.step(action)?,
            Choice::Name(name) => match self.play.find(name) {
                Some(action) => self.play.step(action)?,
                None => return Err(self.play.illegal(name).into()),
            },
        }
        self.moved();
        Ok(())
    }

    /// Returns to the last decision of `claim`'s seat, without one to that of any person.
    ///
    /// # Errors
    /// 409 if there is none, or if the game showed its hidden information at its end; those of [`Table::admit`].
    pub fn undo(&mut self, claim: Claim<'_>) -> Served<()> {
        self.admit(claim)?;
        if self.game.sizes().hidden_information && self.is_over() {
            return Err(Refusal::conflict(
                "the game is over and its hidden information shown: nothing is taken back",
            ));
        }
        let is_wanted = |turn: &Turn| match (turn, claim.seat) {
            (Turn::Player(player), Some(seat)) => *player == seat,
            (Turn::Player(player), None) => self.seats[usize::from(*player)].key().is_some(),
            _ => false,
        };
        let earlier = self.play.turns().iter().rposition(is_wanted);
        let plies = earlier.ok_or_else(|| Refusal::conflict("there is no earlier decision to return to"))?;
        self.set(self.play.after(plies));
        Ok(())
    }

    /// Drops all plies after the first `plies`.
    ///
    /// # Errors
    /// 400 for more plies than there are; 403 in a game with hidden information.
    pub fn go_to(&mut self, plies: usize) -> Served<()> {
        self.refuse_hidden("going to a ply")?;
        let played = self.play.actions().len();
        if plies > played {
            return Err(Refusal::bad(format!(
                "ply: got {plies}, expected a whole number from 0 to {played}"
            )));
        }
        self.set(self.play.after(plies));
        Ok(())
    }

    /// Sets the position after the actions of `list` from the start.
    ///
    /// # Errors
    /// 400 for an illegal action; 403 in a game with hidden information.
    pub fn set_position(&mut self, list: &str) -> Served<()> {
        self.refuse_hidden("setting a position")?;
        let mut play = self.play.after(0);
        play_list(&mut play, list, &mut |_, _, _| Ok(()))?;
        self.set(play);
        Ok(())
    }

    /// Changes who plays. `seats [P]`; a person who stays seated keeps the key.
    ///
    /// # Errors
    /// 403 if that would show a hand of a game with hidden information.
    pub fn set_seats(&mut self, mut seats: Vec<Seat>) -> Served<()> {
        let same_kinds = self.seats.iter().zip(&seats).all(|(old, new)| old.kind() == new.kind());
        if self.has_secrets() && !same_kinds {
            return Err(Refusal::forbidden(
                "a game with hidden hands keeps its people and engines in their seats",
            ));
        }
        for (new, old) in seats.iter_mut().zip(&self.seats) {
            if let (Seat::Human { key }, Seat::Human { key: kept }) = (new, old) {
                key.clone_from(kept);
            }
        }
        self.seats = seats;
        self.error = None;
        self.interrupt();
        Ok(())
    }

    /// Has engines wait, or go on.
    pub fn pause(&mut self, paused: Paused) {
        self.paused = paused == Paused::Yes;
        self.error = None;
        self.interrupt();
    }

    fn refuse_hidden(&self, what: &str) -> Served<()> {
        match self.game.sizes().hidden_information {
            true => Err(Refusal::forbidden(format!(
                "{what} would show hidden hands; start another table instead"
            ))),
            false => Ok(()),
        }
    }

    fn set(&mut self, play: Playthrough) {
        self.play = play;
        // The move that it chose is no longer the last one.
        self.searched = None;
        self.moved();
    }

    /// After every change of the position.
    fn moved(&mut self) {
        self.deal();
        self.error = None;
        self.interrupt();
    }

    /// Deals all outcomes of chance up to the next decision.
    fn deal(&mut self) {
        while self.play.turn() == Turn::Chance {
            let outcomes = self.play.legal();
            let probs = self.game.chance_probs(self.play.state(), &outcomes);
            let ply = self.play.actions().len() as u64;
            let mut rng = Key::new(self.seed, Purpose::Chance).with(ply).stream();
            if let Err(error) = self.play.step(outcomes[rng.weighted(&probs)]) {
                self.error = Some(error.to_string());
                return;
            }
        }
    }

    /// Ends the search in progress, whose result is no longer wanted.
    pub fn interrupt(&mut self) {
        if let Some(thinking) = self.thinking.take() {
            thinking.stop.cancel();
        }
        if let Some(stop) = self.pondering.take() {
            stop.cancel();
        }
        self.version += 1;
    }

    /// The engine that is to move now and does not think yet.
    pub fn waiting_engine(&self) -> Option<(u8, &EngineSeat)> {
        if self.paused || self.thinking.is_some() || self.error.is_some() {
            return None;
        }
        match self.play.turn() {
            Turn::Player(player) => Some((player, self.seats[usize::from(player)].engine()?)),
            Turn::Chance | Turn::Over => None,
        }
    }

    /// The engine that is to think now on the time of a person, and does not yet: the next one after that person's seat.
    pub fn waiting_ponderer(&self) -> Option<(u8, &EngineSeat)> {
        if self.paused || self.error.is_some() || self.pondering.is_some() || self.has_secrets() {
            return None;
        }
        let Turn::Player(player) = self.play.turn() else { return None };
        self.seats[usize::from(player)].key()?;
        let after = (1..self.seats.len()).map(|step| (usize::from(player) + step) % self.seats.len());
        let engine = |seat: usize| Some((seat as u8, self.seats[seat].engine()?));
        after.filter_map(engine).next().filter(|(_, engine)| engine.ponder == Ponder::Always)
    }

    /// A search on the time of the person to move begins, which `stop` ends.
    pub fn begin_pondering(&mut self, stop: &Stop) {
        self.pondering = Some(stop.clone());
    }

    /// A search for `player` begins, which `stop` ends.
    pub fn begin_thinking(&mut self, player: u8, stop: &Stop) {
        self.thinking = Some(Thinking { player, simulations: 0, stop: stop.clone() });
        self.version += 1;
    }

    /// True if the search that `stop` ends is still wanted.
    pub fn awaits(&self, stop: &Stop) -> bool {
        self.thinking.is_some() && stop.cause().is_none()
    }

    /// The search in progress has made this number of simulations.
    pub fn think(&mut self, simulations: u64) {
        if let Some(thinking) = &mut self.thinking {
            thinking.simulations = simulations;
            self.version += 1;
        }
    }

    /// The search that was awaited chose `action`.
    ///
    /// # Errors
    /// 400 for an illegal action.
    pub fn reply(&mut self, action: u16, searched: Searched) -> Served<()> {
        self.play.step(action)?;
        self.thinking = None;
        self.searched = Some(searched);
        self.moved();
        Ok(())
    }

    /// The search that was awaited failed.
    pub fn fail(&mut self, message: String) {
        self.thinking = None;
        self.error = Some(message);
        self.version += 1;
    }
}

/// Whether engines wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// They wait.
    Yes,
    /// They move.
    No,
}
