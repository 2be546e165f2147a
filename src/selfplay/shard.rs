//! One shard: some game slots and the searcher of their rows; one thread at a time makes its passes.

use super::decisions::{apply_decisions, threads_for};
use super::polls::{PollPasses, PollQueue};
use crate::backend::AnyGame;
use crate::backend::decisions::Decision;
use crate::backend::device_selfplay::PassDriver;
use crate::backend::{CachedTree, PlyPlan, RootCache, RowBudget};
use crate::error::Result;
use crate::game::Turn;
use crate::net::Network;
use crate::play::FinishedGame;
use crate::play::act::{ActionChoice, choose, sum_determinisations};
use crate::play::slot::GameSlot;
use crate::play::{DecidedPly, PlayPlan, SlotStart};
use crate::rng::Purpose;
use crate::search::root::{Exploration, RootSummary};
use crate::searcher::Searcher;
use std::ops::Range;
use std::sync::Arc;

/// Some game slots with their rows.
pub(super) struct Shard {
    pub(super) game: Arc<dyn AnyGame>,
    plan: PlayPlan,
    pub(super) searcher: Searcher,
    polls: PollQueue,
    pub(super) slots: Vec<GameSlot>,
    pub(super) driver: PassDriver,
    /// The pass after which the slots were attached to the backend.
    attached_at: u64,
    /// Finished games, each with the number of the pass that finished it.
    pub(super) finished: Vec<(u64, FinishedGame)>,
    /// Passes that all slots have made.
    pub(super) pass: u64,
    /// The first rows, which have made one pass more: a pass ends where there are enough leaves for the network, not at the last row.
    visited: usize,
    parts: Vec<RootSummary>,
    summary: RootSummary,
}

impl Shard {
    /// These slots with a searcher of their rows.
    pub(super) fn new(
        game: Arc<dyn AnyGame>,
        plan: PlayPlan,
        searcher: Searcher,
        slots: Vec<GameSlot>,
    ) -> Self {
        Self {
            game,
            plan,
            searcher,
            polls: PollQueue::new(),
            slots,
            driver: PassDriver::Caller,
            attached_at: 0,
            finished: Vec::new(),
            pass: 0,
            visited: 0,
            parts: vec![RootSummary::default(); plan.determinisations],
            summary: RootSummary::default(),
        }
    }

    /// Attaches the slots to the backend, where it can drive them.
    pub(super) fn attach_device(&mut self, cache: &RootCache) -> Result<()> {
        let starts: Vec<SlotStart<'_>> = self.slots.iter().map(GameSlot::start).collect();
        self.driver = self.polls.attach(&mut self.searcher, &self.plan, &starts, cache)?;
        self.attached_at = self.pass;
        Ok(())
    }

    /// Makes some of the `left` passes, and plays the plies that they decide; returns how many passes all rows have made.
    pub(super) fn advance(&mut self, left: u32, network: &mut dyn Network, cache: &RootCache) -> Result<u32> {
        match self.driver {
            PassDriver::Caller => self.step(left, network, cache),
            PassDriver::Backend { max_passes } => {
                self.poll_device(network, cache, left, max_passes).map(|()| left)
            }
        }
    }

    /// Makes `passes` passes that the backend drives, in polls of at most `max_passes`, and applies their decisions.
    ///
    /// The next poll is started before the decisions of a poll are read and applied, so that the device is never idle.
    /// The passes of a poll that is started and never applied are lost with the trees when new weights come: the host's slots are
    /// those after the last applied poll.
    fn poll_device(
        &mut self,
        network: &mut dyn Network,
        cache: &RootCache,
        passes: u32,
        max_passes: u32,
    ) -> Result<()> {
        let mut left = passes;
        while left > 0 {
            let now = left.min(max_passes);
            left -= now;
            let next = if left > 0 { left } else { passes }.min(max_passes);
            let made = match self.polls.in_flight() {
                0 => self.polls.start(&mut self.searcher, network, now)?,
                _ => PollPasses::InFlight,
            };
            if made == PollPasses::InFlight {
                self.polls.start(&mut self.searcher, network, next)?;
            }
            self.apply_poll(cache)?;
            self.pass += u64::from(now);
        }
        Ok(())
    }

    /// Waits for the oldest poll that was started, and plays its decisions in the host's slots.
    fn apply_poll(&mut self, cache: &RootCache) -> Result<()> {
        let (plan, game, attached_at) = (&self.plan, self.game.as_ref(), self.attached_at);
        let decisions = self.polls.finish(&mut self.searcher)?;
        let threads = threads_for(decisions.iter().map(|block| block.len()).sum());
        let play = |slot: &mut GameSlot, decision: &Decision<'_>| {
            let finished = slot.play(game, plan, &decision.ply)?;
            let inherited = cache.find(&slot.state, &slot.history).map(|tree| tree.inherited);
            Some((attached_at + u64::from(decision.pass), finished, inherited))
        };
        for (pass, finished, inherited) in apply_decisions(&mut self.slots, &decisions, threads, play)? {
            self.finished.push((pass, finished));
            self.searcher.metrics.count_start(inherited);
        }
        Ok(())
    }

    /// Makes one pass over enough rows to fill a network batch, at most over those that `left` passes over all rows allow, and plays the plies
    /// that are decided. Rows are independent, so results do not depend on where a pass ends.
    fn step(&mut self, left: u32, network: &mut dyn Network, cache: &RootCache) -> Result<u32> {
        let rows = self.searcher.backend.rows();
        let first = self.visited;
        let budget = RowBudget {
            first,
            rows: left as usize * rows - first,
            evaluations: self.batch_limit(network),
            ..RowBudget::ALL
        };
        let end = first + self.searcher.pass_with(network, budget)?;
        let made = end / rows;
        self.visited = end % rows;
        self.pass += made as u64;
        self.finish_plies(first..end, cache)?;
        Ok(made as u32)
    }

    /// Maximum number of leaves that the network evaluates in a pass. All rows of a slot of several rows belong to one pass.
    fn batch_limit(&self, network: &dyn Network) -> usize {
        match (self.plan.determinisations, network.batch_multiple()) {
            (1, Some(batch)) => (self.searcher.max_leaves() / batch / 2).max(1) * batch,
            _ => usize::MAX,
        }
    }

    /// Plays the plies that a pass through all rows decided.
    pub(super) fn after_pass(&mut self, cache: &RootCache) -> Result<()> {
        self.pass += 1;
        self.finish_plies(0..self.searcher.backend.rows(), cache)
    }

    /// Plays a ply in every slot whose search is done, among the rows `visited` by a pass; after the last row comes the first.
    fn finish_plies(&mut self, visited: Range<usize>, cache: &RootCache) -> Result<()> {
        if !self.searcher.backend.any_done()? {
            return Ok(());
        }
        let (d, slots) = (self.plan.determinisations, self.slots.len());
        for i in visited.step_by(d).map(|row| row / d % slots) {
            if self.is_done(i)? {
                self.finish_ply(i, cache)?;
            }
        }
        Ok(())
    }

    /// True where no row of slot `i` has simulations left.
    fn is_done(&mut self, i: usize) -> Result<bool> {
        let d = self.plan.determinisations;
        for b in i * d..(i + 1) * d {
            if !self.searcher.backend.is_done(b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish_ply(&mut self, i: usize, cache: &RootCache) -> Result<()> {
        self.summarise(i)?;
        let (slot, before) = (&self.slots[i], self.slots[i].actions.len());
        let choice = if before < slot.opening.saturating_add(self.plan.temperature_plies) as usize {
            ActionChoice::Drawn
        } else {
            ActionChoice::Best
        };
        let mut rng = slot.key(&self.plan, 0).key(Purpose::Act).stream();
        let action_index = choose(&self.summary, choice, &mut rng);
        self.searcher.metrics.plies += 1;
        let ply = DecidedPly::new(&self.summary, action_index);
        let finished = self.slots[i].play(self.game.as_ref(), &self.plan, &ply);
        let is_new = finished.is_some();
        let pass = self.pass + u64::from(i < self.visited);
        self.finished.extend(finished.map(|finished| (pass, finished)));
        if is_new || self.game.sizes().hidden_information {
            return self.begin_ply(i, cache);
        }
        let slot = &self.slots[i];
        self.searcher.backend.advance(i, &slot.actions[before..], &slot.state, &slot.history)?;
        self.begin_rows(i)
    }

    fn summarise(&mut self, i: usize) -> Result<()> {
        let d = self.plan.determinisations;
        if d == 1 {
            return self.searcher.backend.summarise(i, &mut self.summary);
        }
        for (j, part) in self.parts.iter_mut().enumerate() {
            self.searcher.backend.summarise(i * d + j, part)?;
        }
        sum_determinisations(&self.parts, &mut self.summary);
        Ok(())
    }

    /// Sets the roots of the slot's rows to its position and begins its ply.
    pub(super) fn begin_ply(&mut self, i: usize, cache: &RootCache) -> Result<()> {
        let (slot, backend, d) = (&self.slots[i], &mut self.searcher.backend, self.plan.determinisations);
        if self.game.sizes().hidden_information {
            let player = match self.game.turn(&slot.state) {
                Turn::Player(p) => p,
                Turn::Chance | Turn::Over => 0,
            };
            for j in 0..d {
                let mut rng = slot.key(&self.plan, j as u64).key(Purpose::Determinise).stream();
                let state = self.game.determinise(&slot.state, player, &mut rng);
                backend.set_root(i * d + j, &state, &slot.history)?;
            }
        } else if let Some(CachedTree { snapshot, inherited }) = cache.find(&slot.state, &slot.history) {
            backend.set_root_tree(i, snapshot)?;
            self.searcher.metrics.count_start(Some(*inherited));
        } else {
            backend.set_root(i, &slot.state, &slot.history)?;
        }
        self.begin_rows(i)
    }

    fn begin_rows(&mut self, i: usize) -> Result<()> {
        let (slot, d) = (&self.slots[i], self.plan.determinisations);
        for j in 0..d {
            let plan = PlyPlan {
                simulations: self.plan.simulations,
                exploration: Exploration::Noisy,
                key: slot.key(&self.plan, j as u64),
            };
            self.searcher.backend.begin(i * d + j, plan)?;
        }
        Ok(())
    }
}
