use super::*;
use crate::config::{Arch, TrainConfig, TrainPrecision, ValueHead};
use crate::error::Error;
use crate::game::{ObsShape, Target, TargetKind, TargetShape};
#[cfg(feature = "candle")]
use crate::model::Weights;
use crate::model::{Array, NetSpec};
use crate::rng::{Key, Purpose};

fn spec(arch: Arch) -> NetSpec {
    NetSpec {
        arch,
        blocks: 2,
        channels: 24,
        policy_channels: 5,
        value_channels: 3,
        value_hidden: 20,
        obs: match arch {
            Arch::Edge => ObsShape { channels: 4, height: 6, width: 1 },
            Arch::Resnet | Arch::Mlp => ObsShape { channels: 2, height: 4, width: 5 },
        },
        num_actions: 6,
        num_players: 2,
        zero_sum_pair: true,
        ..NetSpec::default()
    }
}

/// The same network with win, draw and loss.
fn wdl(arch: Arch) -> NetSpec {
    NetSpec { value_head: ValueHead::Wdl, ..spec(arch) }
}

/// The same network with heads that only training uses.
fn with_auxiliary(arch: Arch) -> NetSpec {
    let auxiliary = vec![
        Target::new("owner", TargetShape::Points, TargetKind::Sign),
        Target::new("margin", TargetShape::Vector(3), TargetKind::Amount),
    ];
    NetSpec { auxiliary, ..spec(arch) }
}

/// `rows` random samples; two actions of six are illegal in each.
fn batch(spec: &NetSpec, rows: usize, seed: u64) -> TrainBatch {
    let mut rng = Key::new(seed, Purpose::Evaluation).stream();
    let mut batch = TrainBatch::default();
    for row in 0..rows {
        batch.obs.extend((0..spec.obs.len()).map(|_| if rng.uniform() < 0.4 { 1.0 } else { 0.0 }));
        let mut target = vec![0.0; 4];
        rng.dirichlet(0.7, &mut target);
        let (a, b) = (row % 6, (row + 2) % 6);
        let legal = (0..6).map(|action| u8::from(action != a && action != b));
        let mut target = target.into_iter();
        for legal in legal {
            batch.legal.push(legal);
            batch.targets.column_mut("policy").push(if legal == 1 {
                target.next().unwrap_or_default()
            } else {
                0.0
            });
        }
        let value = 1.8 * rng.uniform() - 0.9;
        batch.targets.column_mut("values").extend([value, -value]);
        if spec.value_head == ValueHead::Wdl {
            batch.targets.column_mut("outcome").extend(crate::model::Head::outcome_of(value));
        }
        batch.weight.push(1.0);
    }
    for target in &spec.auxiliary {
        let column = batch.targets.column_mut(&target.name);
        column.extend((0..rows * target.len(spec.obs.into())).map(|_| rng.below(3) as f32 - 1.0));
    }
    batch
}

fn config() -> TrainConfig {
    TrainConfig { lr: 3e-3, warmup_updates: 10, lr_final: 1.0, ..TrainConfig::default() }
}

#[test]
fn a_fixed_problem_is_learnt() {
    for arch in [Arch::Resnet, Arch::Mlp, Arch::Edge] {
        let spec = spec(arch);
        let mut trainer = Trainer::new(&spec, &config(), 3).expect("trainer");
        let batch = batch(&spec, 72, 1);
        let first = trainer.step(&batch).expect("finite");
        let last = (0..400).map(|_| trainer.step(&batch).expect("finite")).last().expect("steps");
        assert!(first.policy_kl > 0.3 && first.value_mse > 0.2, "{first:?}");
        assert!(last.policy_kl < 0.02 && last.value_mse < 0.01, "{arch:?}: {last:?}");
        assert!(last.policy_kl >= -1e-6);
    }
}

/// The squared error is that of the expectation, and the loss falls to the target's entropy.
#[test]
fn win_draw_and_loss_are_learnt() {
    for arch in [Arch::Resnet, Arch::Mlp, Arch::Edge] {
        let spec = wdl(arch);
        let mut trainer = Trainer::new(&spec, &config(), 3).expect("trainer");
        let batch = batch(&spec, 30, 1);
        let first = trainer.step(&batch).expect("finite");
        let squares: f64 = batch.targets["values"].iter().map(|v| f64::from(v * v)).sum();
        assert!((first.value_mse - squares / 60.0).abs() < 0.05, "values near 0 at first: {first:?}");
        let entropy = |p: &f32| if *p > 0.0 { -f64::from(*p) * f64::from(*p).ln() } else { 0.0 };
        let entropy = batch.targets["outcome"].iter().map(entropy).sum::<f64>() / 30.0;
        let last = (0..400).map(|_| trainer.step(&batch).expect("finite")).last().expect("steps");
        let further: Vec<&HeadLoss> = last.further_heads().collect();
        assert!(further.len() == 1 && further[0].name == "outcome", "{further:?}");
        assert!((-1e-6..0.03).contains(&(further[0].mean - entropy)), "{arch:?}: {further:?} {entropy}");
        assert!(last.value_mse < 0.01, "{last:?}");
    }
}

#[test]
fn win_draw_and_loss_of_a_game_without_them_are_refused() {
    let error =
        NetSpec { num_players: 3, zero_sum_pair: false, ..wdl(Arch::Mlp) }.model().expect_err("refused");
    assert!(error.to_string().contains("net.value_head: got wdl, expected scalar"), "{error}");
}

#[test]
fn a_head_without_kernels_on_gpus_is_refused_by_name() {
    let check = |spec: NetSpec| crate::net::gpu_train::check_heads(&spec.model().expect("a network"));
    check(spec(Arch::Resnet)).expect("policy and value");
    let error = check(with_auxiliary(Arch::Resnet)).expect_err("no kernels").to_string();
    assert!(error.contains("the owner head") && !error.contains('\n'), "{error}");
    let error = check(wdl(Arch::Mlp)).expect_err("no kernels").to_string();
    assert!(error.contains("the outcome head"), "{error}");
}

#[test]
fn auxiliary_heads_learn_and_are_named() {
    for arch in [Arch::Resnet, Arch::Mlp] {
        let spec = with_auxiliary(arch);
        let config = TrainConfig { auxiliary_weight: 0.5, ..config() };
        let mut trainer = Trainer::new(&spec, &config, 3).expect("trainer");
        let batch = batch(&spec, 30, 1);
        let first = trainer.step(&batch).expect("finite");
        let names: Vec<&str> = first.heads.iter().map(|head| head.name.as_str()).collect();
        assert_eq!(names, ["policy", "value", "owner", "margin"]);
        let loss = |losses: &Losses, i: usize| losses.heads[i].mean;
        let weighted = loss(&first, 0) + loss(&first, 1) + 0.5 * (loss(&first, 2) + loss(&first, 3));
        assert!((first.total - weighted).abs() < 1e-12, "{first:?}");
        assert!((loss(&first, 2) - std::f64::consts::LN_2).abs() < 0.05, "near 0 at first: {first:?}");
        let last = (0..300).map(|_| trainer.step(&batch).expect("finite")).last().expect("steps");
        // A third of the points are undecided, whose cross-entropy is ln 2.
        assert!(
            loss(&last, 2) < 0.4 * loss(&first, 2) + 0.6 * std::f64::consts::LN_2 / 3.0 + 0.1,
            "{last:?}"
        );
        assert!(loss(&last, 3) < 0.5 * loss(&first, 3), "{last:?}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for spec in [spec(Arch::Resnet), spec(Arch::Mlp), spec(Arch::Edge), with_auxiliary(Arch::Resnet)] {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| {
                let mut trainer = Trainer::new(&spec, &config(), 3).expect("trainer");
                for i in 0..3 {
                    trainer.step(&batch(&spec, 130, i)).expect("finite");
                }
                trainer.state()
            })
        };
        assert_eq!(run(1), run(2));
        assert_eq!(run(1), run(5));
    }
}

#[test]
fn state_goes_on_to_the_bit() {
    let spec = with_auxiliary(Arch::Resnet);
    let mut trainer = Trainer::new(&spec, &config(), 3).expect("trainer");
    for i in 0..3 {
        trainer.step(&batch(&spec, 40, i)).expect("finite");
    }
    let state = trainer.state();
    let mut other = Trainer::new(&spec, &config(), 99).expect("trainer");
    other.restore(&state).expect("same network");
    for i in 3..6 {
        let losses = trainer.step(&batch(&spec, 40, i)).expect("finite");
        assert_eq!(losses, other.step(&batch(&spec, 40, i)).expect("finite"));
    }
    assert_eq!(trainer.state(), other.state());
    assert_eq!(other.updates(), 6);
}

#[test]
fn damaged_state_is_refused_and_changes_nothing() {
    let spec = spec(Arch::Mlp);
    let mut trainer = Trainer::new(&spec, &config(), 3).expect("trainer");
    let before = trainer.state();
    for name in ["weights.bn.running_var", "first.stem.weight", "second.policy.linear.bias", "updates"] {
        let mut state = before.clone();
        state.remove(name);
        let error = trainer.restore(&state).expect_err("incomplete").to_string();
        assert!(error.contains("found no"), "{error}");
    }
    for name in ["third.stem.weight", "first.bn.running_var"] {
        let mut surplus = before.clone();
        surplus.insert(name.into(), Array { shape: vec![1], data: vec![0.0] });
        let error = trainer.restore(&surplus).expect_err("surplus").to_string();
        assert!(error.contains("arrays of a trainer"), "{name}: {error}");
    }
    assert_eq!(trainer.state(), before);
}

#[test]
fn a_loss_that_is_no_number_leaves_the_trainer_as_it_was() {
    let spec = spec(Arch::Resnet);
    let mut trainer = Trainer::new(&spec, &config(), 3).expect("trainer");
    let good = batch(&spec, 24, 0);
    trainer.step(&good).expect("finite");
    let before = trainer.state();
    for poison in [f32::NAN, f32::INFINITY, 3e38] {
        let mut bad = good.clone();
        bad.obs[7] = poison;
        assert!(matches!(trainer.step(&bad), Err(Error::NotFinite { .. })), "{poison}");
        assert_eq!(trainer.state(), before);
    }
    let mut bad = good.clone();
    bad.targets["values"][0] = f32::NAN;
    assert!(matches!(trainer.step(&bad), Err(Error::NotFinite { .. })));
    assert_eq!(trainer.state(), before);
}

/// The trainer of a GPU takes its first state from one on the CPU, which does not compute in its format.
#[test]
fn f16_begins_on_the_cpu_and_is_not_trained_there() {
    let spec = spec(Arch::Mlp);
    let in_format = |precision| TrainConfig { precision, ..config() };
    let f32 = Trainer::new(&spec, &in_format(TrainPrecision::F32), 3).expect("trainer");
    let mut f16 = Trainer::new(&spec, &in_format(TrainPrecision::F16), 3).expect("trainer");
    assert_eq!(f16.state(), f32.state());
    let error = f16.step(&batch(&spec, 20, 0)).expect_err("refused").to_string();
    assert!(error.contains("train.precision: got f16, expected f32 or bf16 on the CPU"), "{error}");
}

#[test]
fn batches_of_wrong_lengths_are_refused() {
    let spec = spec(Arch::Mlp);
    let mut trainer = Trainer::new(&spec, &config(), 3).expect("trainer");
    let good = batch(&spec, 20, 0);
    let mut short = good.clone();
    short.obs.pop();
    let mut weightless = good.clone();
    weightless.weight.fill(0.0);
    for (bad, part) in [(short, "observations"), (weightless, "weights"), (batch(&spec, 0, 0), "at least 1")]
    {
        let error = trainer.step(&bad).expect_err("wrong").to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{error}");
    }
    assert!(trainer.step(&good).is_ok());
    // The metrics have the error of the values beside the loss of the outcomes.
    let spec = NetSpec { value_head: ValueHead::Wdl, ..spec };
    let mut trainer = Trainer::new(&spec, &config(), 3).expect("trainer");
    let mut short = batch(&spec, 20, 0);
    short.targets.column_mut("values").pop();
    let error = trainer.step(&short).expect_err("wrong").to_string();
    assert!(error.contains("targets called values"), "{error}");
}

#[test]
fn sample_weights_of_zero_drop_samples_from_the_loss() {
    let spec = spec(Arch::Mlp);
    let full = batch(&spec, 30, 0);
    let mut halved = full.clone();
    halved.weight[15..].fill(0.0);
    let mut changed = halved.clone();
    changed.targets["policy"][15 * 6..].fill(0.25);
    changed.targets["values"][30..].fill(0.5);
    let step = |batch: &TrainBatch| {
        Trainer::new(&spec, &config(), 3).and_then(|mut t| t.step(batch)).expect("finite")
    };
    assert_eq!(step(&halved), step(&changed));
    assert_ne!(step(&halved), step(&full));
}

#[test]
fn the_rate_warms_up_and_falls() {
    let rate = |lr_final, updates| {
        let config =
            TrainConfig { lr: 0.5, warmup_updates: 10, lr_updates: 110, lr_final, ..TrainConfig::default() };
        learning_rate(&config, updates)
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    close(rate(0.1, 0), 0.05);
    close(rate(0.1, 9), 0.5);
    close(rate(0.1, 10), 0.5);
    close(rate(0.1, 60), 0.5 * 0.55);
    close(rate(0.1, 10_000), 0.05);
    for updates in [10, 60, 10_000] {
        assert_eq!(rate(1.0, updates), 0.5);
    }
    // The warm-up ends with the schedule, so that the rate comes to `lr` before it falls.
    let short = TrainConfig { lr: 0.5, warmup_updates: 100, lr_updates: 20, ..TrainConfig::default() };
    close(learning_rate(&short, 9), 0.25);
    close(learning_rate(&short, 19), 0.5);
}

/// The largest difference of first moments and statistics, relative to the largest number of each array.
#[cfg(feature = "candle")]
fn worst_difference(a: &Weights, b: &Weights) -> (f32, String) {
    let difference = |(name, array): (&String, &Array)| {
        let other = &b[name].data;
        let largest = other.iter().fold(1e-4_f32, |m, x| m.max(x.abs()));
        let worst = array.data.iter().zip(other).fold(0.0_f32, |m, (a, b)| m.max((a - b).abs()));
        (worst / largest, name.clone())
    };
    let is_compared = |name: &str| name.starts_with("first.") || name.contains("running_");
    let all = a.iter().filter(|(name, _)| is_compared(name)).map(difference);
    all.max_by(|a, b| a.0.total_cmp(&b.0)).expect("moments")
}

#[test]
#[cfg(feature = "candle")]
fn candle_trains_as_the_fused_passes_do() {
    let auxiliary = [Arch::Resnet, Arch::Mlp].map(with_auxiliary);
    let wdl = [Arch::Resnet, Arch::Mlp, Arch::Edge].map(wdl);
    for spec in [Arch::Resnet, Arch::Mlp, Arch::Edge].map(spec).into_iter().chain(auxiliary).chain(wdl) {
        let arch = spec.arch;
        let mut fused = Trainer::new(&spec, &config(), 3).expect("trainer");
        let mut candle = Trainer::on_candle(&spec, &config(), 3, candle_core::Device::Cpu).expect("trainer");
        assert_eq!(fused.state(), candle.state());
        for i in 0..4 {
            let batch = batch(&spec, 60, i);
            let (a, b) = (fused.step(&batch).expect("finite"), candle.step(&batch).expect("finite"));
            assert!((a.total - b.total).abs() < 1e-4 * b.total, "{arch:?}: {a:?} {b:?}");
            let worst = worst_difference(&fused.state(), &candle.state());
            assert!(worst.0 < 2e-3, "{arch:?}: {worst:?}");
            // AdamW's division makes a rounding of a small gradient a difference of weights.
            candle.restore(&fused.state()).expect("the same network");
        }
    }
}

#[test]
#[cfg(feature = "candle")]
fn candle_goes_on_to_the_bit_with_any_number_of_threads() {
    for arch in [Arch::Resnet, Arch::Edge] {
        let spec = spec(arch);
        let trainer =
            |seed| Trainer::on_candle(&spec, &config(), seed, candle_core::Device::Cpu).expect("trainer");
        let steps = |trainer: &mut Trainer, numbers: std::ops::Range<u64>| {
            for i in numbers {
                trainer.step(&batch(&spec, 40, i)).expect("finite");
            }
        };
        let mut whole = trainer(3);
        steps(&mut whole, 0..4);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
        let resumed = pool.install(|| {
            let mut first = trainer(3);
            steps(&mut first, 0..2);
            let mut second = trainer(99);
            second.restore(&first.state()).expect("same network");
            steps(&mut second, 2..4);
            second.state()
        });
        assert_eq!(whole.state(), resumed, "{arch:?}");
    }
}
