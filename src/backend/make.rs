//! Which backend serves which device and engine.

use super::plan::BackendPlan;
use super::{Backend, cpu, gpu, reference, split};
use crate::batch::AnyGame;
use crate::config::{Config, DeviceName, Devices, SearchEngine};
use crate::error::Result;
use crate::game::{self, Game, GameVisitor};
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
/// Those of [`cpu_backend`] and [`gpu::cuda_backend`]; for several devices those of [`split::SplitBackend::new`].
pub fn make(
    game: &dyn AnyGame,
    plan: BackendPlan,
    placement: Placement,
    rows_per_game: usize,
) -> Result<Box<dyn Backend>> {
    let on = |device: DeviceName, plan| match (device, placement.engine) {
        (DeviceName::Cpu, SearchEngine::Batched) => cpu_backend(game, plan),
        (DeviceName::Cpu, SearchEngine::Reference) => reference_backend(game, plan),
        (DeviceName::Cuda(number), _) => gpu::cuda_backend(game, plan, number),
    };
    match placement.devices.all() {
        [device] => on(*device, plan),
        devices => Ok(Box::new(split::SplitBackend::new(plan, devices, rows_per_game, &on)?)),
    }
}

/// Makes the batched CPU backend, compiled for the best instruction set of this machine.
///
/// # Errors
/// As [`game::dispatch`].
pub fn cpu_backend(game: &dyn AnyGame, plan: BackendPlan) -> Result<Box<dyn Backend>> {
    cpu_backend_on(game, plan, Isa::detect())
}

/// Makes the batched CPU backend with its row loops compiled for `isa`, which the machine must have.
///
/// # Errors
/// As [`game::dispatch`].
pub fn cpu_backend_on(game: &dyn AnyGame, plan: BackendPlan, isa: Isa) -> Result<Box<dyn Backend>> {
    struct MakeCpu(BackendPlan, Isa);
    impl GameVisitor for MakeCpu {
        type Out = Box<dyn Backend>;
        fn visit<G: Game>(self, game: G) -> Self::Out {
            Box::new(cpu::CpuBackend::new(game, self.0).with_isa(self.1))
        }
    }
    game::dispatch(game.name(), &game.options(), MakeCpu(plan, isa))
}

/// Makes the backend of the reference search.
///
/// # Errors
/// As [`game::dispatch`].
pub fn reference_backend(game: &dyn AnyGame, plan: BackendPlan) -> Result<Box<dyn Backend>> {
    struct MakeReference(BackendPlan);
    impl GameVisitor for MakeReference {
        type Out = Box<dyn Backend>;
        fn visit<G: Game>(self, game: G) -> Self::Out {
            Box::new(reference::ReferenceBackend::new(game, self.0))
        }
    }
    game::dispatch(game.name(), &game.options(), MakeReference(plan))
}
