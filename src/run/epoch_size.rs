//! The number of samples of an epoch where the configuration leaves it open.
//!
//! It is estimated from the work of a sample, not measured: a run must have the same epochs on every machine and with any number of
//! threads. The figures are those of two cores with AMX in October and November 2026, where a simulation took 4 us in Connect Four, 45 us in
//! Hex 11, 90 us in chess and 100 us in Gomoku 15.

use crate::config::{Algorithm, Config, Precision, SelfPlayConfig, TrainingMode};
use crate::error::Result;
use crate::game::Sizes;
use crate::net::NetSpec;

/// Seconds that an epoch should take.
const EPOCH_SECONDS: f64 = 8.0;
/// Seconds of a simulation in a tree and a game of no size.
const SIMULATION: f64 = 3e-6;
/// Seconds of a simulation for each legal action of a position.
const LEGAL_ACTION: f64 = 0.35e-6;
/// Afterstates of a turn: the mean of backgammon.
const AFTERSTATES: f64 = 20.0;
/// Seconds of an afterstate without its forward.
const AFTERSTATE: f64 = 0.5e-6;
/// Seconds of a multiply-add of a forward in a format of 16 or 8 bits.
const MULTIPLY_ADD: f64 = 4e-12;
/// Seconds of a multiply-add of a forward in f32, and of an update.
const F32_MULTIPLY_ADD: f64 = 16e-12;
/// Multiply-adds of an update for each of a forward: forward, gradients of the inputs, gradients of the weights.
const UPDATE: f64 = 3.0;
/// Speed of a GPU relative to two cores.
const GPU: f64 = 100.0;
/// Part of a full epoch that the first epoch is.
const FIRST_SHARE: usize = 8;
/// Part of the replay buffer that an epoch fills at most.
const REPLAY_SHARE: usize = 8;
/// Least samples of an epoch.
const MIN_SAMPLES: usize = 64;

/// The configuration with the size of its epochs, which its game and network decide where it is 0.
///
/// # Errors
/// Those of [`NetSpec::model`].
pub fn sized(config: &Config, sizes: &Sizes) -> Result<Config> {
    let mut sized = config.clone();
    let SelfPlayConfig { samples_per_epoch, first_epoch, .. } = &mut sized.selfplay;
    if *samples_per_epoch == 0 {
        let samples = EPOCH_SECONDS / sample_seconds(config, sizes)?;
        let max = (config.replay.capacity / REPLAY_SHARE).max(MIN_SAMPLES);
        *samples_per_epoch = rounded(samples as usize).clamp(MIN_SAMPLES, max);
        if *first_epoch == 0 {
            *first_epoch = (*samples_per_epoch / FIRST_SHARE).max(1);
        }
    }
    Ok(sized)
}

/// Minimum number of samples of `epoch`, from 1: the first epochs are short, so that the first results come soon.
pub fn samples_of(selfplay: &SelfPlayConfig, epoch: u64) -> u64 {
    let full = selfplay.samples_per_epoch.max(1) as u64;
    match selfplay.first_epoch as u64 {
        0 => full,
        first => {
            let doublings = u32::try_from(epoch.saturating_sub(1)).unwrap_or(u32::MAX);
            2_u64
                .checked_pow(doublings)
                .and_then(|factor| first.checked_mul(factor))
                .map_or(full, |n| n.min(full))
        }
    }
}

/// Minimum number of samples of the epochs after number `finished`, up to number `last`.
pub fn samples_between(selfplay: &SelfPlayConfig, finished: u64, last: u64) -> u64 {
    // After 64 doublings every epoch has its full size.
    let growing = (finished..last.min(64)).map(|before| samples_of(selfplay, before + 1));
    let full = last.saturating_sub(finished.max(64)).saturating_mul(samples_of(selfplay, u64::MAX));
    growing.fold(full, u64::saturating_add)
}

/// The number of samples of a run before its first update, by `train.min_samples` and `train.replay_ratio`; None if no update is ever made.
pub fn first_update(config: &Config) -> Option<u64> {
    let train = &config.train;
    let due = train.batch as f64 / train.replay_ratio;
    (train.replay_ratio > 0.0).then(|| config.first_update_samples().max(due.ceil() as u64))
}

/// Which samples [`first_update`] counts, and the keys that set their number, as the end of a sentence.
pub fn first_update_terms(config: &Config) -> &'static str {
    match config.train.mode {
        TrainingMode::InTurns => " (train.min_samples, train.replay_ratio)",
        TrainingMode::Overlapped => " of earlier epochs (train.min_samples, train.replay_ratio, train.mode)",
    }
}

/// Estimated seconds of a sample: the simulations of its ply, and its updates.
fn sample_seconds(config: &Config, sizes: &Sizes) -> Result<f64> {
    let multiply_adds = NetSpec::new(&config.net, sizes).model()?.multiply_adds() as f64;
    let simulations = f64::from(config.search.simulations);
    let determinisations = sizes.determinisations(config.search.determinisations);
    let forward = match config.net.precision {
        Precision::F32 | Precision::Tf32 => F32_MULTIPLY_ADD,
        Precision::Bf16 | Precision::F16 | Precision::Int8 => MULTIPLY_ADD,
    };
    let simulation = SIMULATION + LEGAL_ACTION * sizes.max_legal as f64 + forward * multiply_adds;
    let search = match config.search.algorithm {
        Algorithm::Puct | Algorithm::Gumbel => simulations * f64::from(determinisations) * simulation,
        Algorithm::Afterstate => AFTERSTATES * (AFTERSTATE + forward * multiply_adds),
    };
    let training = config.train.replay_ratio * UPDATE * F32_MULTIPLY_ADD * multiply_adds;
    let speed = if config.network_devices().is_cpu() { 1.0 } else { GPU };
    Ok((search + training) / speed)
}

/// `samples` with two significant digits, for people.
fn rounded(samples: usize) -> usize {
    let unit = 10_usize.pow(samples.max(1).ilog10().saturating_sub(1));
    samples / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;
    use crate::registry::any_game;

    fn sizes(assignments: &[&str]) -> (usize, usize) {
        let layers = assignments.iter().try_fold(Layers::default(), |layers, one| layers.set(one));
        let config = layers.and_then(Layers::resolve).expect("valid");
        let game = any_game(config.game_name(), &config.game_options()).expect("registered");
        let selfplay = sized(&config, &game.sizes()).expect("a network").selfplay;
        (selfplay.samples_per_epoch, selfplay.first_epoch)
    }

    #[test]
    fn more_work_for_a_sample_makes_fewer_samples() {
        let base = ["net.precision=bf16", "search.simulations=64"];
        let of = |more: &[&str]| sizes(&[&base[..], more].concat()).0;
        let plain = of(&[]);
        assert!((5_000..30_000).contains(&plain), "{plain} in Connect Four");
        let with_800 = of(&["search.simulations=800"]);
        assert!(with_800 < plain / 8 && with_800 >= MIN_SAMPLES, "{with_800} with 800 simulations");
        assert!(of(&["net.precision=f32"]) < plain && of(&["net.channels=128"]) < plain / 2);
        assert!(of(&["game.name=gomoku"]) < plain / 5);
        assert_eq!(of(&["replay.capacity=1600"]), 200, "an eighth of the buffer");
        assert_eq!(of(&["search.simulations=1000000", "net.channels=512"]), MIN_SAMPLES);
    }

    #[test]
    fn epochs_double_up_to_their_size_and_a_given_size_is_kept() {
        let (full, first) = sizes(&[]);
        assert_eq!(first, full / 8);
        assert_eq!(sizes(&["selfplay.samples_per_epoch=500"]), (500, 0));
        let mut selfplay = SelfPlayConfig { samples_per_epoch: 1000, first_epoch: 150, ..Default::default() };
        let of =
            |selfplay: &SelfPlayConfig| [1, 2, 3, 4, 70, u64::MAX].map(|epoch| samples_of(selfplay, epoch));
        assert_eq!(of(&selfplay), [150, 300, 600, 1000, 1000, 1000]);
        selfplay.first_epoch = 0;
        assert_eq!(of(&selfplay), [1000; 6]);
        selfplay.first_epoch = 5000;
        assert_eq!(of(&selfplay), [1000; 6]);
    }

    #[test]
    fn samples_of_several_epochs_are_the_sum_of_their_sizes() {
        let selfplay = SelfPlayConfig { samples_per_epoch: 1000, first_epoch: 150, ..Default::default() };
        for (finished, last) in [(0, 1), (0, 5), (2, 3), (3, 3), (4, 2), (0, 70), (63, 66), (68, 70)] {
            let sum: u64 = (finished + 1..=last).map(|epoch| samples_of(&selfplay, epoch)).sum();
            assert_eq!(samples_between(&selfplay, finished, last), sum, "{finished} to {last}");
        }
        assert_eq!(samples_between(&selfplay, 0, u64::MAX), u64::MAX);
    }
}
