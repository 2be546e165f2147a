//! The engine: one position, its trees, and their search.

use super::analysis::{Analysis, Move};
use super::limit::{Clock, EndCause, Limit};
use super::position_batch::determinised;
use super::settings::Settings;
use super::shard::PassBlocker;
use super::trees::Trees;
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::model::Head;
use crate::net::Network;
use crate::search::root::RowKey;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest expected continuation.
const LINE: usize = 12;

/// A network and the trees of one position.
pub struct Engine {
    settings: Settings,
    trees: Trees,
    /// The threads of the search; None where there is one, the caller's.
    pool: Option<Arc<ThreadPool>>,
    play: Playthrough,
    root: Root,
    /// The moves of the position that are searched; empty for all.
    only: Vec<u16>,
    /// The moves to which the roots of the trees are restricted.
    root_moves: Vec<u16>,
    /// The network's probability of a draw in the position, where it has one.
    draw: Option<f32>,
}

/// How far the trees follow the position.
enum Root {
    /// They are of some other position.
    Unset,
    /// Their roots are the position before these actions, which were played since.
    Behind(Vec<u16>),
    /// Their roots are the position.
    Set,
}

/// Simulations and evaluations of one analysis.
#[derive(Default)]
struct Counts {
    simulations: u64,
    evaluations: u64,
}

impl Engine {
    /// An engine at the start of `game`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the network is not made for this game, [`Error::Config`] for a memory limit that holds no tree,
    /// [`Error::Unsupported`] if the system refuses the threads, and those of the device.
    pub fn new(game: Arc<dyn AnyGame>, network: &dyn Network, settings: Settings) -> Result<Self> {
        let threads = settings.num_threads();
        let pool = (threads > 1).then(|| ThreadPoolBuilder::new().num_threads(threads).build()).transpose();
        let pool = pool.map_err(|e| Error::unsupported(format!("{threads} threads"), e.to_string()))?;
        Ok(Self {
            settings,
            trees: Trees::new(&game, network, settings)?,
            pool: pool.map(Arc::new),
            play: Playthrough::new(game),
            root: Root::Unset,
            only: Vec::new(),
            root_moves: Vec::new(),
            draw: None,
        })
    }

    /// The rules.
    pub fn game(&self) -> &Arc<dyn AnyGame> {
        self.trees.game()
    }

    /// The position, and the actions that led to it.
    pub fn playthrough(&self) -> &Playthrough {
        &self.play
    }

    /// Sets the position, all of whose moves are searched. If it continues the present one, the tree is kept as by [`Engine::play`].
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a position of another game, or by other rules.
    pub fn set_position(&mut self, play: &Playthrough) -> Result<()> {
        let [own, other] = [self.play.game(), play.game()].map(|game| (game.name(), game.rules()));
        if own != other {
            return Err(Error::mismatch(
                "game of the position",
                format_args!("{} {:?}", other.0, other.1),
                format_args!("{} {:?}", own.0, own.1),
            ));
        }
        self.only.clear();
        let continued = play.actions().strip_prefix(self.play.actions());
        match continued.filter(|_| play.start() == self.play.start()) {
            Some(played) => played.iter().try_for_each(|&action| self.play(action)),
            None => {
                (self.play, self.root) = (play.clone(), Root::Unset);
                Ok(())
            }
        }
    }

    /// Plays `action`, or deals that outcome, and keeps the tree below it. With hidden information the next analysis begins with new
    /// deals.
    ///
    /// # Errors
    /// [`Error::IllegalAction`].
    pub fn play(&mut self, action: u16) -> Result<()> {
        self.play.step(action)?;
        self.only.clear();
        let root = std::mem::replace(&mut self.root, Root::Unset);
        self.root = match root {
            Root::Unset => Root::Unset,
            Root::Behind(mut actions) => {
                actions.push(action);
                Root::Behind(actions)
            }
            Root::Set => Root::Behind(vec![action]),
        };
        Ok(())
    }

    /// Restricts the analyses of this position to `moves`, whose result then has no others; without moves, all are searched again. Below these
    /// moves everything is searched. The first analysis after a change begins with a new tree; the next position has no restriction.
    ///
    /// # Errors
    /// [`Error::IllegalAction`]; the analysis fails with [`Error::Unsupported`] for the algorithm afterstate.
    pub fn restrict(&mut self, moves: &[u16]) -> Result<()> {
        let legal = self.play.legal();
        if let Some(wrong) = moves.iter().find(|action| !legal.contains(action)) {
            return Err(self.play.illegal(&wrong.to_string()));
        }
        self.only = legal.into_iter().filter(|action| moves.contains(action)).collect();
        Ok(())
    }

    /// Searches the position up to `limit`; a further call continues. There is a result even if the limit has already been reached: that
    /// of the network.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where no player is to move, and those of the network and the device.
    pub fn analyse(&mut self, limit: &Limit) -> Result<Analysis> {
        self.analyse_with(limit, Duration::MAX, &mut |_| ())
    }

    /// [`Engine::analyse`], which calls `report` with the result so far after each `interval`, on a thread of the search.
    ///
    /// # Errors
    /// As [`Engine::analyse`].
    pub fn analyse_with(
        &mut self,
        limit: &Limit,
        interval: Duration,
        report: &mut (dyn FnMut(&Analysis) + Send),
    ) -> Result<Analysis> {
        let clock = Clock::start(limit);
        match self.play.turn() {
            Turn::Player(_) => {}
            Turn::Chance => {
                return Err(Error::unsupported("analysis of a chance node", "play its outcome first"));
            }
            Turn::Over => return Err(Error::unsupported("analysis of this position", "the game is over")),
        }
        let pool = self.pool.clone();
        let mut search = || {
            self.set_root()?;
            let mut counts = Counts::default();
            let end = self.search(&clock, &mut counts, interval, report)?;
            self.found(&clock, &counts, end)
        };
        let found = match pool {
            Some(pool) => pool.install(search),
            None => search(),
        };
        if found.is_err() {
            // A pass that failed leaves nodes without an evaluation, and virtual losses.
            self.root = Root::Unset;
        }
        found
    }

    /// Makes the position the root of all trees.
    fn set_root(&mut self) -> Result<()> {
        let key =
            RowKey { seed: self.settings.seed, ply: self.play.actions().len() as u64, ..RowKey::default() };
        if matches!(self.root, Root::Set) && self.root_moves == self.only {
            return Ok(());
        }
        let is_hidden = self.play.game().sizes().hidden_information;
        let positions = determinised(&self.play, key, self.trees.count());
        match &self.root {
            Root::Behind(actions) if !is_hidden && self.only.is_empty() => {
                self.trees.advance(actions, &positions[0])?
            }
            _ => self.trees.set_roots(&positions)?,
        }
        // Trees that are only half restricted belong to no position.
        self.root = Root::Unset;
        if !self.only.is_empty() {
            self.trees.restrict_roots(&self.only)?;
        }
        self.root_moves.clone_from(&self.only);
        self.draw = self.trees.draw(&positions)?;
        self.root = Root::Set;
        Ok(())
    }

    /// Searches until an end.
    fn search(
        &mut self,
        clock: &Clock<'_>,
        counts: &mut Counts,
        interval: Duration,
        report: &mut (dyn FnMut(&Analysis) + Send),
    ) -> Result<EndCause> {
        loop {
            let made = self.trees.search(clock, Instant::now().checked_add(interval))?;
            counts.simulations += made.simulations;
            counts.evaluations += made.evaluations;
            if made.is_proven {
                return Ok(EndCause::Proven);
            }
            if let Some(end) = clock.end() {
                return Ok(end);
            }
            match made.blocker {
                PassBlocker::Open => report(&self.found(clock, counts, EndCause::Running)?),
                PassBlocker::Done | PassBlocker::Limit => return Ok(EndCause::Simulations),
                PassBlocker::Memory => return Ok(EndCause::Memory),
                PassBlocker::Time => return Ok(EndCause::Time),
            }
        }
    }

    /// The result so far.
    fn found(&mut self, clock: &Clock<'_>, counts: &Counts, end: EndCause) -> Result<Analysis> {
        let summary = self.trees.summarise()?;
        let is_hidden = self.play.game().sizes().hidden_information;
        let lines = match is_hidden {
            true => summary.actions.iter().map(|&action| vec![action]).collect(),
            false => self.trees.variations(&summary.actions, LINE)?,
        };
        let mut order: Vec<usize> = (0..summary.actions.len()).collect();
        let key = |&i: &usize| (i != summary.best, -summary.visits[i]);
        let by = |of: &[f32], a: usize, b: usize| of[b].total_cmp(&of[a]);
        order.sort_by(|&a, &b| {
            key(&a).cmp(&key(&b)).then(by(&summary.prior, a, b)).then(by(&summary.q, a, b))
        });
        let to_move = |i: usize| {
            let (action, visits) = (summary.actions[i], summary.visits[i] as u64);
            Move {
                action,
                name: self.play.game().action_name(self.play.state(), action),
                visits,
                prior: summary.prior[i],
                policy: summary.policy[i],
                value: (visits > 0).then_some(summary.q[i]),
                line_names: self.names(&lines[i]),
                line: lines[i].clone(),
            }
        };
        let own = summary.value[usize::from(summary.player)];
        Ok(Analysis {
            outcome: self.draw.map(|draw| match summary.proven {
                true => Head::outcome_of(own),
                false => outcome_with(own, draw),
            }),
            player: summary.player,
            moves: order.into_iter().map(to_move).collect(),
            visits: summary.visits.iter().map(|&visits| visits as u64).sum(),
            value: summary.value,
            proven: summary.proven,
            simulations: counts.simulations,
            evaluations: counts.evaluations,
            seconds: clock.start.elapsed().as_secs_f64(),
            nodes: self.trees.nodes()?,
            end,
        })
    }

    /// The names of the actions of a continuation.
    fn names(&self, line: &[u16]) -> Vec<String> {
        let mut play = self.play.clone();
        let mut names = Vec::with_capacity(line.len());
        for &action in line {
            names.push(play.game().action_name(play.state(), action));
            if play.step(action).is_err() {
                break;
            }
        }
        names
    }
}

/// Win, draw and loss with a mean of `value` and a draw as likely as `draw`, or as that mean allows.
fn outcome_with(value: f32, draw: f32) -> [f32; 3] {
    let value = value.clamp(-1.0, 1.0);
    let decided = 1.0 - draw.min(1.0 - value.abs());
    [(decided + value) / 2.0, 1.0 - decided, (decided - value) / 2.0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_the_value_as_mean() {
        for (value, draw) in [(0.0, 0.3), (0.5, 0.2), (-0.5, 0.9), (1.0, 0.5), (-1.0, 0.0)] {
            let [win, drawn, loss] = outcome_with(value, draw);
            assert!((win - loss - value).abs() < 1e-6 && (win + drawn + loss - 1.0).abs() < 1e-6);
            assert!([win, drawn, loss].iter().all(|&p| p >= 0.0) && drawn <= draw + 1e-6);
        }
        assert_eq!(outcome_with(0.0, 0.25), [0.375, 0.25, 0.375]);
    }
}
