//! Which backend serves which device and engine.

use super::plan::BackendPlan;
use super::{Backend, cpu, gpu, reference, split};
use crate::batch::rollouts::{Player, RolloutPlayer, RolloutSettings};
use crate::batch::{ErasedGame, ErasedRules};
use crate::config::{Config, DeviceName, Devices, SearchEngine};
use crate::error::Result;
use crate::game::Game;
use crate::isa::Isa;

/// Where rows live, and which implementation searches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The devices that share the rows.
    pub devices: Devices,
    /// The implementation on the CPU.
    pub engine: SearchEngine,
}

impl Default for Placement {
    /// The batched engine on the CPU.
    fn default() -> Self {
        Self { devices: Devices::default(), engine: SearchEngine::Batched }
    }
}

impl Placement {
    /// The placement of self-play in a run.
    pub fn of_run(config: &Config) -> Self {
        Self { devices: config.run.device, engine: config.search.engine }
    }

    /// The same on the first device alone.
    #[must_use]
    pub fn on_first_device(self) -> Self {
        Self { devices: self.devices.first().into(), ..self }
    }
}

/// Makes a backend of `plan` for games of `rows_per_game` rows each. Several devices share the games; the rows of one game stay on one
/// device.
///
/// # Errors
/// Those of [`gpu::cuda_backend`]; for several devices those of [`split::SplitBackend::new`].
pub fn make(
    game: &dyn AnyGame,
    plan: BackendPlan,
    placement: Placement,
    rows_per_game: usize,
) -> Result<Box<dyn Backend>> {
    let on = |device: DeviceName, plan| match (device, placement.engine) {
        (DeviceName::Cpu, SearchEngine::Batched) => Ok(game.cpu_backend(plan, Isa::detect())),
        (DeviceName::Cpu, SearchEngine::Reference) => Ok(game.reference_backend(plan)),
        (DeviceName::Cuda(number), _) => gpu::cuda_backend(game, plan, number),
    };
    match placement.devices.all() {
        [device] => on(*device, plan),
        devices => Ok(Box::new(split::SplitBackend::new(plan, devices, rows_per_game, &on)?)),
    }
}

/// An erased game that can be searched: it makes the backend and the rollout player of its own type.
pub trait AnyGame: ErasedRules {
    /// The batched backend in CPU memory, its row loops compiled for `isa`, which the machine must have.
    fn cpu_backend(&self, plan: BackendPlan, isa: Isa) -> Box<dyn Backend>;

    /// The backend of the reference search.
    fn reference_backend(&self, plan: BackendPlan) -> Box<dyn Backend>;

    /// A player by Monte Carlo tree search with random rollouts.
    fn rollout_player(&self, settings: RolloutSettings) -> Box<dyn Player>;
}

impl<G: Game> AnyGame for ErasedGame<G> {
    fn cpu_backend(&self, plan: BackendPlan, isa: Isa) -> Box<dyn Backend> {
        Box::new(cpu::CpuBackend::new(self.0.clone(), plan).with_isa(isa))
    }

    fn reference_backend(&self, plan: BackendPlan) -> Box<dyn Backend> {
        Box::new(reference::ReferenceBackend::new(self.0.clone(), plan))
    }

    fn rollout_player(&self, settings: RolloutSettings) -> Box<dyn Player> {
        Box::new(RolloutPlayer::new(self.0.clone(), settings))
    }
}
