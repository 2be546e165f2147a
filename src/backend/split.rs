//! Rows on several devices: one backend on each device, with the rows of consecutive games.
//!
//! Random numbers are keyed by game and no row reads another, so games are equal to the bit however they are split. Whole passes run on
//! all devices at the same time, one thread each, without communication.

use super::decisions::DecisionBlock;
use super::device_selfplay::Copied;
use super::pass_parts::PassParts;
use super::plan::BackendPlan;
use super::{Backend, DevicePasses, PassStages, PlyPlan, RootCache, RowBudget, TreeRows, TreeSnapshot};
use crate::config::DeviceName;
use crate::error::{Error, Result};
use crate::game::Sizes;
use crate::net::NetworkDesc;
use crate::play::{PlayPlan, SlotStart};
use crate::search::PassStats;
use crate::search::eval_cache::EvalCache;
use crate::search::root::RootSummary;
use crate::threads;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The rows of one device.
struct DeviceRows {
    device: DeviceName,
    backend: Box<dyn Backend>,
    rows: Range<usize>,
    /// The selection of the current staged pass.
    selected: PassStats,
}

/// B rows on several devices.
pub struct SplitBackend {
    parts: Vec<DeviceRows>,
    sizes: Sizes,
    rows_per_game: usize,
}

impl SplitBackend {
    /// Splits the rows of `plan`, `rows_per_game` for each game, over `devices` as evenly as whole games allow. `make` makes the backend of
    /// one device; all are of one kind.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for fewer games than devices, [`Error::Mismatch`] where only some devices make passes by themselves, and
    /// those of `make`. Where memory is short, [`Error::Memory`] names the device
    /// on which fewest games fit and gives the number of games that would fit on all.
    pub fn new(
        plan: BackendPlan,
        devices: &[DeviceName],
        rows_per_game: usize,
        make: &dyn Fn(DeviceName, BackendPlan) -> Result<Box<dyn Backend>>,
    ) -> Result<Self> {
        let (d, games, num) = (rows_per_game.max(1), plan.rows / rows_per_game.max(1), devices.len());
        if games < num || num == 0 {
            let what = format!("{games} games on {num} devices");
            return Err(Error::unsupported(what, "every device needs at least one game"));
        }
        let made = devices.iter().enumerate().map(|(i, &device)| {
            let rows = d * (games * i / num)..d * (games * (i + 1) / num);
            let made = make(device, BackendPlan { rows: rows.len(), ..plan });
            (device, made.map(|backend| DeviceRows { device, backend, rows, selected: PassStats::default() }))
        });
        let mut parts = all_of(made.collect(), d)?;
        let device_driven = parts.iter_mut().map(|part| part.backend.device().map(drop)).collect();
        all_or_none(device_driven, "devices that make passes by themselves")?;
        let sizes = *parts[0].backend.sizes();
        Ok(Self { parts, sizes, rows_per_game: d })
    }

    /// Does `work` on all parts at the same time.
    ///
    /// # Errors
    /// Those of `work`, and [`Error::Unsupported`] if a part has no thread.
    fn at_once<T: Send>(&mut self, work: impl Fn(&mut DeviceRows) -> Result<T> + Sync) -> Result<Vec<T>> {
        let work = &work;
        let done = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .parts
                .iter_mut()
                .map(|part| {
                    let purpose = format!("the games on {}", part.device);
                    (part.device, threads::start(scope, &purpose, move || work(part)))
                })
                .collect();
            threads.into_iter().map(|(device, thread)| (device, thread.and_then(threads::join))).collect()
        });
        all_of(done, self.rows_per_game)
    }

    /// The backend of row `b`, and the row's index there.
    fn at(&mut self, b: usize) -> (&mut dyn Backend, usize) {
        let part = self.part_of(b);
        let part = &mut self.parts[part];
        (part.backend.as_mut(), b - part.rows.start)
    }

    fn part_of(&self, b: usize) -> usize {
        self.parts.partition_point(|part| part.rows.end <= b)
    }
}

impl DeviceRows {
    /// [`PassStages::observe`] on all `parts`, each with its share of `obs`: `width` elements for each leaf that needs the network.
    fn observe(parts: &mut [Self], obs: &mut [f32], width: usize) -> Result<()> {
        if let [part] = parts {
            return part.backend.observe(obs);
        }
        let (left, right) = parts.split_at_mut(parts.len() / 2);
        let (l, r) = obs.split_at_mut(width * Self::num_evaluations(left));
        let (left, right) = rayon::join(|| Self::observe(left, l, width), || Self::observe(right, r, width));
        left.and(right)
    }

    /// [`PassStages::expand`] in the same way; `widths`: logits and values of one leaf.
    fn expand(parts: &mut [Self], outputs: [&[f32]; 2], widths: [usize; 2]) -> Result<()> {
        let [logits, values] = outputs;
        if let [part] = parts {
            return part.backend.expand(logits, values);
        }
        let (left, right) = parts.split_at_mut(parts.len() / 2);
        let m = Self::num_evaluations(left);
        let (left_logits, right_logits) = logits.split_at(widths[0] * m);
        let (left_values, right_values) = values.split_at(widths[1] * m);
        let (left, right) = rayon::join(
            || Self::expand(left, [left_logits, left_values], widths),
            || Self::expand(right, [right_logits, right_values], widths),
        );
        left.and(right)
    }

    /// The device that makes this part's passes.
    fn device(&mut self) -> Result<&mut dyn DevicePasses> {
        let name = self.device;
        self.backend.device().ok_or_else(|| {
            Error::unsupported(
                format!("passes on {name} without the host"),
                "rows on several devices need a backend on each that makes passes by itself",
            )
        })
    }

    /// Leaves of the pass that need the network.
    fn num_evaluations(parts: &[Self]) -> usize {
        parts.iter().map(|part| part.selected.evaluations).sum()
    }
}

/// The results of all devices, or the first error. Of several [`Error::Memory`] it is that of the device on which fewest games fit, since
/// all devices have equally many.
fn all_of<T>(results: Vec<(DeviceName, Result<T>)>, rows_per_game: usize) -> Result<Vec<T>> {
    let num = results.len() as u64;
    let (mut all, mut least): (Vec<T>, Option<(u64, Error)>) = (Vec::with_capacity(results.len()), None);
    for (device, result) in results {
        match result {
            Ok(one) => all.push(one),
            Err(Error::Memory { need_mib, have_mib, limit, detail, largest_games: rows }) => {
                let detail =
                    format!("on {device}{}", detail.strip_prefix("on the device").unwrap_or(&detail));
                let d = rows_per_game as u64;
                let largest_games = rows / d * d * num;
                let error = Error::Memory { need_mib, have_mib, limit, detail, largest_games };
                if least.as_ref().is_none_or(|(fewest, _)| rows < *fewest) {
                    least = Some((rows, error));
                }
            }
            Err(other) => return Err(other),
        }
    }
    least.map_or(Ok(all), |(_, error)| Err(error))
}

/// The results of all devices; None if no device has a result. `what` names the devices that have one, for the error.
fn all_or_none<T>(results: Vec<Option<T>>, what: &str) -> Result<Option<Vec<T>>> {
    let num = results.len();
    let given: Vec<T> = results.into_iter().flatten().collect();
    match given.len() {
        0 => Ok(None),
        all if all == num => Ok(Some(given)),
        some => Err(Error::mismatch(what, format_args!("{some} of {num}"), "all of them, or none")),
    }
}

/// Devices with a resident network.
const RESIDENT: &str = "devices with a resident network";

/// The counts of all devices.
fn sum(parts: Vec<PassStats>) -> PassStats {
    parts.into_iter().fold(PassStats::default(), PassStats::plus)
}

impl TreeRows for SplitBackend {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows.len()).sum()
    }

    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) -> Result<()> {
        let (backend, b) = self.at(b);
        backend.set_root(b, state, history)
    }

    fn set_root_tree(&mut self, b: usize, snapshot: &TreeSnapshot) -> Result<()> {
        let (backend, b) = self.at(b);
        backend.set_root_tree(b, snapshot)
    }

    fn snapshot(&mut self, b: usize, limit: usize) -> Result<TreeSnapshot> {
        let (backend, b) = self.at(b);
        backend.snapshot(b, limit)
    }

    fn begin(&mut self, b: usize, plan: PlyPlan) -> Result<()> {
        let (backend, b) = self.at(b);
        backend.begin(b, plan)
    }

    fn is_done(&mut self, b: usize) -> Result<bool> {
        let (backend, b) = self.at(b);
        backend.is_done(b)
    }

    fn any_done(&mut self) -> Result<bool> {
        for part in &mut self.parts {
            if part.backend.any_done()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn summarise(&mut self, b: usize, out: &mut RootSummary) -> Result<()> {
        let (backend, b) = self.at(b);
        backend.summarise(b, out)
    }

    fn advance(&mut self, b: usize, actions: &[u16], state: &[u8], history: &[u64]) -> Result<()> {
        let (backend, b) = self.at(b);
        backend.advance(b, actions, state, history)
    }

    fn root_state(&mut self, b: usize) -> Result<&[u8]> {
        let (backend, b) = self.at(b);
        backend.root_state(b)
    }

    fn root_history(&mut self, b: usize) -> Result<&[u64]> {
        let (backend, b) = self.at(b);
        backend.root_history(b)
    }

    fn num_nodes(&mut self, b: usize) -> Result<usize> {
        let (backend, b) = self.at(b);
        backend.num_nodes(b)
    }

    fn variations(&mut self, b: usize, first: &[u16], max_len: usize) -> Result<Vec<Vec<u16>>> {
        let (backend, b) = self.at(b);
        backend.variations(b, first, max_len)
    }
}

impl PassStages for SplitBackend {
    fn set_eval_cache(&mut self, cache: Arc<EvalCache>) -> Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.backend.set_eval_cache(cache.clone()))
    }

    fn select(&mut self, _budget: RowBudget) -> Result<PassStats> {
        self.parts.par_iter_mut().try_for_each(|part| -> Result<()> {
            part.selected = part.backend.select(RowBudget::ALL)?;
            Ok(())
        })?;
        Ok(self.parts.iter().fold(PassStats::default(), |all, part| all.plus(part.selected)))
    }

    fn observe(&mut self, obs: &mut [f32]) -> Result<()> {
        DeviceRows::observe(&mut self.parts, obs, self.sizes.obs.len())
    }

    fn expand(&mut self, logits: &[f32], values: &[f32]) -> Result<()> {
        let widths = [self.sizes.num_actions, self.sizes.num_players];
        DeviceRows::expand(&mut self.parts, [logits, values], widths)
    }

    fn backup(&mut self) -> Result<()> {
        self.parts.par_iter_mut().try_for_each(|part| part.backend.backup())
    }
}

impl DevicePasses for SplitBackend {
    fn take_network(&mut self, network: Option<&NetworkDesc>) -> Result<()> {
        self.at_once(|part| part.device()?.take_network(network)).map(drop)
    }

    fn simulate_constant_net(&mut self, logits: &[f32], values: &[f32], passes: u32) -> Result<PassStats> {
        self.at_once(|part| part.device()?.simulate_constant_net(logits, values, passes)).map(sum)
    }

    fn simulate_resident(&mut self, passes: u32) -> Result<Option<PassStats>> {
        let done = self.at_once(|part| part.device()?.simulate_resident(passes))?;
        Ok(all_or_none(done, RESIDENT)?.map(sum))
    }

    /// The seconds of the slowest device for each stage; kernels of all devices.
    fn profile_passes(&mut self, passes: u32) -> Result<Option<PassParts>> {
        let parts = all_or_none(self.at_once(|part| part.device()?.profile_passes(passes))?, RESIDENT)?;
        Ok(parts.and_then(|all| all.into_iter().reduce(PassParts::in_parallel)))
    }

    fn attach_selfplay(
        &mut self,
        plan: &PlayPlan,
        slots: &[SlotStart<'_>],
        starts: &RootCache,
    ) -> Result<u32> {
        let d = self.rows_per_game;
        if slots.len() * d != self.rows() || plan.determinisations != d {
            return Err(Error::mismatch(
                "games of rows on several devices",
                format_args!("{} of {} rows each", slots.len(), plan.determinisations),
                format_args!("{} of {d}", self.rows() / d),
            ));
        }
        let max_passes = self.at_once(|part| {
            let slots = &slots[part.rows.start / d..part.rows.end / d];
            part.device()?.attach_selfplay(plan, slots, starts)
        })?;
        Ok(max_passes.into_iter().min().unwrap_or(0))
    }

    fn act(&mut self) -> Result<()> {
        self.parts.par_iter_mut().try_for_each(|part| part.device()?.act())
    }

    fn launch_passes(&mut self, output: Option<(&[f32], &[f32])>, passes: u32) -> Result<bool> {
        let launched =
            self.at_once(|part| Ok(part.device()?.launch_passes(output, passes)?.then_some(())))?;
        Ok(all_or_none(launched, RESIDENT)?.is_some())
    }

    fn end_poll(&mut self) -> Result<()> {
        self.at_once(|part| part.device()?.end_poll()).map(drop)
    }

    fn collect_poll(&mut self) -> Result<PassStats> {
        self.at_once(|part| part.device()?.collect_poll()).map(sum)
    }

    fn poll_seconds(&mut self) -> Result<f64> {
        let seconds = self.at_once(|part| part.device()?.poll_seconds())?;
        Ok(seconds.iter().sum::<f64>() / seconds.len() as f64)
    }

    fn decisions(&mut self) -> Result<Vec<DecisionBlock<'_>>> {
        let d = self.rows_per_game;
        let mut all = Vec::with_capacity(self.parts.len());
        for part in &mut self.parts {
            let first = part.rows.start / d;
            all.extend(part.device()?.decisions()?.into_iter().map(|block| block.with_slot_offset(first)));
        }
        Ok(all)
    }

    fn copied(&mut self) -> Result<Copied> {
        self.parts.iter_mut().try_fold(Copied::default(), |all, part| {
            let Copied { inside, total } = part.device()?.copied()?;
            Ok(Copied { inside: all.inside + inside, total: all.total + total })
        })
    }
}

impl Backend for SplitBackend {
    fn device(&mut self) -> Option<&mut dyn DevicePasses> {
        if self.parts[0].backend.device().is_some() { Some(self) } else { None }
    }
}
