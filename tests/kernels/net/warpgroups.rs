//! Networks whose products warpgroups make, by wgmma, which on the host is what `host/products.hpp` says.

use super::{Case, ElementType, ask, bits, case, check_outputs, edge, host, mlp, resnet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use vecaz::Error;
use vecaz::config::{Precision, TensorCores};
use vecaz::device::Limits;
use vecaz::net::gpu::network::DeviceNetwork;
use vecaz::net::gpu::{Arithmetic, DeviceForward, MatrixInstruction};

fn by_warpgroups(element_type: ElementType) -> Arithmetic {
    Arithmetic { element_type, cores: MatrixInstruction::Wgmma }
}

/// With one multiprocessor blocks are as large as they come, with very many as small.
fn hopper(multiprocessors: u32) -> Limits {
    Limits { capability: 90, multiprocessors, shared: 227 << 10 }
}

/// The emulator's sums have one order, that of the channels, by either instruction.
#[test]
fn outputs_are_those_of_single_warps() {
    for (case, element_type) in [
        (case(resnet([2, 3, 3], 1, 5), 1, 1), ElementType::F16),
        (case(resnet([4, 19, 19], 1, 16), 2, 4), ElementType::Bf16),
        (case(resnet([2, 3, 4], 1, 130), 3, 7), ElementType::Bf16),
        (case(mlp(200, 1, 130), 33, 9), ElementType::F16),
        (case(edge(7, 1, 40), 2, 16), ElementType::Bf16),
    ] {
        let found = case.on(&host(6), by_warpgroups(element_type));
        check_outputs(&case, element_type, &found);
        let warps = case.on(&host(7), element_type);
        assert_eq!([bits(&found.0), bits(&found.1)], [bits(&warps.0), bits(&warps.1)], "{:?}", case.spec);
    }
}

#[test]
fn a_board_has_the_same_outputs_in_any_slot_of_any_batch() {
    let (spec, boards) = (resnet([2, 6, 7], 1, 70), 9);
    let Case { weights, obs, .. } = case(spec.clone(), boards, 12);
    let run = |obs: &[f32], multiprocessors| {
        let device = host(8).with_limits(hopper(multiprocessors));
        let slots = obs.len() / spec.obs.len();
        let mut net = DeviceForward::new(&device, &spec, &weights, by_warpgroups(ElementType::Bf16), slots)
            .expect("fits");
        ask(&device, &mut net, &spec, obs)
    };
    let (logits, values) = run(&obs, 1);
    assert_eq!(bits(&run(&obs, 100_000).0), bits(&logits));
    let features = spec.obs.len();
    let (l, v) = run(&obs[2 * features..5 * features], 1);
    assert_eq!(bits(&l), bits(&logits[2 * spec.num_actions..5 * spec.num_actions]));
    assert_eq!(bits(&v), bits(&values[2 * spec.num_players..5 * spec.num_players]));
}

/// The barriers of the block's loop and before it, the wait for weights, that for products before their weights are written over, the
/// fence that shows registers to products, and the wait before rows are written over.
#[test]
fn without_a_barrier_a_fence_or_a_wait_outputs_differ_or_are_refused() {
    let case = case(resnet([2, 6, 7], 1, 70), 6, 13);
    let right = case.on(&host(4).with_limits(hopper(1)), by_warpgroups(ElementType::Bf16));
    let outputs = |left_out| {
        let device = host(4).with_limits(hopper(1)).without_barrier(left_out);
        catch_unwind(AssertUnwindSafe(|| case.on(&device, by_warpgroups(ElementType::Bf16)))).ok()
    };
    assert!(outputs(0).as_ref() == Some(&right), "all left in");
    for left_out in 30..=35 {
        assert!(outputs(left_out).as_ref() != Some(&right), "nothing differs without {left_out}");
    }
}

#[test]
fn extreme_weights_are_reported() {
    let Case { spec, weights, obs } = case(resnet([2, 3, 4], 1, 20), 3, 17);
    let device = host(4);
    let check = |value: f32, element_type| {
        let mut weights = weights.clone();
        weights.get_mut("bn.weight").expect("there").data.fill(value);
        let mut net = DeviceForward::new(&device, &spec, &weights, by_warpgroups(element_type), 3)?;
        ask(&device, &mut net, &spec, &obs);
        net.check(&device)
    };
    // Past half precision and not past bfloat16, and past both.
    assert!(check(80_000.0, ElementType::Bf16).is_ok());
    assert!(matches!(check(80_000.0, ElementType::F16), Err(Error::NotFinite { .. })));
    assert!(matches!(check(3e38, ElementType::Bf16), Err(Error::NotFinite { .. })));
}

#[test]
fn without_wgmma_the_refusal_is_one_sentence() {
    let refusal = |element_type, capability| {
        by_warpgroups(element_type).on(capability).expect_err("refused").to_string()
    };
    for capability in [75, 80, 89, 100, 120] {
        let found = format!("{}.{}", capability / 10, capability % 10);
        let why = format!("compute capability 9.0 is needed, and this GPU's is {found}");
        assert_eq!(refusal(ElementType::Bf16, capability), format!("wgmma: {why}"));
    }
    for element_type in [ElementType::F32, ElementType::Tf32] {
        assert_eq!(refusal(element_type, 90), "wgmma: it multiplies bf16 and f16");
    }
    let small = case(resnet([2, 3, 3], 1, 5), 1, 1);
    let ampere = host(4).with_limits(Limits { capability: 80, ..hopper(108) });
    let refused =
        DeviceForward::new(&ampere, &small.spec, &small.weights, by_warpgroups(ElementType::Bf16), 1).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })));
}

#[test]
fn hopper_alone_gets_wgmma_and_in_16_bits_alone() {
    let cores = |precision, tensor_cores, capability| {
        Arithmetic::of(precision, tensor_cores, capability).expect("there").cores
    };
    for (precision, on_hopper) in [
        (Precision::Bf16, MatrixInstruction::Wgmma),
        (Precision::F16, MatrixInstruction::Wgmma),
        (Precision::Tf32, MatrixInstruction::Mma),
        (Precision::F32, MatrixInstruction::Mma),
    ] {
        assert_eq!(cores(precision, TensorCores::Auto, 90), on_hopper);
        assert_eq!(cores(precision, TensorCores::Mma, 90), MatrixInstruction::Mma);
        for capability in [80, 89, 100, 120] {
            assert_eq!(cores(precision, TensorCores::Auto, capability), MatrixInstruction::Mma);
        }
    }
}
