//! Which backend serves which device.

use super::plan::BackendPlan;
use super::{Backend, cpu, gpu, split};
use crate::batch::rollouts::{Player, RolloutPlayer, RolloutSettings};
use crate::batch::{ErasedGame, ErasedRules};
use crate::config::{Algorithm, Config, DeviceName, Devices};
use crate::error::{Error, Result};
use crate::game::Game;
use crate::isa::Isa;

/// Where rows live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The devices that share the rows.
    pub devices: Devices,
}

impl Placement {
    /// The placement of self-play in a run.
    pub fn of_run(config: &Config) -> Self {
        Self { devices: config.run.device }
    }

    /// The same on the first device alone.
    #[must_use]
    pub fn on_first_device(self) -> Self {
        Self { devices: self.devices.first().into() }
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
    let on = |device: DeviceName, plan| match device {
        DeviceName::Cpu => game.cpu_backend(plan, Isa::detect()),
        DeviceName::Cuda(_) if plan.params.algorithm == Algorithm::Afterstate => {
            Err(Error::unsupported("the algorithm afterstate on a GPU", "it runs with run.device = \"cpu\""))
        }
        DeviceName::Cuda(number) => gpu::cuda_backend(game, plan, number),
        DeviceName::Metal => {
            Err(Error::unsupported("games and trees on metal", "they run with run.device = \"cpu\""))
        }
    };
    match placement.devices.all() {
        [device] => on(*device, plan),
        devices => Ok(Box::new(split::SplitBackend::new(plan, devices, rows_per_game, &on)?)),
    }
}

/// An erased game that can be searched: it makes the backend and the rollout player of its own type.
pub trait AnyGame: ErasedRules {
    /// The batched backend in CPU memory, its row loops compiled for `isa`.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] where this machine lacks the instructions.
    fn cpu_backend(&self, plan: BackendPlan, isa: Isa) -> Result<Box<dyn Backend>>;

    /// A player by Monte Carlo tree search with random rollouts.
    fn rollout_player(&self, settings: RolloutSettings) -> Box<dyn Player>;
}

impl<G: Game> AnyGame for ErasedGame<G> {
    fn cpu_backend(&self, plan: BackendPlan, isa: Isa) -> Result<Box<dyn Backend>> {
        match plan.params.algorithm {
            Algorithm::Afterstate => Ok(Box::new(cpu::AfterstateBackend::new(self.0.clone(), plan)?)),
            Algorithm::Puct | Algorithm::Gumbel => {
                Ok(Box::new(cpu::CpuBackend::new(self.0.clone(), plan).with_isa(isa)?))
            }
        }
    }

    fn rollout_player(&self, settings: RolloutSettings) -> Box<dyn Player> {
        Box::new(RolloutPlayer::new(self.0.clone(), settings))
    }
}
