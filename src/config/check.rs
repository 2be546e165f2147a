//! Checks of a configuration, by section and across sections.

use super::{Arch, Config, Executor, IsaChoice, Precision, SearchEngine, TensorCores, TrainPrecision};
use crate::error::{Error, Result};
use std::ops::RangeInclusive;

fn within<T: PartialOrd + std::fmt::Display>(key: &str, got: T, range: RangeInclusive<T>) -> Result<()> {
    if range.contains(&got) {
        return Ok(());
    }
    Err(Error::config(key, got, format!("{}..={}", range.start(), range.end())))
}

impl Config {
    /// Checks all keys.
    ///
    /// # Errors
    /// [`Error::Config`] with the first key whose value is invalid.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(name) = self.game.get("name")
            && name.as_str().is_none()
        {
            return Err(Error::config("game.name", name, "a string"));
        }
        let n = &self.net;
        within("net.blocks", n.blocks, 1..=256)?;
        within("net.channels", n.channels, 1..=4096)?;
        within("net.policy_channels", n.policy_channels, 1..=1024)?;
        within("net.value_channels", n.value_channels, 1..=1024)?;
        within("net.value_hidden", n.value_hidden, 1..=4096)?;
        self.check_executor()?;
        self.check_precision()?;
        self.check_isa()?;
        self.check_tensor_cores()?;
        let s = &self.search;
        within("search.simulations", s.simulations, 1..=1_000_000)?;
        within("search.leaves", s.leaves, 1..=4096)?;
        within("search.nodes", s.nodes, 0..=100_000_000)?;
        within("search.c_init", s.c_init, 0.0..=100.0)?;
        within("search.c_base", s.c_base, 1.0..=1e9)?;
        within("search.fpu_reduction", s.fpu_reduction, 0.0..=2.0)?;
        within("search.dirichlet_epsilon", s.dirichlet_epsilon, 0.0..=1.0)?;
        within("search.dirichlet_alpha", s.dirichlet_alpha, 0.0..=1000.0)?;
        within("search.max_num_considered_actions", s.max_num_considered_actions, 1..=65_536)?;
        within("search.c_visit", s.c_visit, 0.0..=1e6)?;
        within("search.c_scale", s.c_scale, 0.0..=1e3)?;
        within("search.inherit_cap", s.inherit_cap, 0.0..=1000.0)?;
        within("search.min_simulations", s.min_simulations, 1..=1_000_000)?;
        within("search.determinisations", s.determinisations, 1..=4096)?;
        within("search.cache_entries", s.cache_entries, 0..=1 << 32)?;
        within("search.root_cache", s.root_cache, 0..=10_000_000)?;
        if s.engine == SearchEngine::Reference && s.root_cache > 0 {
            let expected = "0, since search.engine = \"reference\" keeps no trees";
            return Err(Error::config("search.root_cache", s.root_cache, expected));
        }
        let p = &self.selfplay;
        let playing = self.run.device.all().len();
        within("selfplay.games", p.games, playing..=1_048_576)?;
        within("selfplay.samples_per_epoch", p.samples_per_epoch, 1..=1_000_000_000)?;
        within("selfplay.passes_per_poll", p.passes_per_poll, 1..=1_000_000)?;
        within("selfplay.opening_plies", p.opening_plies, 0..=10_000)?;
        within("selfplay.opening_none", p.opening_none, 0.0..=1.0)?;
        within("selfplay.value_mix", p.value_mix, 0.0..=1.0)?;
        within("selfplay.playout_cap_prob", p.playout_cap_prob, 0.0..=0.99)?;
        within("selfplay.fast_simulations", p.fast_simulations, 1..=1_000_000)?;
        within("replay.capacity", self.replay.capacity, 1..=1_000_000_000)?;
        let t = &self.train;
        let training = self.training_devices();
        if training.is_cpu() && t.precision != TrainPrecision::F32 {
            let expected = "f32 for training on the CPU, or a GPU in net.device";
            return Err(Error::config("train.precision", t.precision, expected));
        }
        within("train.lr", t.lr, 0.0..=100.0)?;
        within("train.momentum", t.momentum, 0.0..=0.9999)?;
        within("train.beta2", t.beta2, 0.0..=0.999_999)?;
        within("train.weight_decay", t.weight_decay, 0.0..=10.0)?;
        within("train.clip_norm", t.clip_norm, 0.0..=1e6)?;
        within("train.lr_updates", t.lr_updates, 1..=1_000_000_000_000)?;
        within("train.lr_final", t.lr_final, 0.0..=1.0)?;
        within("train.lr_step_factor", t.lr_step_factor, 1.0..=1e6)?;
        within("train.batch", t.batch, training.all().len()..=1_048_576)?;
        within("train.accumulate", t.accumulate, 1..=4096)?;
        within("train.replay_ratio", t.replay_ratio, 0.0..=1000.0)?;
        within("train.min_samples", t.min_samples, 1..=1_000_000_000)?;
        within("train.value_weight", t.value_weight, 0.0..=1000.0)?;
        let r = &self.run;
        within("run.minutes", r.minutes, 0.0..=1e7)?;
        within("run.threads", r.threads, 0..=4096)?;
        within("run.keep_checkpoints", r.keep_checkpoints, 1..=100_000)?;
        r.device.check("run.device")?;
        self.network_devices().check("net.device")?;
        within("eval.simulations", self.eval.simulations, 1..=1_000_000)?;
        within("eval.determinisations", self.eval.determinisations, 0..=4096)?;
        within("eval.positions", self.eval.positions, 1..=1_000_000)?;
        within("eval.match_games", self.eval.match_games, 1..=1_000_000)?;
        Ok(())
    }

    /// Refuses a replay buffer that does not hold the samples of an update, or those that the first update waits for. Only a run
    /// needs this: the configuration of an old run is still read.
    ///
    /// # Errors
    /// [`Error::Config`] with the key.
    pub fn check_replay(&self) -> Result<()> {
        let (t, capacity) = (&self.train, self.replay.capacity);
        if t.batch * t.accumulate > capacity {
            let expected = format!(
                "at least {}, the samples of an update (train.batch = {}, train.accumulate = {})",
                t.batch * t.accumulate,
                t.batch,
                t.accumulate
            );
            return Err(Error::config("replay.capacity", capacity, expected));
        }
        if t.min_samples > capacity {
            let expected = format!("at most {capacity}, the samples that replay.capacity holds");
            return Err(Error::config("train.min_samples", t.min_samples, expected));
        }
        Ok(())
    }

    /// Refuses what candle does not have.
    fn check_executor(&self) -> Result<()> {
        if self.net.executor != Executor::Candle {
            return Ok(());
        }
        let expected = |what: &str| format!("{what} where net.executor = \"candle\"");
        if self.net.precision != Precision::F32 {
            return Err(Error::config("net.precision", self.net.precision, expected("f32")));
        }
        if self.train.precision != TrainPrecision::F32 {
            return Err(Error::config("train.precision", self.train.precision, expected("f32")));
        }
        if self.network_devices().all().len() > 1 {
            return Err(Error::config("net.device", self.network_devices(), expected("one device")));
        }
        Ok(())
    }

    /// Refuses a number format that is not implemented for the network's architecture and device.
    fn check_precision(&self) -> Result<()> {
        let on_gpu = !self.network_devices().is_cpu();
        let expected = match (on_gpu, self.net.arch, self.net.precision) {
            (_, _, Precision::F32)
            | (false, _, Precision::Bf16)
            | (false, Arch::Resnet | Arch::Mlp, Precision::Int8)
            | (true, _, Precision::Bf16 | Precision::F16 | Precision::Tf32) => return Ok(()),
            (false, Arch::Edge, _) => "f32 or bf16 where net.arch = \"edge\"",
            (false, ..) => "f32, bf16 or int8 on the CPU",
            (true, ..) => "f32, tf32, bf16 or f16 on a GPU, or net.device = \"cpu\"",
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

    /// Refuses `wgmma` unless the network has a 16-bit format on a GPU.
    fn check_tensor_cores(&self) -> Result<()> {
        let sixteen_bits = matches!(self.net.precision, Precision::Bf16 | Precision::F16);
        if self.net.tensor_cores == TensorCores::Mma || (sixteen_bits && !self.network_devices().is_cpu()) {
            return Ok(());
        }
        let expected = "mma, or net.precision = \"bf16\" or \"f16\" on a GPU";
        Err(Error::config("net.tensor_cores", self.net.tensor_cores, expected))
    }
}
