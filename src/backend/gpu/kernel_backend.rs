//! B rows of one game on a device, as a backend.

use super::layout::{BeginCommand, SearchLayout, Totals};
use super::memory::DeviceNeed;
use super::rows::DeviceRows;
use crate::backend::cpu::variations;
use crate::backend::decisions::DecisionBlock;
use crate::backend::device_selfplay::Copied;
use crate::backend::pass_parts::PassParts;
use crate::backend::plan::BackendPlan;
use crate::backend::{
    Backend, DevicePasses, PassStages, PlyPlan, RootCache, RowBudget, TreeRows, TreeSnapshot,
};
use crate::batch::ErasedRules;
use crate::batch::programs::program;
use crate::device::Device;
use crate::error::Result;
use crate::game::Sizes;
use crate::net::NetworkDesc;
use crate::net::gpu::network::{DeviceNetwork, all_finite};
use crate::net::gpu::{Arithmetic, DeviceForward, ForwardPlan};
use crate::play::{PlayPlan, SlotStart};
use crate::search::PassStats;
use crate::search::root::RootSummary;

/// B rows of one game on a device.
pub struct KernelBackend<D: Device> {
    sizes: Sizes,
    rows: DeviceRows<D>,
    /// The states at the roots, where the host knows them. `[B]`
    root_states: Vec<Option<Vec<u8>>>,
    /// Keys of the positions before the roots, where the host knows them. `[B]`
    root_histories: Vec<Option<Vec<u64>>>,
    network: ResidentNetwork<D>,
}

/// The resident network.
enum ResidentNetwork<D: Device> {
    None,
    /// A network made elsewhere.
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
    /// [`crate::Error::Unsupported`] where the game has no kernels, [`crate::Error::Memory`] where the rows do not fit, and what the device
    /// says.
    pub fn new(mut device: D, game: &dyn ErasedRules, plan: BackendPlan) -> Result<Self> {
        let sizes = game.sizes();
        let layout = SearchLayout::new(&plan, &sizes, game.state_size());
        DeviceNeed::of_rows(&layout).check(device.free_bytes()? as u64)?;
        device.load(&program(game, "search")?)?;
        let passes = program(game, "passes")?;
        Ok(Self {
            sizes,
            rows: DeviceRows::new(device, layout, plan, &sizes, passes)?,
            root_states: vec![None; plan.rows],
            root_histories: vec![None; plan.rows],
            network: ResidentNetwork::None,
        })
    }

    /// Up to `passes` passes of every row with a network on the device: no copies between them, one small one at the end.
    /// Rows whose ply is done wait.
    ///
    /// # Errors
    /// Those of the network and of the device.
    pub fn simulate(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<PassStats> {
        self.rows.forget_graphs();
        let totals = self.rows.simulate(network, passes);
        self.rows.forget_graphs();
        Ok(pass_stats(&totals?, self.visits(passes)))
    }

    /// Evaluates from now on with `network` on the device itself, or with the host's where there is none.
    pub fn set_network(&mut self, network: Option<Box<dyn DeviceNetwork<D>>>) {
        self.rows.forget_network();
        self.network = network.map_or(ResidentNetwork::None, ResidentNetwork::Given);
    }

    /// Rows that `passes` passes go through.
    fn visits(&self, passes: u32) -> usize {
        self.root_states.len() * passes as usize
    }

    /// Rows with simulations left.
    ///
    /// # Errors
    /// Those of the device.
    pub fn num_unfinished(&mut self) -> Result<usize> {
        self.rows.num_unfinished()
    }

    /// The device.
    pub fn with_device<R>(&self, look: impl FnOnce(&D) -> R) -> R {
        look(&self.rows.arrays.device)
    }

    /// Row `b` has another root now, which the host does not know.
    fn forget_root(&mut self, b: usize) {
        self.root_states[b] = None;
        self.root_histories[b] = None;
    }
}

/// The counts of one or more passes that visited `visited` rows in all.
fn pass_stats(totals: &Totals, visited: usize) -> PassStats {
    PassStats {
        visited,
        rows: totals.passes as usize,
        leaves: totals.leaves as usize,
        evaluations: totals.num_evals as usize,
        cached: 0,
        simulations: totals.simulations as usize,
        depth_sum: totals.depth_sum,
        depth_max: totals.depth_max,
    }
}

impl<D: Device> TreeRows for KernelBackend<D> {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn rows(&self) -> usize {
        self.root_states.len()
    }

    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) -> Result<()> {
        self.root_states[b] = Some(state.to_vec());
        self.root_histories[b] = Some(history.to_vec());
        self.rows.set_root(b, state, history)
    }

    fn set_root_tree(&mut self, b: usize, snapshot: &TreeSnapshot) -> Result<()> {
        self.forget_root(b);
        self.rows.set_root_tree(b, snapshot)
    }

    fn snapshot(&mut self, b: usize, limit: usize) -> Result<TreeSnapshot> {
        let history = self.root_history(b)?.to_vec();
        self.rows.snapshot(b, Some(limit), &history)
    }

    fn begin(&mut self, b: usize, plan: PlyPlan) -> Result<()> {
        let schedule = self.rows.schedule(plan.simulations)?;
        let command = BeginCommand::new(b as u32, plan.simulations, plan.exploration, schedule, plan.key);
        self.rows.begin(command);
        Ok(())
    }

    fn is_done(&mut self, b: usize) -> Result<bool> {
        Ok(!self.rows.is_unfinished(b)?)
    }

    fn any_done(&mut self) -> Result<bool> {
        Ok(self.rows.num_unfinished()? < self.root_states.len())
    }

    fn summarise(&mut self, b: usize, out: &mut RootSummary) -> Result<()> {
        self.rows.summarise(b, out)
    }

    fn advance(&mut self, b: usize, actions: &[u16], _state: &[u8], _history: &[u64]) -> Result<()> {
        self.forget_root(b);
        actions.iter().for_each(|&action| self.rows.advance(b, action));
        Ok(())
    }

    fn root_state(&mut self, b: usize) -> Result<&[u8]> {
        if self.root_states[b].is_none() {
            self.root_states[b] = Some(self.rows.root_state(b)?);
        }
        Ok(self.root_states[b].as_deref().unwrap_or_default())
    }

    fn root_history(&mut self, b: usize) -> Result<&[u64]> {
        if self.root_histories[b].is_none() {
            self.root_histories[b] = Some(self.rows.root_history(b)?);
        }
        Ok(self.root_histories[b].as_deref().unwrap_or_default())
    }

    fn num_nodes(&mut self, b: usize) -> Result<usize> {
        self.rows.num_nodes(b)
    }

    fn variations(&mut self, b: usize, first: &[u16], max_len: usize) -> Result<Vec<Vec<u16>>> {
        let mut copy = self.rows.snapshot(b, None, &[])?;
        Ok(variations(&copy.tree.row_mut(0), first, max_len))
    }
}

impl<D: Device> PassStages for KernelBackend<D> {
    fn select(&mut self, _budget: RowBudget) -> Result<PassStats> {
        Ok(pass_stats(&self.rows.select()?, self.visits(1)))
    }

    fn observe(&mut self, obs: &mut [f32]) -> Result<()> {
        self.rows.observe(obs)
    }

    fn expand(&mut self, logits: &[f32], values: &[f32]) -> Result<()> {
        self.rows.expand(logits, values)
    }

    fn backup(&mut self) -> Result<()> {
        self.rows.backup()
    }
}

impl<D: Device> DevicePasses for KernelBackend<D> {
    /// Makes its kernels ([`DeviceForward`]). Weights of a network that is there already replace the old ones in place, so that a
    /// captured pass has them too.
    fn take_network(&mut self, network: Option<&NetworkDesc>) -> Result<()> {
        let Some(NetworkDesc { spec, weights, precision, tensor_cores }) = network else {
            if let ResidentNetwork::Kernels(_) = self.network {
                self.set_network(None);
            }
            return Ok(());
        };
        let limits = self.rows.arrays.device.limits()?;
        let arithmetic = Arithmetic::of(*precision, *tensor_cores, limits.capability)?;
        if let ResidentNetwork::Kernels(known) = &mut self.network
            && known.is_for(spec, arithmetic)
        {
            return known.set_weights(&self.rows.arrays.device, weights);
        }
        let plan = ForwardPlan::new(spec, weights, arithmetic, self.rows.num_slots(), limits)?;
        self.rows.forget_network();
        self.network = ResidentNetwork::None; // its memory first
        self.rows.make_room(plan.need())?;
        let forward = DeviceForward::planned(&self.rows.arrays.device, plan)?;
        self.network = ResidentNetwork::Kernels(Box::new(forward));
        Ok(())
    }

    /// One launch of all passes, and one that counts.
    fn simulate_constant_net(&mut self, logits: &[f32], values: &[f32], passes: u32) -> Result<PassStats> {
        let totals = self.rows.simulate_constant_net(logits, values, passes)?;
        Ok(pass_stats(&totals, self.visits(passes)))
    }

    /// One launch for each kernel of a pass, captured once.
    fn simulate_resident(&mut self, passes: u32) -> Result<Option<PassStats>> {
        let Some(network) = self.network.get() else { return Ok(None) };
        let totals = self.rows.simulate(network, passes)?;
        network.check(&self.rows.arrays.device)?;
        Ok(Some(pass_stats(&totals, self.visits(passes))))
    }

    fn profile_passes(&mut self, passes: u32) -> Result<Option<PassParts>> {
        let Some(network) = self.network.get() else { return Ok(None) };
        self.rows.profile_passes(network, passes).map(Some)
    }

    fn attach_selfplay(
        &mut self,
        plan: &PlayPlan,
        game_slots: &[SlotStart<'_>],
        starts: &RootCache,
    ) -> Result<u32> {
        self.rows.attach_selfplay(plan, game_slots, starts)
    }

    fn act(&mut self) -> Result<()> {
        self.rows.act()
    }

    fn launch_passes(&mut self, output: Option<(&[f32], &[f32])>, passes: u32) -> Result<bool> {
        (0..self.root_states.len()).for_each(|b| self.forget_root(b));
        match (self.network.get(), output) {
            (Some(network), _) => self.rows.launch_passes(network, passes)?,
            (None, Some((logits, values))) => self.rows.launch_constant_net(logits, values, passes)?,
            (None, None) => return Ok(false),
        }
        Ok(true)
    }

    fn end_poll(&mut self) -> Result<()> {
        let word = self.network.get().and_then(|network| network.not_finite());
        self.rows.end_poll(word)
    }

    fn collect_poll(&mut self) -> Result<PassStats> {
        let counts = self.rows.collect_poll()?;
        all_finite(counts.not_finite)?;
        Ok(pass_stats(&counts.totals, self.visits(counts.passes)))
    }

    fn poll_seconds(&mut self) -> Result<f64> {
        self.rows.poll_seconds()
    }

    fn decisions(&mut self) -> Result<Vec<DecisionBlock<'_>>> {
        Ok(vec![self.rows.decisions()?])
    }

    fn copied(&mut self) -> Result<Copied> {
        Ok(self.rows.copied())
    }
}

impl<D: Device> Backend for KernelBackend<D> {
    fn device(&mut self) -> Option<&mut dyn DevicePasses> {
        Some(self)
    }
}
