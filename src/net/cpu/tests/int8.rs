//! The forward in 8-bit integers.

use super::*;

/// The rounding error of 8 bits is small next to the outputs, and it is not 0.
#[test]
fn int8_is_near_f32_on_observations_like_those_it_was_calibrated_on() {
    for (arch, board) in [(Arch::Resnet, [3, 6, 7]), (Arch::Mlp, [31, 1, 1])] {
        let spec = NetSpec { num_actions: 50, ..spec(arch, board, 37) };
        let weights = weights(&spec, 18);
        let obs = observations(&spec, 19, 19);
        let mut exact = CpuNet::new(&spec, &weights, Precision::F32).expect("f32 is everywhere");
        let mut bytes = int8(&spec, &weights, &observations(&spec, 200, 20)).expect("available");
        let (expected, found) = (evaluate(&mut exact, &obs), evaluate(&mut bytes, &obs));
        let ((logits, values), (l, v)) = (expected.expect("finite"), found.expect("finite"));
        for (found, expected) in [(l, logits), (v, values)] {
            let off = difference(&found, &expected);
            assert!((1e-5..6e-2).contains(&off), "{arch:?}: off by {off}");
        }
        let none = int8(&spec, &weights, &[]).err();
        assert!(matches!(none, Some(Error::Mismatch { .. })));
    }
}

/// Sums of products of bytes are integers, equal on every kernel.
#[test]
fn int8_kernels_agree_to_the_bit() {
    let specs = [(Arch::Resnet, [3, 6, 7], 37), (Arch::Resnet, [2, 9, 9], 64), (Arch::Mlp, [31, 1, 1], 130)];
    for (arch, board, channels) in specs {
        let spec = NetSpec { num_actions: 50, ..spec(arch, board, channels) };
        let (weights, calibration) = (weights(&spec, 21), observations(&spec, 30, 22));
        for rows in [1, 7, 16, 32, 40, 97] {
            let obs = observations(&spec, rows, 23);
            let outputs = available_isas(Precision::Int8).into_iter().map(|isa| {
                let mut net = CpuNet::int8_with_isa(&spec, &weights, &calibration, isa).expect("available");
                let (logits, values) = evaluate(&mut net, &obs).expect("finite");
                (isa, bits(&logits), bits(&values))
            });
            let outputs: Vec<_> = outputs.collect();
            for (isa, logits, values) in &outputs {
                let (best, l, v) = &outputs[0];
                assert!(logits == l && values == v, "{isa:?} and {best:?}, {arch:?}, {rows} rows");
            }
        }
    }
}

#[test]
fn int8_without_observations_is_refused() {
    let spec = spec(Arch::Mlp, [5, 1, 1], 4);
    let error = CpuNet::new(&spec, &weights(&spec, 11), Precision::Int8).err().expect("must be refused");
    assert!(matches!(error, Error::Unsupported { .. }));
    let edge = edge_spec(4, 8);
    let error = int8(&edge, &weights(&edge, 11), &observations(&edge, 3, 1)).err().expect("refused");
    assert!(error.to_string().contains("net.precision: got int8, expected f32 or bf16"), "{error}");
}
