//! Updates against [`Trainer::step`].

use super::{batch, config, difference, on_device, on_edges, pair, spec, specs, weights};
use crate::host_device::HostDevice;
use vecaz::config::{Arch, TrainConfig, TrainPrecision};
use vecaz::model::{NetSpec, Weights};
use vecaz::train::device::DeviceTrainer;
use vecaz::train::{Losses, TrainBatch, Trainer};
use vecaz::{Error, Result};

/// The settings with which the first moments after one update are a tenth of the gradient.
pub fn plain() -> TrainConfig {
    TrainConfig { weight_decay: 0.0, clip_norm: 0.0, ..config() }
}

pub fn assert_close(found: &Losses, right: &Losses, tolerance: f64) {
    let pairs = [
        (found.policy_cross_entropy, right.policy_cross_entropy),
        (found.policy_kl, right.policy_kl),
        (found.value_mse, right.value_mse),
        (found.total, right.total),
        (found.gradient_norm, right.gradient_norm),
        (found.learning_rate, right.learning_rate),
    ];
    for (found_one, right_one) in pairs {
        assert!((found_one - right_one).abs() <= tolerance * right_one.abs(), "{found:?} {right:?}");
    }
}

/// Every gradient, by tensor, as the first moments of `plain`.
pub fn assert_gradients(found: &Weights, right: &Weights, tolerance: f32) {
    for (name, right) in right.iter().filter(|(name, _)| name.starts_with("first.")) {
        // A bias in front of a normalisation has the gradient 0 but for rounding.
        let zero =
            name.contains("linear1.bias") || name.contains("linear2.bias") || name.contains("stem.bias");
        if !zero {
            let apart = difference(&found[name], right);
            assert!(apart <= tolerance, "{name}: {apart}");
        }
    }
}

#[test]
fn gradients_statistics_and_losses_are_those_of_rust() {
    for spec in specs() {
        let (mut right, mut found) = pair(&spec, &plain());
        let samples = batch(&spec, 19, 2);
        let (l, r) = (found.step(&samples).expect("finite"), right.step(&samples).expect("finite"));
        assert_close(&l, &r, 2e-5);
        let (state, right) = (found.state().expect("a state"), right.state());
        assert_gradients(&state, &right, 1e-4);
        for (name, right) in right.iter().filter(|(name, _)| name.contains("running_")) {
            let apart = difference(&state[name], right);
            assert!(apart < 1e-4, "{name} of {spec:?}: {apart}");
        }
    }
}

#[test]
fn the_gradient_is_the_slope_of_the_loss() {
    check_slope(&NetSpec { channels: 8, blocks: 1, ..spec(Arch::Resnet) });
    check_slope(&NetSpec { channels: 8, blocks: 1, ..on_edges(5, spec(Arch::Edge)) });
}

fn check_slope(spec: &NetSpec) {
    let samples = batch(spec, 17, 3);
    let state = Trainer::with_weights(spec, &plain(), &weights(spec)).expect("a trainer").state();
    let mut trainer = on_device(spec, &plain(), &state);
    let norm = trainer.step(&samples).expect("finite").gradient_norm as f32;
    let gradient = trainer.state().expect("a state");
    let mut loss_at = |step: f32| {
        let mut moved = state.clone();
        for (name, array) in moved.iter_mut() {
            let Some(slope) = name.strip_prefix("weights.").and_then(|n| gradient.get(&format!("first.{n}")))
            else {
                continue;
            };
            array.data.iter_mut().zip(&slope.data).for_each(|(x, tenth)| *x += step * 10.0 * tenth / norm);
        }
        trainer.restore(&moved).expect("the same network");
        trainer.step(&samples).expect("finite").total
    };
    let slope = (loss_at(2e-3) - loss_at(-2e-3)) / 4e-3;
    assert!((slope / f64::from(norm) - 1.0).abs() < 5e-3, "{slope} {norm}");
}

#[test]
fn many_updates_follow_those_of_rust() {
    let shapes = [
        NetSpec { channels: 12, ..spec(Arch::Resnet) },
        spec(Arch::Mlp),
        NetSpec { channels: 12, ..on_edges(5, spec(Arch::Edge)) },
    ];
    for spec in shapes {
        let (mut right, mut found) = pair(&spec, &config());
        for update in 0..20 {
            let samples = batch(&spec, 24, update % 4);
            let (l, r) = (found.step(&samples).expect("finite"), right.step(&samples).expect("finite"));
            assert_close(&l, &r, 2e-3);
        }
        assert_eq!(found.updates(), 20);
    }
}

#[test]
fn captured_updates_are_those_launched_one_by_one() {
    let shapes = [spec(Arch::Resnet), on_edges(5, spec(Arch::Edge))];
    for spec in shapes {
        let spec = NetSpec { channels: 12, blocks: 1, ..spec };
        let config = config();
        let first = Trainer::with_weights(&spec, &config, &weights(&spec)).expect("a trainer").state();
        let mut recorded = on_device(&spec, &config, &first);
        let mut state = first;
        // The size changes in the middle: arrays are others then, and so are graphs.
        for (update, rows) in [12, 12, 12, 12, 18, 18, 18].into_iter().enumerate() {
            let samples = batch(&spec, rows, update as u64);
            let mut fresh = on_device(&spec, &config, &state); // launches all by itself, since nothing was before
            let right = fresh.step(&samples).expect("finite");
            assert_eq!(recorded.step(&samples).expect("finite"), right);
            state = fresh.state().expect("a state");
            assert_eq!(recorded.state().expect("a state"), state);
            assert_eq!(fresh.device().graph_launches(), 0);
            assert_eq!(recorded.device().graph_launches(), update as u64);
        }
    }
}

#[test]
fn the_optimiser_gives_the_same_bits_for_the_same_gradient() {
    // Where nothing is learnt from the samples the gradient is 0 in both: moments fall and weights decay alike.
    let spec = NetSpec { channels: 8, blocks: 1, ..spec(Arch::Resnet) };
    let config = TrainConfig { weight_decay: 0.3, value_weight: 0.0, ..config() };
    let mut samples = batch(&spec, 9, 1);
    samples.targets["policy"].fill(0.0);
    let mut start = Trainer::with_weights(&spec, &config, &weights(&spec)).expect("a trainer").state();
    for (name, array) in start.iter_mut() {
        let moment = [("first.", 0.01), ("second.", 0.02)].into_iter().find(|(p, _)| name.starts_with(p));
        if let Some((_, size)) = moment {
            array.data.iter_mut().enumerate().for_each(|(i, x)| *x = size * (1.0 + (i % 7) as f32));
        }
    }
    let mut right = Trainer::new(&spec, &config, 1).expect("a trainer");
    right.restore(&start).expect("the same network");
    let mut found = on_device(&spec, &config, &start);
    for _ in 0..3 {
        assert_eq!(right.step(&samples).expect("finite").gradient_norm, 0.0);
        found.step(&samples).expect("finite");
    }
    let (state, right) = (found.state().expect("a state"), right.state());
    for (name, array) in right.iter().filter(|(name, _)| !name.contains("running_")) {
        assert_eq!(&state[name], array, "{name}");
    }
}

/// A state after some updates on a device whose threads run in an order drawn from `seed`.
fn run(seed: u64, spec: &NetSpec, config: &TrainConfig) -> Weights {
    let start = Trainer::with_weights(spec, config, &weights(spec)).expect("a trainer").state();
    let mut trainer =
        DeviceTrainer::with_state(HostDevice::new(seed), spec, config, None, &start).expect("a trainer");
    for update in 0..3 {
        trainer.step(&batch(spec, 30, update)).expect("finite");
    }
    trainer.state().expect("a state")
}

#[test]
fn any_order_of_threads_gives_the_same_bits() {
    for spec in [spec(Arch::Resnet), spec(Arch::Mlp), on_edges(6, spec(Arch::Edge))] {
        let first = run(1, &spec, &config());
        assert_eq!(run(2, &spec, &config()), first);
        assert_eq!(run(77, &spec, &config()), first);
    }
}

#[test]
fn a_state_goes_on_to_the_bit() {
    let spec = spec(Arch::Resnet);
    let (_, mut trainer) = pair(&spec, &config());
    for i in 0..2 {
        trainer.step(&batch(&spec, 20, i)).expect("finite");
    }
    let mut other = on_device(&spec, &config(), &trainer.state().expect("a state"));
    for i in 2..4 {
        let samples = batch(&spec, 20, i);
        assert_eq!(trainer.step(&samples).expect("finite"), other.step(&samples).expect("finite"));
    }
    assert_eq!(trainer.state().expect("a state"), other.state().expect("a state"));
    assert_eq!(other.updates(), 4);
}

/// One update after `spoil`, which must be refused and leave the trainer as it was.
fn refused(spec: &NetSpec, spoil: impl FnOnce(&mut TrainBatch)) -> Result<()> {
    refused_with(spec, &config(), spoil)
}

fn refused_with(spec: &NetSpec, config: &TrainConfig, spoil: impl FnOnce(&mut TrainBatch)) -> Result<()> {
    let (_, mut trainer) = pair(spec, config);
    let mut samples = batch(spec, 12, 1);
    trainer.step(&samples)?;
    let before = trainer.state()?;
    spoil(&mut samples);
    let error = trainer.step(&samples).expect_err("spoilt");
    assert!(matches!(error, Error::NotFinite { .. } | Error::Mismatch { .. }), "{error}");
    assert_eq!(trainer.state()?, before);
    trainer.step(&batch(spec, 12, 2)).map(drop)
}

#[test]
fn numbers_that_are_none_leave_the_trainer_as_it_was() -> Result<()> {
    let spec = NetSpec { channels: 8, ..spec(Arch::Resnet) };
    refused(&spec, |samples| samples.obs[7] = f32::NAN)?;
    refused(&spec, |samples| samples.obs[7] = f32::INFINITY)?;
    refused(&spec, |samples| samples.targets["values"][0] = f32::NAN)?;
    refused(&spec, |samples| samples.obs.truncate(3))
}

/// A gradient that is infinite in half precision whatever the scale of the loss, which is then that of before too.
#[test]
fn a_refused_update_in_half_precision_leaves_the_scale_of_the_loss() -> Result<()> {
    let spec = NetSpec { channels: 8, ..spec(Arch::Resnet) };
    let config = TrainConfig { precision: TrainPrecision::F16, ..config() };
    refused_with(&spec, &config, |samples| samples.targets.column_mut("values").fill(1e15))
}

#[test]
fn an_edge_network_on_no_graph_is_refused() {
    let spec = NetSpec { num_actions: 5, ..on_edges(4, spec(Arch::Edge)) };
    let error = DeviceTrainer::new(HostDevice::new(1), &spec, &config(), None, 1).err().expect("refused");
    assert!(error.to_string().contains("net.arch: got edge, expected resnet or mlp"), "{error}");
}
