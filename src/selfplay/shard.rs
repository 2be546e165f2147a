//! One shard: some slots, and the searcher of their rows, which a thread takes through passes.

use super::FinishedGame;
use super::decisions::{apply_decisions, threads_for};
use super::slot::{GameSlot, is_fast};
use crate::act::{Choice, choose, sum_determinisations};
use crate::backend::device_selfplay::{Decided, PassDriver, PlayPlan, SlotStart};
use crate::backend::{PlyPlan, RootCache, RowBudget};
use crate::batch::AnyGame;
use crate::error::Result;
use crate::game::Turn;
use crate::net::Network;
use crate::rng::Purpose;
use crate::search::root::{Exploration, RootSummary};
use crate::searcher::Searcher;
use std::ops::Range;
use std::sync::Arc;

/// Some slots with their rows.
pub(super) struct Shard {
    pub(super) game: Arc<dyn AnyGame>,
    plan: PlayPlan,
    pub(super) searcher: Searcher,
    pub(super) slots: Vec<GameSlot>,
    pub(super) lead: PassDriver,
    /// The pass after which the backend took the slots over.
    attached_at: u64,
    /// Finished games with the number of the pass of their slot that finished them.
    pub(super) finished: Vec<(u64, FinishedGame)>,
    /// Passes that all slots have made.
    pass: u64,
    /// Rows, the first ones, that have made one more: the network is asked when it has enough to answer, not when all rows have
    /// passed.
    visited: usize,
    parts: Vec<RootSummary>,
    summary: RootSummary,
}

impl Shard {
    /// These slots, with a searcher of their rows.
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
            slots,
            lead: PassDriver::Caller,
            attached_at: 0,
            finished: Vec::new(),
            pass: 0,
            visited: 0,
            parts: vec![RootSummary::default(); plan.determinisations],
            summary: RootSummary::default(),
        }
    }

    pub(super) fn start_all(&mut self) {
        for slot in &mut self.slots {
            slot.open(self.game.as_ref(), &self.plan);
        }
    }

    /// Gives the slots to the backend, if it takes them.
    pub(super) fn attach_device(&mut self, cache: &RootCache) -> Result<()> {
        let starts: Vec<SlotStart<'_>> = self.slots.iter().map(GameSlot::start).collect();
        self.lead = self.searcher.backend.attach_selfplay(&self.plan, &starts, cache)?;
        self.attached_at = self.pass;
        Ok(())
    }

    /// Some of the `left` passes, and whatever the slots whose search they finish do next; how many all rows have made.
    pub(super) fn advance(&mut self, left: u32, network: &mut dyn Network, cache: &RootCache) -> Result<u32> {
        match self.lead {
            PassDriver::Caller => self.step(left, network, cache),
            PassDriver::Backend { most_passes } => {
                self.drain_device(network, left, most_passes).map(|()| left)
            }
        }
    }

    /// A stride that the backend leads: what it decided is entered in the slots.
    fn drain_device(&mut self, network: &mut dyn Network, passes: u32, most_passes: u32) -> Result<()> {
        let decided = self.searcher.play_with(network, passes, most_passes)?;
        self.searcher.clock.plies += decided.len() as u64;
        let (plan, game, attached_at) = (&self.plan, self.game.as_ref(), self.attached_at);
        let enter = |slot: &mut GameSlot, decided: &Decided| {
            let finished = slot.enter(game, plan, &decided.summary, decided.place)?;
            Some((attached_at + u64::from(decided.pass), finished))
        };
        let threads = threads_for(decided.len());
        self.finished.extend(apply_decisions(&mut self.slots, decided, threads, enter));
        self.pass += u64::from(passes);
        Ok(())
    }

    /// A pass until the network has enough to answer, in the `left` passes of all rows, and whatever the slots whose search it finished
    /// do next. Rows know nothing of one another, so that it is all the same to them when they are passed.
    fn step(&mut self, left: u32, network: &mut dyn Network, cache: &RootCache) -> Result<u32> {
        let rows = self.searcher.backend.rows();
        let first = self.visited;
        let reach = RowBudget {
            first,
            rows: left as usize * rows - first,
            evaluations: self.answered_at_once(network),
        };
        let end = first + self.searcher.pass_with(network, reach)?;
        let made = end / rows;
        self.visited = end % rows;
        self.pass += made as u64;
        self.finish_plies(first..end, cache);
        Ok(made as u32)
    }

    /// How many leaves the network is asked about in a pass, at most. A slot of several rows has all of them in one pass.
    fn answered_at_once(&self, network: &dyn Network) -> usize {
        match (self.plan.determinisations, network.whole_batch()) {
            (1, Some(batch)) => (self.searcher.most_leaves() / batch / 2).max(1) * batch,
            _ => usize::MAX,
        }
    }

    /// What the slots whose search a pass of all rows finished do next.
    pub(super) fn after_pass(&mut self, cache: &RootCache) {
        self.pass += 1;
        self.finish_plies(0..self.searcher.backend.rows(), cache);
    }

    /// What those slots do next whose search is finished and that a pass went through: of rows `visited`, which go on with the first
    /// ones after the last.
    fn finish_plies(&mut self, visited: Range<usize>, cache: &RootCache) {
        if !self.searcher.backend.any_done() {
            return;
        }
        let (d, slots) = (self.plan.determinisations, self.slots.len());
        for i in visited.step_by(d).map(|row| row / d % slots) {
            if (i * d..(i + 1) * d).all(|b| self.searcher.backend.is_done(b)) {
                self.finish_ply(i, cache);
            }
        }
    }

    fn finish_ply(&mut self, i: usize, cache: &RootCache) {
        self.summarise(i);
        let (slot, before) = (&self.slots[i], self.slots[i].actions.len());
        let choice = if before < slot.opening.saturating_add(self.plan.temperature_plies) as usize {
            Choice::Drawn
        } else {
            Choice::Best
        };
        let mut rng = slot.key(&self.plan, 0).key(Purpose::Act).stream();
        let place = choose(&self.summary, choice, &mut rng);
        self.searcher.clock.plies += 1;
        let finished = self.slots[i].enter(self.game.as_ref(), &self.plan, &self.summary, place);
        let is_new = finished.is_some();
        let pass = self.pass + u64::from(i < self.visited);
        self.finished.extend(finished.map(|finished| (pass, finished)));
        if is_new || self.game.sizes().hidden_information {
            self.begin_ply(i, cache);
            return;
        }
        let slot = &self.slots[i];
        self.searcher.backend.advance(i, &slot.actions[before..], &slot.state, &slot.history);
        self.begin_rows(i);
    }

    fn summarise(&mut self, i: usize) {
        let d = self.plan.determinisations;
        if d == 1 {
            self.searcher.backend.summarise(i, &mut self.summary);
            return;
        }
        for (j, part) in self.parts.iter_mut().enumerate() {
            self.searcher.backend.summarise(i * d + j, part);
        }
        sum_determinisations(&self.parts, &mut self.summary);
    }

    /// Plants the slot's position anew and begins its ply.
    pub(super) fn begin_ply(&mut self, i: usize, cache: &RootCache) {
        let (slot, backend, d) = (&self.slots[i], &mut self.searcher.backend, self.plan.determinisations);
        if self.game.sizes().hidden_information {
            let player = match self.game.turn(&slot.state) {
                Turn::Player(p) => p,
                Turn::Chance | Turn::Over => 0,
            };
            for j in 0..d {
                let mut rng = slot.key(&self.plan, j as u64).key(Purpose::Determinise).stream();
                let state = self.game.determinise(&slot.state, player, &mut rng);
                backend.set_root(i * d + j, &state, &slot.history);
            }
        } else if let Some((_, snapshot)) = cache.iter().find(|(root, _)| *root == slot.state) {
            backend.set_root_tree(i, snapshot);
        } else {
            backend.set_root(i, &slot.state, &slot.history);
        }
        self.begin_rows(i);
    }

    fn begin_rows(&mut self, i: usize) {
        let (slot, d) = (&self.slots[i], self.plan.determinisations);
        let key = slot.key(&self.plan, 0);
        let fast = is_fast(&self.plan, key);
        for j in 0..d {
            let plan = PlyPlan {
                simulations: if fast { self.plan.fast_simulations } else { self.plan.simulations },
                exploration: if fast { Exploration::Plain } else { Exploration::Noisy },
                key: slot.key(&self.plan, j as u64),
            };
            self.searcher.backend.begin(i * d + j, plan);
        }
    }
}
