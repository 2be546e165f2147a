//! The learner's side of an epoch: takes the polls of all parts, each when all parts have sent it.

use super::super::bounds::KEPT_BYTES;
use super::poll::{PartPoll, most_records};
use super::{POLLS_AHEAD, parts};
use crate::backend::device_selfplay::PlayPlan;
use crate::batch::AnyGame;
use crate::selfplay::{FinishedGame, GameSlot};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// What became of a part's poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It waits until all parts have sent it.
    Waits,
    /// It is further ahead than the polls for which there is room. It is needed later.
    NoRoom,
    /// It came before.
    Repeated,
    /// Its weights are not those of this epoch.
    OtherVersion,
    /// There is no such part, it is further ahead than a worker plays, has more plies than a poll, or its worker was refused in this epoch.
    Impossible,
}

/// A part's poll that the rules do not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The worker's name.
    pub sender: String,
    /// The worker's process.
    pub incarnation: u64,
    /// The part, which another worker plays.
    pub part: usize,
    /// What is wrong.
    pub what: String,
    /// Processes that were refused in this part and this epoch, with this one. More than a few say that a poll which was taken before is not
    /// what they play.
    pub processes: usize,
}

/// The game slots of a run, and the polls that wait for others.
pub struct Lockstep {
    game: Arc<dyn AnyGame>,
    plan: PlayPlan,
    parts: Vec<Range<usize>>,
    /// After the last poll that was taken. `[N]`
    slots: Vec<GameSlot>,
    version: u64,
    /// Polls of the epoch that were taken.
    taken: u64,
    /// By poll. `[parts]`
    waiting: Vec<BTreeMap<u64, PartPoll>>,
    /// Bytes of the polls that wait.
    bytes: u64,
    /// The most of them, but for the next poll of each part, which always has room.
    most_bytes: u64,
    /// A poll of this epoch was left out for lack of room since the last one that was taken.
    left_out: bool,
    /// A poll was taken since, so that there may be room for them.
    wanted: bool,
    /// Processes of which a poll was refused in this epoch. `[parts]`
    refused: Vec<BTreeSet<u64>>,
    passes_per_poll: u32,
}

impl Lockstep {
    /// Begins with these slots, whose polls have so many passes.
    pub fn new(game: Arc<dyn AnyGame>, plan: PlayPlan, slots: Vec<GameSlot>, passes_per_poll: u32) -> Self {
        let parts: Vec<Range<usize>> = parts(slots.len()).collect();
        let waiting = vec![BTreeMap::new(); parts.len()];
        let refused = vec![BTreeSet::new(); parts.len()];
        Self {
            game,
            plan,
            parts,
            slots,
            version: 0,
            taken: 0,
            waiting,
            bytes: 0,
            most_bytes: KEPT_BYTES,
            left_out: false,
            wanted: false,
            refused,
            passes_per_poll,
        }
    }

    /// The same with room for so many bytes of polls that wait.
    pub fn with_room(self, most_bytes: u64) -> Self {
        Self { most_bytes, ..self }
    }

    /// Begins the epoch that is played with the weights of `version`.
    pub fn begin(&mut self, version: u64) {
        (self.version, self.taken, self.bytes) = (version, 0, 0);
        (self.left_out, self.wanted) = (false, false);
        self.waiting.iter_mut().for_each(BTreeMap::clear);
        self.refused.iter_mut().for_each(BTreeSet::clear);
    }

    /// The games in progress after the last poll that was taken. `[N]`
    pub fn slots(&self) -> &[GameSlot] {
        &self.slots
    }

    /// The version of the weights with which the epoch is played.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Polls of the epoch that were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Keeps a part's poll until all parts have sent it.
    pub fn offer(&mut self, poll: PartPoll) -> Offered {
        if poll.version != self.version {
            return Offered::OtherVersion;
        }
        if poll.poll <= self.taken {
            return Offered::Repeated;
        }
        let Some(waiting) = self.waiting.get_mut(poll.part).filter(|_| poll.poll <= self.taken + POLLS_AHEAD)
        else {
            return Offered::Impossible;
        };
        let most = most_records(self.parts[poll.part].len(), self.passes_per_poll);
        if poll.plies.len() > most || self.refused[poll.part].contains(&poll.incarnation) {
            return Offered::Impossible;
        }
        if waiting.contains_key(&poll.poll) {
            return Offered::Repeated;
        }
        let (part, number) = (poll.part, poll.poll);
        self.bytes += poll.bytes() as u64;
        waiting.insert(number, poll);
        self.make_room();
        match self.waiting[part].contains_key(&number) {
            true => Offered::Waits,
            false => Offered::NoRoom,
        }
    }

    /// Leaves out the polls that are the furthest ahead until the others have room.
    fn make_room(&mut self) {
        let next = self.taken + 1;
        while self.bytes > self.most_bytes {
            let last = |(part, waiting): (usize, &BTreeMap<u64, PartPoll>)| {
                waiting.last_key_value().map(|(number, _)| (*number, part))
            };
            let furthest = self.waiting.iter().enumerate().filter_map(last).max();
            let Some((number, part)) = furthest.filter(|(number, _)| *number > next) else { return };
            self.waiting[part].remove(&number).iter().for_each(|poll| self.bytes -= poll.bytes() as u64);
            self.left_out = true;
        }
    }

    /// Bytes of the polls that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether polls of this epoch are to be offered again, after one was taken: there was no room for some. True once.
    pub fn wants_again(&mut self) -> bool {
        std::mem::take(&mut self.wanted)
    }

    /// Takes the next poll if all parts have sent it: plays its plies and returns the games that it has ended, by pass and slot. If the
    /// rules do not give them in some part, no slot has changed, and all that waits of that part is dropped: it is offered again.
    pub fn take(&mut self) -> Option<Result<Vec<FinishedGame>, Refused>> {
        let poll = self.taken + 1;
        let sent: Option<Vec<&PartPoll>> = self.waiting.iter().map(|waiting| waiting.get(&poll)).collect();
        let mut slots = Vec::with_capacity(self.slots.len());
        let mut ended = Vec::new();
        for (range, sent) in self.parts.iter().zip(sent?) {
            slots.extend_from_slice(&self.slots[range.clone()]);
            if let Err(what) = self.play(&mut slots, range, sent, &mut ended) {
                let (sender, incarnation, part) = (sent.sender.clone(), sent.incarnation, sent.part);
                let dropped = std::mem::take(&mut self.waiting[part]);
                self.bytes -= dropped.values().map(|poll| poll.bytes() as u64).sum::<u64>();
                self.refused[part].insert(incarnation);
                let processes = self.refused[part].len();
                return Some(Err(Refused { sender, incarnation, part, what, processes }));
            }
        }
        self.slots = slots;
        self.taken = poll;
        let played = self.waiting.iter_mut().filter_map(|waiting| waiting.remove(&poll));
        self.bytes -= played.map(|poll| poll.bytes() as u64).sum::<u64>();
        self.wanted |= std::mem::take(&mut self.left_out);
        ended.sort_by_key(|(pass, game): &(u64, FinishedGame)| (*pass, game.slot));
        Some(Ok(ended.into_iter().map(|(_, game)| game).collect()))
    }

    /// Plays in `slots [N]` what a poll decided in the part with the slots of `range`.
    fn play(
        &self,
        slots: &mut [GameSlot],
        range: &Range<usize>,
        poll: &PartPoll,
        ended: &mut Vec<(u64, FinishedGame)>,
    ) -> Result<(), String> {
        for plies in &poll.plies {
            let number = plies.record.slot as usize;
            if !range.contains(&number) {
                return Err(format!("slot {number} is not one of part {}", poll.part));
            }
            let finished = plies.record.play_in(&mut slots[number], self.game.as_ref(), &self.plan)?;
            match (finished, plies.ended_by) {
                (Some(game), Some(pass)) => ended.push((pass, game)),
                (None, None) => {}
                (finished, _) => {
                    let is = if finished.is_some() { "is" } else { "is not" };
                    return Err(format!("slot {number}: the game {is} over, and the poll says otherwise"));
                }
            }
        }
        Ok(())
    }
}
