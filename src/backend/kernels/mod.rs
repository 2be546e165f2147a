//! Games, trees and search as kernels: the same work as [`super::cpu`], done by a [`device::Device`]. The kernels' sources are
//! under `kernels/`; Rust is the truth that they are checked against.
//!
//! States, trees and observations stay on the device. What rows are told to do is gathered ([`queue`]) and launched for many
//! rows at once ([`arrays`]); a network is asked on the host, through [`Backend`], or where the observations are
//! ([`Backend::take_network`], [`Backend::simulate_constant_net`]), which copies one small block for any number of passes.

pub mod device;
pub mod collective; // sums over devices
pub mod store; // compiled programs on disk
mod open; // a GPU, where this build can
#[cfg(feature = "cuda")]
pub mod cuda; // kernels on an NVIDIA GPU
pub mod source;
pub mod memory; // what a plan takes on a device
pub mod layout; // twins of the kernels' structs, sizes of arrays
pub mod arrays; // the arrays, and a launcher for each kernel
pub mod queue; // commands to rows, gathered
pub mod network; // networks on the device
pub mod forward; // the network's own kernels
pub mod batch; // games without trees
pub mod game_slots; // self-play driven by the device
mod polls; // its counts and decisions on their way to the host
mod rows; // all of it together, with failures
mod snapshots; // one row between device and host

use super::cpu::principal_variation;
use super::decisions::DecisionBlock;
use super::device_selfplay::{Copied, PassDriver, PlayPlan, SlotStart};
use super::pass_parts::PassParts;
use super::plan::BackendPlan;
use super::{Backend, PlyPlan, RootCache, RowBudget, Snapshot};
use crate::batch::AnyGame;
use crate::error::{Error, Result};
use crate::game::Sizes;
use crate::net::NetParts;
use crate::search::PassStats;
use crate::search::root::RootSummary;
use device::Device;
use forward::{Arithmetic, DeviceForward, ForwardPlan};
use layout::{BeginCommand, Layout, Totals};
use memory::DeviceNeed;
use network::{DeviceNetwork, all_finite};
pub use open::{OnDevices, check_devices, cuda_backend, cuda_network, on_cuda};
use rows::Rows;
use std::cell::{OnceCell, RefCell};

/// B rows of one game on a device.
pub struct KernelBackend<D: Device> {
    sizes: Sizes,
    rows: RefCell<Rows<D>>,
    /// What the host knows of the states at the roots. `[B]`
    root_states: Vec<OnceCell<Vec<u8>>>,
    /// Keys of the positions before the roots. `[B]`
    root_histories: Vec<OnceCell<Vec<u64>>>,
    failure: RefCell<Option<Error>>,
    network: ResidentNetwork<D>,
}

/// The network beside the rows.
enum ResidentNetwork<D: Device> {
    None,
    /// One that somebody made.
    Given(Box<dyn DeviceNetwork<D>>),
    /// The network's own kernels.
    Kernels(Box<DeviceForward<D>>),
}

impl<D: Device> ResidentNetwork<D> {
    fn get(&mut self) -> Option<&mut dyn DeviceNetwork<D>> {
        match self {
            Self::None => None,
            Self::Given(network) => Some(network.as_mut()),
            Self::Kernels(network) => Some(network.as_mut()),
        }
    }
}

impl<D: Device> KernelBackend<D> {
    /// Empty rows of `game` on `device`, which gets the game's program loaded.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the game has no kernels, [`Error::Memory`] where the rows do not fit, and what the device
    /// says.
    pub fn new(mut device: D, game: &dyn AnyGame, plan: BackendPlan) -> Result<Self> {
        let sizes = game.sizes();
        let layout = Layout::new(&plan, &sizes, game.state_size());
        DeviceNeed::of_rows(&layout).check(device.free_bytes()? as u64)?;
        device.load(&source::program(game, "search")?)?;
        let passes = source::program(game, "passes")?;
        let cells = plan.rows;
        Ok(Self {
            sizes,
            rows: RefCell::new(Rows::new(device, layout, plan, &sizes, passes)?),
            root_states: (0..cells).map(|_| OnceCell::new()).collect(),
            root_histories: (0..cells).map(|_| OnceCell::new()).collect(),
            failure: RefCell::new(None),
            network: ResidentNetwork::None,
        })
    }

    /// Up to `passes` passes of every row with a network on the device: no copies between them, one small one at the end.
    /// Rows whose ply is done wait.
    ///
    /// # Errors
    /// What the network and the device say.
    pub fn simulate(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<PassStats> {
        self.check()?;
        let rows = self.rows.get_mut();
        rows.forget_graphs();
        let totals = rows.simulate(network, passes);
        rows.forget_graphs();
        Ok(selected(&totals?, self.visits(passes)))
    }

    /// Evaluates from now on with `network` on the device itself, or with the host's where there is none.
    pub fn set_network(&mut self, network: Option<Box<dyn DeviceNetwork<D>>>) {
        let rows = self.rows.get_mut();
        rows.forget_network();
        self.network = network.map_or(ResidentNetwork::None, ResidentNetwork::Given);
    }

    /// Rows that `passes` passes go through.
    fn visits(&self, passes: u32) -> usize {
        self.root_states.len() * passes as usize
    }

    /// Rows with simulations left.
    ///
    /// # Errors
    /// What the device says.
    pub fn num_unfinished(&mut self) -> Result<usize> {
        self.rows.get_mut().num_unfinished()
    }

    /// The device.
    pub fn with_device<R>(&self, look: impl FnOnce(&D) -> R) -> R {
        look(&self.rows.borrow().arrays.device)
    }

    /// Does something that may fail; after a failure, nothing more is done.
    fn attempt<R: Default>(&self, work: impl FnOnce(&mut Rows<D>) -> Result<R>) -> R {
        if self.failure.borrow().is_some() {
            return R::default();
        }
        work(&mut self.rows.borrow_mut()).unwrap_or_else(|error| {
            *self.failure.borrow_mut() = Some(error);
            R::default()
        })
    }

    /// The root of row `b` is another from now on: `known`, or to be asked for.
    fn new_root(&mut self, b: usize, known: Option<(&[u8], &[u64])>) {
        self.root_states[b] = OnceCell::new();
        self.root_histories[b] = OnceCell::new();
        if let Some((state, history)) = known {
            self.root_states[b] = state.to_vec().into();
            self.root_histories[b] = history.to_vec().into();
        }
    }
}

/// The counts of one or more passes, which went through `visited` rows in all.
fn selected(totals: &Totals, visited: usize) -> PassStats {
    PassStats {
        visited,
        rows: totals.passes as usize,
        leaves: totals.leaves as usize,
        evaluations: totals.asked as usize,
        cached: 0,
        simulations: totals.simulations as usize,
        depth_sum: totals.depth_sum,
        depth_max: totals.depth_max,
    }
}

impl<D: Device> Backend for KernelBackend<D> {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn rows(&self) -> usize {
        self.root_states.len()
    }

    fn check(&mut self) -> Result<()> {
        self.failure.get_mut().take().map_or(Ok(()), Err)
    }

    /// In one launch, and one that counts.
    fn simulate_constant_net(
        &mut self,
        logits: &[f32],
        values: &[f32],
        passes: u32,
    ) -> Result<Option<PassStats>> {
        self.check()?;
        let totals = self.rows.get_mut().simulate_constant_net(logits, values, passes)?;
        Ok(Some(selected(&totals, self.visits(passes))))
    }

    /// Its own kernels ([`DeviceForward`]). Weights of a network that is there already go where the old ones are, so that a
    /// recorded pass has them too.
    fn take_network(&mut self, network: Option<&NetParts>) -> Result<bool> {
        let Some(NetParts { spec, weights, precision, tensor_cores }) = network else {
            if let ResidentNetwork::Kernels(_) = self.network {
                self.set_network(None);
            }
            return Ok(false);
        };
        self.check()?;
        let rows = self.rows.get_mut();
        let limits = rows.arrays.device.limits()?;
        let arithmetic = Arithmetic::of(*precision, *tensor_cores, limits.capability)?;
        if let ResidentNetwork::Kernels(known) = &mut self.network
            && known.is_for(spec, arithmetic)
        {
            known.set_weights(&rows.arrays.device, weights)?;
            return Ok(true);
        }
        let plan = ForwardPlan::new(spec, weights, arithmetic, rows.num_slots(), limits)?;
        rows.forget_network();
        self.network = ResidentNetwork::None; // its memory first
        rows.make_room(plan.need())?;
        self.network = ResidentNetwork::Kernels(Box::new(DeviceForward::planned(&rows.arrays.device, plan)?));
        Ok(true)
    }

    /// One launch for each kernel of a pass, recorded once.
    fn simulate_resident(&mut self, passes: u32) -> Result<Option<PassStats>> {
        self.check()?;
        let Some(network) = self.network.get() else { return Ok(None) };
        let rows = self.rows.get_mut();
        let done = rows.simulate(network, passes)?;
        network.check(&rows.arrays.device)?;
        Ok(Some(selected(&done, self.visits(passes))))
    }

    fn profile_passes(&mut self, passes: u32) -> Result<Option<PassParts>> {
        self.check()?;
        let Some(network) = self.network.get() else { return Ok(None) };
        self.rows.get_mut().profile_passes(network, passes).map(Some)
    }

    fn attach_selfplay(
        &mut self,
        plan: &PlayPlan,
        game_slots: &[SlotStart<'_>],
        starts: &RootCache,
    ) -> Result<PassDriver> {
        self.check()?;
        self.rows.get_mut().attach_selfplay(plan, game_slots, starts)
    }

    fn act(&mut self) -> Result<()> {
        self.check()?;
        self.rows.get_mut().act()
    }

    fn launch_passes(&mut self, output: Option<(&[f32], &[f32])>, passes: u32) -> Result<bool> {
        self.check()?;
        for b in 0..self.root_states.len() {
            self.new_root(b, None);
        }
        let rows = self.rows.get_mut();
        match (self.network.get(), output) {
            (Some(network), _) => rows.launch_passes(network, passes)?,
            (None, Some((logits, values))) => rows.launch_constant_net(logits, values, passes)?,
            (None, None) => return Ok(false),
        }
        Ok(true)
    }

    fn end_poll(&mut self) -> Result<()> {
        self.check()?;
        let word = self.network.get().and_then(|network| network.not_finite());
        self.rows.get_mut().end_poll(word)
    }

    fn collect_poll(&mut self) -> Result<PassStats> {
        self.check()?;
        let counts = self.rows.get_mut().collect_poll()?;
        all_finite(counts.not_finite)?;
        Ok(selected(&counts.totals, self.visits(counts.passes)))
    }

    fn decisions(&mut self) -> Result<Vec<DecisionBlock<'_>>> {
        Ok(vec![self.rows.get_mut().decisions()?])
    }

    fn copied(&self) -> Copied {
        self.rows.borrow().copied()
    }

    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) {
        self.new_root(b, Some((state, history)));
        self.attempt(|rows| rows.set_root(b, state, history));
    }

    fn set_root_tree(&mut self, b: usize, snapshot: &Snapshot) {
        self.new_root(b, None);
        self.attempt(|rows| rows.set_root_tree(b, snapshot));
    }

    fn snapshot(&mut self, b: usize, limit: usize) -> Snapshot {
        let history = self.root_history(b).to_vec();
        let found = self.attempt(|rows| rows.snapshot(b, Some(limit), &history).map(Some));
        found.unwrap_or_else(|| self.rows.borrow().empty_snapshot())
    }

    fn begin(&mut self, b: usize, plan: PlyPlan) {
        self.attempt(|rows| {
            let schedule = rows.schedule(plan.simulations)?;
            let command = BeginCommand::new(b as u32, plan.simulations, plan.exploration, schedule, plan.key);
            rows.begin(command);
            Ok(())
        });
    }

    fn is_done(&self, b: usize) -> bool {
        self.attempt(|rows| rows.is_unfinished(b).map(|unfinished| !unfinished))
    }

    fn deactivate(&mut self, b: usize) {
        self.attempt(|rows| {
            rows.deactivate(b);
            Ok(())
        });
    }

    fn select(&mut self, _reach: RowBudget) -> PassStats {
        selected(&self.attempt(Rows::select), self.visits(1))
    }

    fn observe(&mut self, obs: &mut [f32]) {
        self.attempt(|rows| rows.observe(obs));
    }

    fn expand(&mut self, logits: &[f32], values: &[f32]) {
        self.attempt(|rows| rows.expand(logits, values));
    }

    fn backup(&mut self) {
        self.attempt(Rows::backup);
    }

    fn summarise(&mut self, b: usize, out: &mut RootSummary) {
        self.attempt(|rows| rows.summarise(b, out));
    }

    fn advance(&mut self, b: usize, actions: &[u16], _state: &[u8], _history: &[u64]) {
        self.new_root(b, None);
        self.attempt(|rows| {
            actions.iter().for_each(|&action| rows.advance(b, action));
            Ok(())
        });
    }

    fn root_state(&self, b: usize) -> &[u8] {
        self.root_states[b].get_or_init(|| self.attempt(|rows| rows.root_state(b)))
    }

    fn root_history(&self, b: usize) -> &[u64] {
        self.root_histories[b].get_or_init(|| self.attempt(|rows| rows.root_history(b)))
    }

    fn num_nodes(&self, b: usize) -> usize {
        self.attempt(|rows| rows.num_nodes(b))
    }

    fn principal_variation(&mut self, b: usize, most: usize) -> Vec<u16> {
        self.attempt(|rows| {
            let mut copy = rows.snapshot(b, None, &[])?;
            Ok(principal_variation(&copy.tree.row_mut(0), most))
        })
    }
}
