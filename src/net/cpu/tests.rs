//! Every instruction set against the naive forward, and a row's bits against the batch around it.

mod int8;

#[cfg(target_arch = "x86_64")]
use super::kernel_set::KernelSet;
use super::{CpuNet, available_isas, choose_isa};
#[cfg(target_arch = "x86_64")]
use super::{x86, x86_bf16};
use crate::config::{Arch, IsaChoice, Precision};
use crate::error::Error;
use crate::game::ObsShape;
use crate::isa::Isa;
use crate::model::{NetSpec, Weights};
use crate::net::Network;
use crate::net::reference::{self, difference};
use crate::rng::{Key, Purpose, RngStream};
use proptest::prelude::*;

fn spec(arch: Arch, board: [usize; 3], channels: usize) -> NetSpec {
    let [planes, height, width] = board;
    NetSpec {
        arch,
        blocks: 2,
        channels,
        policy_channels: 3,
        value_channels: 2,
        value_hidden: 9,
        obs: ObsShape { channels: planes, height, width },
        num_actions: 7,
        num_players: 2,
        zero_sum_pair: true,
        ..NetSpec::default()
    }
}

/// An edge network on K_n.
fn edge_spec(n: usize, channels: usize) -> NetSpec {
    let edges = n * (n - 1) / 2;
    NetSpec { num_actions: edges, ..spec(Arch::Edge, [4, edges, 1], channels) }
}

fn stream(seed: u64) -> RngStream {
    Key::new(seed, Purpose::Evaluation).stream()
}

fn weights(spec: &NetSpec, seed: u64) -> Weights {
    let mut weights = spec.model().expect("a network").random_weights(Key::new(seed, Purpose::Weights));
    // Products around triangles must not grow from block to block.
    let inner =
        weights.iter_mut().filter(|(name, _)| [".edge.", ".vertex."].iter().any(|part| name.contains(part)));
    inner.for_each(|(_, array)| array.data.iter_mut().for_each(|x| *x *= 0.3));
    weights
}

fn observations(spec: &NetSpec, rows: usize, seed: u64) -> Vec<f32> {
    let mut stream = stream(seed);
    (0..rows * spec.obs.len()).map(|_| stream.uniform() * 2.0 - 1.0).collect()
}

/// Logits and values of a batch.
fn evaluate(net: &mut dyn Network, obs: &[f32]) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let io = net.shape();
    let rows = obs.len() / io.obs_len;
    let (mut logits, mut values) = (vec![9.0; rows * io.num_actions], vec![9.0; rows * io.num_players]);
    net.forward(obs, &mut logits, &mut values)?;
    Ok((logits, values))
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// The network on every instruction set and in every precision that this machine has.
fn every_net(spec: &NetSpec, weights: &Weights) -> Vec<CpuNet> {
    let floats = [Precision::F32, Precision::Bf16].into_iter().flat_map(|precision| {
        available_isas(precision)
            .into_iter()
            .map(move |isa| CpuNet::with_isa(spec, weights, precision, isa).expect("available"))
    });
    let mut nets: Vec<CpuNet> = floats.collect();
    if spec.arch != Arch::Edge {
        let obs = observations(spec, 20, 99);
        let isas = available_isas(Precision::Int8).into_iter();
        nets.extend(isas.map(|isa| CpuNet::int8_with_isa(spec, weights, &obs, isa).expect("available")));
    }
    nets
}

/// The 8-bit network on this machine's fastest instruction set.
fn int8(spec: &NetSpec, weights: &Weights, obs: &[f32]) -> Result<CpuNet, Error> {
    CpuNet::int8_with_isa(spec, weights, obs, choose_isa(IsaChoice::Native, Precision::Int8)?)
}

/// All rows of a batch with every instruction set in f32 against the naive forward.
fn check_against_naive(spec: &NetSpec, rows: usize, seed: u64) {
    let weights = weights(spec, seed);
    let obs = observations(spec, rows, seed);
    let (mut logits, mut values) = (vec![], vec![]);
    for row in obs.chunks_exact(spec.obs.len()) {
        let (l, v) = reference::forward(&spec.model().expect("a network"), &weights, row).expect("finite");
        logits.extend(l);
        values.extend(v);
    }
    for isa in available_isas(Precision::F32) {
        let mut net = CpuNet::with_isa(spec, &weights, Precision::F32, isa).expect("available");
        let (l, v) = evaluate(&mut net, &obs).expect("finite");
        assert_eq!((l.len(), v.len()), (logits.len(), values.len()));
        assert!(difference(&l, &logits) < 2e-5, "{isa:?} {spec:?}: logits {l:?}, naive {logits:?}");
        assert!(difference(&v, &values) < 2e-5, "{isa:?} {spec:?}: values {v:?}, naive {values:?}");
    }
}

fn any_spec() -> impl Strategy<Value = NetSpec> {
    let arch = prop_oneof![3 => Just(Arch::Resnet), 1 => Just(Arch::Mlp), 2 => Just(Arch::Edge)];
    let board =
        (1..6usize, 1..8usize, 1..8usize).prop_map(|(c, h, w)| ObsShape { channels: c, height: h, width: w });
    let tower = (0..3usize, 1..70usize);
    let heads = (1..20usize, 1..6usize, 1..40usize, 1..70usize);
    (arch, board, tower, heads, 1..5usize, any::<bool>()).prop_map(
        |(arch, obs, tower, heads, players, zero_sum)| NetSpec {
            arch,
            blocks: tower.0,
            channels: tower.1,
            policy_channels: heads.0,
            value_channels: heads.1,
            value_hidden: heads.2,
            // A board of h x w squares stands for K_n with n = 3 + h.
            obs: match arch {
                Arch::Edge => ObsShape { height: (3 + obs.height) * (2 + obs.height) / 2, width: 1, ..obs },
                Arch::Resnet | Arch::Mlp => obs,
            },
            num_actions: match arch {
                Arch::Edge => (3 + obs.height) * (2 + obs.height) / 2,
                Arch::Resnet | Arch::Mlp => heads.3,
            },
            num_players: players,
            zero_sum_pair: zero_sum && players == 2,
            ..NetSpec::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_kernel_agrees_with_the_naive_forward(spec in any_spec(), rows in 0..8usize, seed in any::<u64>()) {
        check_against_naive(&spec, rows, seed);
    }

    #[test]
    fn a_row_has_the_same_bits_in_any_batch(spec in any_spec(), rows in 1..40usize, seed in any::<u64>()) {
        let weights = weights(&spec, seed);
        let obs = observations(&spec, rows, seed);
        let (f, a, p) = (spec.obs.len(), spec.num_actions, spec.num_players);
        for mut net in every_net(&spec, &weights) {
            let (logits, values) = evaluate(&mut net, &obs).expect("finite");
            let mut fork = net.fork();
            for row in 0..rows {
                let (l, v) = evaluate(fork.as_mut(), &obs[row * f..][..f]).expect("finite");
                prop_assert_eq!(bits(&l), bits(&logits[row * a..][..a]));
                prop_assert_eq!(bits(&v), bits(&values[row * p..][..p]));
            }
            let (from, to) = (rows / 3, rows - rows / 4);
            let (l, _) = evaluate(fork.as_mut(), &obs[from * f..to * f]).expect("finite");
            prop_assert_eq!(bits(&l), bits(&logits[from * a..to * a]));
        }
    }
}

#[test]
fn large_boards_wide_towers_and_wide_heads_agree_with_the_naive_forward() {
    let go = NetSpec { num_actions: 362, ..spec(Arch::Resnet, [5, 19, 19], 33) };
    check_against_naive(&go, 2, 1);
    let chess = NetSpec { num_actions: 4672, policy_channels: 8, ..spec(Arch::Resnet, [21, 8, 8], 48) };
    check_against_naive(&chess, 3, 2);
    let line = spec(Arch::Resnet, [2, 1, 12], 16);
    check_against_naive(&line, 5, 3);
    let vector = NetSpec { num_players: 3, zero_sum_pair: false, ..spec(Arch::Mlp, [301, 1, 1], 128) };
    check_against_naive(&vector, 50, 4);
    check_against_naive(&edge_spec(14, 64), 8, 5);
    check_against_naive(&edge_spec(17, 48), 3, 6);
}

#[test]
fn rows_keep_their_bits_across_chunks() {
    let spec = spec(Arch::Resnet, [2, 6, 7], 64);
    let weights = weights(&spec, 5);
    let obs = observations(&spec, 129, 6);
    for mut net in every_net(&spec, &weights) {
        let (logits, values) = evaluate(&mut net, &obs).expect("finite");
        for rows in [1, 5, 6, 7, 8, 13, 23, 31, 32, 33, 48, 64, 65, 100] {
            let (l, v) = evaluate(&mut net, &obs[..rows * spec.obs.len()]).expect("finite");
            let what = format!("{}, {rows} rows", net.kernel_name());
            assert_eq!(bits(&l), bits(&logits[..rows * spec.num_actions]), "{what}");
            assert_eq!(bits(&v), bits(&values[..rows * 2]), "{what}");
        }
    }
}

/// Batches large enough for matrix kernels, with odd numbers of boards and of channel blocks, and batches too small for them.
#[test]
fn rows_keep_their_bits_on_any_board_with_any_channels() {
    let boards = [[2, 6, 7], [3, 1, 5], [1, 2, 1], [40, 3, 3]];
    for (board, channels) in boards.into_iter().flat_map(|b| [16, 32, 40, 64, 96, 130].map(|c| (b, c))) {
        let spec = spec(Arch::Resnet, board, channels);
        let weights = weights(&spec, 7);
        let obs = observations(&spec, 39, 8);
        // Portable kernels take many times as long, and have the same loop over tiles.
        let nets = every_net(&spec, &weights).into_iter();
        for mut net in nets.filter(|net| !net.kernel_name().starts_with("portable")) {
            let (logits, values) = evaluate(&mut net, &obs).expect("finite");
            let small = obs.chunks(3 * spec.obs.len()).map(|obs| evaluate(&mut net, obs).expect("finite"));
            let (l, v): (Vec<_>, Vec<_>) = small.unzip();
            let what = format!("{}, {board:?}, {channels} channels", net.kernel_name());
            assert_eq!(bits(&logits), bits(&l.concat()), "{what}");
            assert_eq!(bits(&values), bits(&v.concat()), "{what}");
        }
    }
}

/// Boards that pad a tile must not make a batch fail: this network has infinite logits for an empty board.
#[test]
fn boards_beyond_the_batch_change_no_output() {
    let spec = NetSpec { blocks: 0, policy_channels: 1, ..spec(Arch::Resnet, [1, 1, 1], 16) };
    let mut weights = weights(&spec, 9);
    for (name, array) in &mut weights {
        let kept = ["bn.weight", "running_var"].iter().any(|part| name.ends_with(part));
        array.data.fill(if kept { 1.0 } else { 0.0 });
    }
    let mut set = |name: &str, i: usize, number: f32| {
        weights.get_mut(name).expect("a tensor of the network").data[i] = number;
    };
    // The first channel is 1 - x, its policy channel the same, and logits 3e38 + 3e38 times that.
    set("stem.weight", 4, -1.0);
    set("bn.bias", 0, 1.0);
    set("policy.conv.weight", 0, 1.0);
    for action in 0..spec.num_actions {
        set("policy.linear.weight", action, 3e38);
        set("policy.linear.bias", action, 3e38);
    }
    for precision in [Precision::F32, Precision::Bf16] {
        for isa in available_isas(precision) {
            let mut net = CpuNet::with_isa(&spec, &weights, precision, isa).expect("available");
            assert!(evaluate(&mut net, &[0.0]).is_err(), "{isa:?}");
            assert!(evaluate(&mut net, &[1.0; 7]).is_ok(), "{isa:?}");
        }
    }
}

/// All fuse the same products in the same order, but for the bf16 of AMX and `bfmmla`.
#[test]
fn instruction_sets_agree_to_the_bit() {
    let nets = [(Arch::Resnet, [2, 6, 7], 40), (Arch::Resnet, [3, 5, 5], 27), (Arch::Mlp, [31, 1, 1], 64)];
    for (arch, board, channels) in nets {
        check_bits(&spec(arch, board, channels));
    }
    check_bits(&spec(Arch::Resnet, [2, 4, 4], 20));
    check_bits(&edge_spec(6, 40));
}

fn check_bits(spec: &NetSpec) {
    let weights = weights(spec, 12);
    let obs = observations(spec, 21, 13);
    for precision in [Precision::F32, Precision::Bf16] {
        let isas: Vec<Isa> =
            available_isas(precision).into_iter().filter(|isa| !isa.has_own_bf16()).collect();
        let outputs = isas.iter().map(|&isa| {
            let mut net = CpuNet::with_isa(spec, &weights, precision, isa).expect("available");
            let (logits, values) = evaluate(&mut net, &obs).expect("finite");
            (net.kernel_name(), bits(&logits), bits(&values))
        });
        let outputs: Vec<_> = outputs.collect();
        let (first, logits, values) = &outputs[0];
        for (name, l, v) in &outputs {
            assert!(l == logits && v == values, "{name} and {first}, {spec:?}");
        }
    }
}

/// Processors with AVX-512 that lack bf16 have kernels of their own, which all with AVX-512 can run.
#[cfg(target_arch = "x86_64")]
#[test]
fn avx512_without_bf16_gives_the_same_bits() {
    let kernels = [&x86_bf16::AVX512_ROUNDED, &x86_bf16::AVX2];
    let sets = kernels.into_iter().zip([(&x86::AVX512, Isa::Avx512), (&x86::AVX2, Isa::Avx2)]);
    let sets = sets.map(|(tower, (full, isa))| KernelSet { stem: tower, tower, full, isa });
    for spec in [
        spec(Arch::Resnet, [3, 6, 7], 40),
        spec(Arch::Resnet, [2, 4, 4], 20),
        spec(Arch::Mlp, [31, 1, 1], 64),
        edge_spec(6, 40),
    ] {
        let (weights, obs) = (weights(&spec, 12), observations(&spec, 21, 13));
        let mut plain =
            CpuNet::with_isa(&spec, &weights, Precision::Bf16, Isa::Portable).expect("plain Rust");
        let expected = evaluate(&mut plain, &obs).expect("finite");
        for set in sets.clone().filter(|set| set.isa.is_available()) {
            let mut net = CpuNet::pack(&spec, &weights, set, &[]).expect("packed");
            let found = evaluate(&mut net, &obs).expect("finite");
            assert_eq!(bits(&found.0), bits(&expected.0), "{} {spec:?}", net.kernel_name());
            assert_eq!(bits(&found.1), bits(&expected.1), "{} {spec:?}", net.kernel_name());
        }
    }
}

/// bf16 keeps 8 bits: the rounding error is small next to the outputs, and it is not 0.
#[test]
fn bf16_is_near_f32_on_every_kernel() {
    let specs = [(Arch::Resnet, [3, 6, 7]), (Arch::Mlp, [31, 1, 1])]
        .map(|(arch, board)| NetSpec { num_actions: 50, ..spec(arch, board, 33) });
    for spec in specs.into_iter().chain([edge_spec(7, 33)]) {
        let weights = weights(&spec, 14);
        let obs = observations(&spec, 9, 15);
        let mut exact = CpuNet::new(&spec, &weights, Precision::F32).expect("f32 is everywhere");
        let (logits, values) = evaluate(&mut exact, &obs).expect("finite");
        for isa in available_isas(Precision::Bf16) {
            let mut net = CpuNet::with_isa(&spec, &weights, Precision::Bf16, isa).expect("available");
            let (l, v) = evaluate(&mut net, &obs).expect("finite");
            for (found, expected) in [(l, &logits), (v, &values)] {
                let off = difference(&found, expected);
                assert!((1e-6..2e-2).contains(&off), "{} {:?}: off by {off}", net.kernel_name(), spec.arch);
            }
        }
    }
}

#[test]
fn denormal_weights_are_computed_with_and_huge_ones_reported() {
    let spec = spec(Arch::Resnet, [2, 3, 3], 20);
    let obs = observations(&spec, 3, 7);
    for isa in available_isas(Precision::F32) {
        let net = |weights: &Weights| CpuNet::with_isa(&spec, weights, Precision::F32, isa);
        let mut tiny = weights(&spec, 8);
        tiny.get_mut("stem.weight").expect("there").data.fill(1e-41);
        let (logits, _) = evaluate(&mut net(&tiny).expect("finite"), &obs).expect("finite");
        let (expected, _) =
            reference::forward(&spec.model().expect("a network"), &tiny, &obs[..spec.obs.len()])
                .expect("finite");
        assert!(difference(&logits[..7], &expected) < 2e-5);

        let mut huge = weights(&spec, 8);
        for name in ["policy.linear.weight", "value.hidden.weight"] {
            huge.get_mut(name).expect("there").data.fill(3e38);
        }
        let error = evaluate(&mut net(&huge).expect("finite weights"), &obs).expect_err("infinite");
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");

        let mut overflow = weights(&spec, 8);
        overflow.get_mut("blocks.0.bn2.weight").expect("there").data.fill(3e38);
        overflow.get_mut("blocks.0.bn2.running_var").expect("there").data.fill(0.0);
        assert!(matches!(net(&overflow), Err(Error::NotFinite { .. })));

        let mut product = weights(&spec, 8);
        product.get_mut("blocks.0.bn2.weight").expect("there").data.fill(100.0);
        product.get_mut("blocks.0.conv1.weight").expect("there").data[5] = 3e38;
        assert!(matches!(net(&product), Err(Error::NotFinite { .. })));

        let mut nan = weights(&spec, 8);
        nan.get_mut("value.out.bias").expect("there").data[0] = f32::NAN;
        assert!(matches!(net(&nan), Err(Error::NotFinite { .. })));
    }
}

#[test]
fn observations_that_are_nan_are_reported() {
    for spec in [spec(Arch::Mlp, [5, 1, 1], 20), spec(Arch::Resnet, [2, 3, 3], 20), edge_spec(4, 20)] {
        let mut obs = observations(&spec, 2, 10);
        obs[7] = f32::NAN;
        for mut net in every_net(&spec, &weights(&spec, 9)) {
            assert!(
                matches!(evaluate(&mut net, &obs), Err(Error::NotFinite { .. })),
                "{}",
                net.kernel_name()
            );
        }
    }
}

/// The arrays have other offsets in batches of another size: values that a refused batch left may then lie in the padding of rows.
#[test]
fn a_refused_batch_changes_no_later_output() {
    for spec in [spec(Arch::Mlp, [70, 1, 1], 40), spec(Arch::Resnet, [3, 5, 5], 40), edge_spec(5, 40)] {
        let (weights, obs) = (weights(&spec, 24), observations(&spec, 90, 25));
        for (mut used, mut new) in every_net(&spec, &weights).into_iter().zip(every_net(&spec, &weights)) {
            let largest = evaluate(&mut used, &obs).expect("finite");
            for rows in [1, 2, 7, 30] {
                let no_numbers = vec![f32::NAN; rows * spec.obs.len()];
                assert!(evaluate(&mut used, &no_numbers).is_err(), "{}", used.kernel_name());
                let (logits, values) = evaluate(&mut used, &obs).expect("finite");
                assert_eq!(
                    (bits(&logits), bits(&values)),
                    (bits(&largest.0), bits(&largest.1)),
                    "{}",
                    used.kernel_name()
                );
            }
            let (logits, _) = evaluate(&mut new, &obs).expect("finite");
            assert_eq!(bits(&logits), bits(&largest.0), "{}", new.kernel_name());
        }
    }
}

#[test]
fn chunks_hold_all_rows_and_are_batch_multiples_but_for_the_last() {
    for (batch_multiple, tail_limit) in [1, 16, 32]
        .into_iter()
        .flat_map(|batch_multiple| [0, 3].map(|tail_limit| (batch_multiple, tail_limit)))
    {
        for (rows, max_boards) in
            (0..300).flat_map(|rows| [1, 16, 32, 96, 192].map(|max_boards| (rows, max_boards)))
        {
            let chunks: Vec<usize> =
                super::chunk::Chunks::new(rows, max_boards, batch_multiple, tail_limit).collect();
            assert_eq!(chunks.iter().sum::<usize>(), rows);
            assert!(
                chunks.iter().all(|boards| (1..=max_boards).contains(boards)),
                "{rows} {max_boards}: {chunks:?}"
            );
            let whole = chunks
                .iter()
                .rev()
                .skip(1)
                .all(|boards| boards % batch_multiple == 0 || max_boards < batch_multiple);
            assert!(whole || chunks[0] < batch_multiple, "{rows} {max_boards}: {chunks:?}");
            assert!(chunks.len() <= rows.div_ceil(max_boards), "{rows} {max_boards}: {chunks:?}");
        }
    }
}

/// However the stem is multiplied: 3x3 taps on the board, both heads' 1x1 convolutions and three linear layers.
#[test]
fn products_are_those_on_the_board_on_every_kernel() {
    for [planes, height, width] in [[2, 6, 7], [17, 9, 9], [1, 1, 1], [40, 3, 4]] {
        let spec = spec(Arch::Resnet, [planes, height, width], 24);
        let (taps, squares) = ((3 * height - 2) * (3 * width - 2), height * width);
        let expected = taps * (planes * 24 + 4 * 24 * 24) + squares * (24 * 5 + 3 * 7 + 2 * 9) + 9;
        for net in every_net(&spec, &weights(&spec, 18)) {
            assert_eq!(net.macs_per_sample(), expected, "{}", net.kernel_name());
        }
    }
}

#[test]
fn arrays_of_the_wrong_length_are_refused() {
    let spec = spec(Arch::Mlp, [5, 1, 1], 4);
    let mut net = CpuNet::new(&spec, &weights(&spec, 11), Precision::F32).expect("f32 is everywhere");
    let error = net.forward(&[0.0; 10], &mut [0.0; 13], &mut [0.0; 4]).expect_err("13 logits for two rows");
    assert!(error.to_string().contains("found 13, expected 14"), "{error}");
}

#[test]
fn whole_batches_are_those_of_matrices() {
    for (spec, is_board) in [(spec(Arch::Resnet, [2, 6, 7], 16), true), (edge_spec(4, 16), false)] {
        let weights = weights(&spec, 1);
        for isa in available_isas(Precision::Bf16) {
            let net = CpuNet::with_isa(&spec, &weights, Precision::Bf16, isa).expect("the machine has it");
            let expected = (is_board && isa == Isa::Amx).then_some(32);
            assert_eq!(net.batch_multiple(), expected, "{isa} {is_board}");
        }
    }
}
