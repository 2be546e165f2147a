//! Checks of values that depend on other keys. Single keys are checked by their definitions.

use super::config_file::Config;
use super::device::DeviceName;
use super::isa_choice::IsaChoice;
use super::keys::within;
use super::net::{Arch, Executor, Precision, ValueHead};
use super::sections::{Algorithm, MAX_GAMES, TrainPrecision};

use crate::error::{Error, Result};
use crate::isa::Isa;

/// The least Dirichlet alpha. With 0.01 all of seven numbers vanish in f32 in one draw of a hundred, with 0.001 in 60.
const MIN_DIRICHLET_ALPHA: f32 = 0.01;

/// What is expected of number formats where candle executes the network.
const CANDLE_FORMAT: &str = "f32, since candle executes this network";

impl Config {
    /// Checks all values that depend on others.
    ///
    /// # Errors
    /// [`Error::Config`] with the first key whose value is invalid.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(name) = self.game.get("name")
            && name.as_str().is_none()
        {
            return Err(Error::config("game.name", name, "a text"));
        }
        self.check_executor()?;
        self.check_precision()?;
        self.check_isa()?;
        self.check_afterstate()?;
        let alpha = self.search.dirichlet_alpha;
        if alpha > 0.0 && alpha < MIN_DIRICHLET_ALPHA {
            let expected = format!("0 or at least {MIN_DIRICHLET_ALPHA}, as noise of less vanishes in f32");
            return Err(Error::config("search.dirichlet_alpha", alpha, expected));
        }
        let playing = self.run.device.all().len();
        within("selfplay.games", self.selfplay.games, playing..=MAX_GAMES)?;
        let t = &self.train;
        let training = self.network_devices();
        if training.is_cpu() && t.precision == TrainPrecision::F16 {
            let expected = "f32 or bf16 for training on the CPU, or a GPU in net.device";
            return Err(Error::config("train.precision", t.precision, expected));
        }
        within("train.batch", t.batch, training.all().len()..=1_048_576)?;
        self.run.device.check("run.device")?;
        self.network_devices().check("net.device")?;
        Ok(())
    }

    /// Refuses more samples of an update, or before the first one, than the replay buffer holds, and batches and value targets that teach nothing.
    /// A resumed run can change these keys, but not `replay.capacity`. Only a run needs this check: the configuration of an old run is still read.
    ///
    /// # Errors
    /// [`Error::Config`] with the key.
    pub fn check_replay(&self) -> Result<()> {
        let (t, capacity) = (&self.train, self.replay.capacity);
        let too_many = [("train.batch", t.batch), ("train.min_samples", t.min_samples)];
        if let Some((key, samples)) = too_many.into_iter().find(|(_, samples)| *samples > capacity) {
            let expected = format!("at most {capacity}, the samples that replay.capacity holds");
            return Err(Error::config(key, samples, expected));
        }
        self.check_targets()
    }

    /// The format of training where none is set: bf16 for a network that plays in bf16 or int8 on a CPU that trains fast in it.
    pub(super) fn default_train_precision(&self) -> TrainPrecision {
        let is_reduced = matches!(self.net.precision, Precision::Bf16 | Precision::Int8);
        let is_fused = self.network_devices().is_cpu() && self.net.executor != Executor::Candle;
        let is_native = matches!(self.net.isa, IsaChoice::Native | IsaChoice::Only(Isa::Amx));
        match is_reduced && is_fused && is_native && self.net.isa.of_bf16_training().trains_fast_in_bf16() {
            true => TrainPrecision::Bf16,
            false => TrainPrecision::F32,
        }
    }

    /// Samples in the replay buffer before the first update.
    pub fn first_update_samples(&self) -> u64 {
        let t = &self.train;
        match t.min_samples {
            0 => (t.batch as f64 / t.replay_ratio.max(1.0)).ceil() as u64,
            samples => samples as u64,
        }
    }

    /// Refuses a number format that candle does not compute in, for a network that candle executes. Its training is in f32 as well, which is
    /// checked where a network is trained.
    ///
    /// # Errors
    /// [`Error::Config`] with the key.
    pub fn check_candle_format(&self) -> Result<()> {
        match self.net.precision {
            Precision::F32 => Ok(()),
            found => Err(Error::config("net.precision", found, CANDLE_FORMAT)),
        }
    }

    /// Refuses a number format that candle does not train in.
    ///
    /// # Errors
    /// [`Error::Config`] with the key.
    pub fn check_candle_training(&self) -> Result<()> {
        match self.train.precision {
            TrainPrecision::F32 => Ok(()),
            found => Err(Error::config("train.precision", found, CANDLE_FORMAT)),
        }
    }

    /// Refuses the formats and devices that candle does not support, where it is set as executor, and those that it alone does.
    fn check_executor(&self) -> Result<()> {
        if self.run.device.first() == DeviceName::Metal {
            let expected = "cpu or cuda for games and trees; net.device = \"metal\" is for networks";
            return Err(Error::config("run.device", self.run.device, expected));
        }
        if self.net.executor != Executor::Candle {
            let networks = self.network_devices();
            return match networks.first() {
                DeviceName::Cpu | DeviceName::Cuda(_) => Ok(()),
                DeviceName::Metal => {
                    let expected = "cpu or cuda, or net.executor = \"candle\"";
                    Err(Error::config("net.device", networks, expected))
                }
            };
        }
        self.check_candle_format()?;
        if self.network_devices().all().len() > 1 {
            let expected = "one device, since candle executes this network";
            return Err(Error::config("net.device", self.network_devices(), expected));
        }
        Ok(())
    }

    /// Refuses a number format that the network's device lacks. The executor checks whether its kernels for the network's layers have
    /// the format.
    fn check_precision(&self) -> Result<()> {
        let on_gpu = !self.network_devices().is_cpu();
        let expected = match (on_gpu, self.net.precision) {
            (_, Precision::F32)
            | (false, Precision::Bf16 | Precision::Int8)
            | (true, Precision::Bf16 | Precision::F16 | Precision::Tf32) => return Ok(()),
            (false, _) => "f32, bf16 or int8 on the CPU",
            (true, _) => "f32, tf32, bf16 or f16 on a GPU, or net.device = \"cpu\"",
        };
        Err(Error::config("net.precision", self.net.precision, expected))
    }

    /// Refuses a CPU instruction set for a network on a GPU.
    fn check_isa(&self) -> Result<()> {
        if self.net.isa == IsaChoice::Native || self.network_devices().is_cpu() {
            return Ok(());
        }
        Err(Error::config("net.isa", self.net.isa, "native for a network on a GPU"))
    }

    /// Refuses GPUs with decisions on whole turns, and what needs such decisions without them.
    fn check_afterstate(&self) -> Result<()> {
        if self.eval.turns > 1 && self.eval_algorithm() != Algorithm::Afterstate {
            let expected = "1, or eval.algorithm = \"afterstate\"";
            return Err(Error::config("eval.turns", self.eval.turns, expected));
        }
        let plays = self.search.algorithm == Algorithm::Afterstate;
        if !plays {
            // Networks of decisions know no positions after a turn.
            let expected = "puct or gumbel, or search.algorithm = \"afterstate\", by which the network learns such positions";
            return match self.eval_algorithm() {
                Algorithm::Afterstate => {
                    Err(Error::config("eval.algorithm", Algorithm::Afterstate, expected))
                }
                Algorithm::Puct | Algorithm::Gumbel => Ok(()),
            };
        }
        if !(self.run.device.is_cpu() && self.network_devices().is_cpu()) {
            let expected = "puct or gumbel on a GPU, or the CPU as run.device and net.device";
            return Err(Error::config("search.algorithm", Algorithm::Afterstate, expected));
        }
        Ok(())
    }

    /// Refuses batches of one sample where batch normalisation sees nothing else, and value targets that the value head does not have.
    fn check_targets(&self) -> Result<()> {
        let t = &self.train;
        if self.net.arch == Arch::Mlp && t.batch == 1 {
            let expected = "at least 2 with net.arch = \"mlp\": normalised over one sample every input is 0";
            return Err(Error::config("train.batch", t.batch, expected));
        }
        // A mean of results is not the probability of a draw.
        if self.net.value_head == ValueHead::Wdl && t.td_lambda != 1.0 {
            let expected = "1 with net.value_head = \"wdl\", which learns results";
            return Err(Error::config("train.td_lambda", t.td_lambda, expected));
        }
        Ok(())
    }

    /// Refuses value targets that games of workers do not carry. Only a run with workers needs this check.
    ///
    /// # Errors
    /// [`Error::Config`] with the key.
    pub fn check_workers(&self) -> Result<()> {
        if self.search.algorithm == Algorithm::Afterstate {
            let expected = "puct or gumbel with workers, whose games have a policy for each ply";
            return Err(Error::config("search.algorithm", self.search.algorithm, expected));
        }
        match self.train.td_lambda {
            1.0 => Ok(()),
            found => {
                Err(Error::config("train.td_lambda", found, "1 with workers, whose games have results alone"))
            }
        }
    }
}
