//! Files of every kind of layer and head, as rten reads and executes them, against the reference.

use super::layers::LayerWriter;
use super::proto::{ModelProto, TensorProto, data_type};
use super::*;
use crate::game::{Target, TargetKind, TargetShape};
use crate::model::{Array, HeadRole, Loss, NetSpec};
use crate::net::reference::{self, difference};
use crate::net::tests::{Case, ROWS, specs};
use crate::weights::EvaluatedPositions;
use crate::weights::net_file::{NetFile, NetworkHeader, evaluate};
use crate::weights::number_format::NumberFormat;
use crate::{Error, Result};
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;

/// A file of `case`, whose observations are no game's.
fn file(case: &Case) -> NetFile {
    let header = NetworkHeader {
        version: 1,
        game: "none".into(),
        options: toml::Table::new(),
        net: case.spec.clone(),
        evaluates: EvaluatedPositions::Decisions,
        meaning: "random numbers".into(),
        actions: vec![None; case.spec.num_actions],
        updates: 3,
        model: None,
    };
    let obs = case.obs[..8 * case.spec.obs.len()].to_vec();
    let check = evaluate(&case.spec, &case.weights, obs).expect("finite");
    NetFile { header, weights: case.weights.clone(), check }
}

fn exported(case: &Case, numbers: NumberFormat) -> Result<Vec<u8>> {
    to_bytes(&file(case), &case.model, numbers, Path::new("net.onnx"))
}

fn decoded(case: &Case, numbers: NumberFormat) -> ModelProto {
    ModelProto::decode(&*exported(case, numbers).expect("in range")).expect("what was encoded")
}

/// What every output should be. `[ROWS, ..]`
fn expected(case: &Case) -> BTreeMap<String, Vec<f32>> {
    let mut outputs = BTreeMap::<String, Vec<f32>>::new();
    let mut add = |name: &str, row: Vec<f64>| {
        outputs.entry(name.into()).or_default().extend(row.into_iter().map(|x| x as f32));
    };
    for obs in case.rows() {
        let layers = reference::activations(&case.model, &case.weights, obs).expect("finite");
        for head in &case.model.heads {
            let outputs = layers[head.layer].clone();
            match (head.role, head.loss) {
                (HeadRole::Policy, _) => add("policy", outputs),
                (HeadRole::Value, loss) => {
                    add("value", layers[case.model.value()].clone());
                    if loss == Loss::ClassCrossEntropy {
                        let sum: f64 = outputs.iter().map(|x| x.exp()).sum();
                        add("outcome", outputs.iter().map(|x| x.exp() / sum).collect());
                    }
                }
                (HeadRole::Auxiliary, Loss::BinaryCrossEntropy) => {
                    add(&head.name, outputs.iter().map(|x| 2.0 / (1.0 + (-x).exp()) - 1.0).collect());
                }
                (HeadRole::Auxiliary, _) => add(&head.name, outputs),
            }
        }
    }
    outputs
}

/// Writes files of `case` in all formats, and what they should give, for `tests/oracles/onnx_files.py`.
fn write_for_oracle(folder: &Path, number: usize, case: &Case, expected: &BTreeMap<String, Vec<f32>>) {
    for numbers in [NumberFormat::F32, NumberFormat::F16, NumberFormat::Bf16] {
        let path = folder.join(format!("{number:02}-{:?}-{numbers}", case.spec.arch).to_lowercase());
        std::fs::write(path.with_extension("onnx"), exported(case, numbers).expect("in range"))
            .expect("written");
        let mut arrays: BTreeMap<&str, Vec<&[f32]>> = BTreeMap::from([("obs", case.rows().collect())]);
        arrays
            .extend(expected.iter().map(|(name, rows)| (&**name, rows.chunks(rows.len() / ROWS).collect())));
        let json = serde_json::to_string(&arrays).expect("numbers");
        std::fs::write(path.with_extension("json"), json).expect("written");
    }
}

/// The outputs of a file by name, as rten computes them for all rows at once. `[ROWS, ..]`
fn executed(bytes: Vec<u8>, obs: &[f32]) -> BTreeMap<String, Vec<f32>> {
    let model = rten::Model::load(bytes).expect("a graph that rten reads");
    let name = |id: &rten::NodeId| {
        let info = model.node_info(*id).expect("an output");
        info.name().expect("with a name").to_string()
    };
    let dims = model.input_shape(0).expect("a shape");
    let shape: Vec<usize> = dims
        .iter()
        .map(|dim| match dim {
            rten::Dimension::Fixed(len) => *len,
            rten::Dimension::Symbolic(name) => {
                assert_eq!(name, "batch");
                ROWS
            }
        })
        .collect();
    assert_eq!(shape[0], ROWS, "the batch is the caller's");
    let input = rten::ValueView::from_shape(shape, obs).expect("the observation's shape");
    let inputs = vec![(model.node_id("obs").expect("the input"), input.into())];
    let names: Vec<String> = model.output_ids().iter().map(name).collect();
    let outputs = model.run(inputs, model.output_ids(), None).expect("executed");
    let rows = |value: rten::Value| {
        let (shape, data) = value.into_shape_vec::<f32, 2>().expect("rows of numbers");
        assert_eq!(shape[0], ROWS);
        data
    };
    names.into_iter().zip(outputs.into_iter().map(rows)).collect()
}

#[test]
fn another_program_computes_every_output_as_the_reference_does() {
    let folder = std::env::var_os("VECAZ_WRITE_ONNX");
    let mut worst = 0.0_f32;
    for (number, case) in specs().into_iter().map(Case::new).chain([with_all_heads()]).enumerate() {
        let found = executed(exported(&case, NumberFormat::F32).expect("in range"), &case.obs);
        let expected = expected(&case);
        if let Some(folder) = &folder {
            write_for_oracle(Path::new(folder), number, &case, &expected);
        }
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{:?}", case.spec);
        for (name, expected) in &expected {
            let off = difference(&found[name], expected);
            assert!(off < 1e-5, "{name} of {:?}: off by {off}", case.spec);
            worst = worst.max(off);
        }
    }
    assert!(worst > 0.0, "two programs do not sum in the same order");
}

/// A network with both kinds of targets and a value of win, draw and loss.
fn with_all_heads() -> Case {
    let has_all = |spec: &&NetSpec| spec.auxiliary.len() == 2;
    let spec = specs().iter().find(has_all).expect("with targets").clone();
    Case::new(NetSpec {
        num_players: 2,
        zero_sum_pair: true,
        value_head: crate::config::ValueHead::Wdl,
        ..spec
    })
}

#[test]
fn outputs_have_names_shapes_and_meanings() {
    let case = with_all_heads();
    let model = decoded(&case, NumberFormat::F32);
    assert_eq!((model.ir_version, model.opset_import[0].version, model.model_version), (7, 13, 3));
    assert_eq!((model.producer_name.as_str(), model.doc_string.as_str()), ("vecaz", "random numbers"));
    let graph = model.graph.expect("a graph");
    let described = |info: &super::proto::ValueInfoProto| {
        let tensor = info.r#type.clone().and_then(|kind| kind.tensor_type).expect("a tensor");
        assert_eq!(tensor.elem_type, data_type::FLOAT);
        let dims = tensor.shape.expect("a shape").dim;
        let axes = dims
            .into_iter()
            .map(|dim| dim.dim_param.unwrap_or_else(|| dim.dim_value.expect("a length").to_string()));
        format!("{} [{}]", info.name, axes.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(described(&graph.input[0]), "obs [batch, 5, 6, 7]");
    let outputs: Vec<String> = graph.output.iter().map(described).collect();
    let expected = [
        "policy [batch, 8]",
        "value [batch, 1]",
        "outcome [batch, 3]",
        "owner [batch, 42]",
        "margin [batch, 3]",
    ];
    assert_eq!(outputs, expected);
    let meanings =
        ["logits", "result of the player to move", "win, draw and loss", "owner of each point", "margin"];
    for (output, meaning) in graph.output.iter().zip(meanings) {
        assert!(output.doc_string.contains(meaning), "{}: {}", output.name, output.doc_string);
    }
    let folded = graph.node.iter().filter(|node| node.op_type == "BatchNormalization").count();
    assert_eq!(folded, 0);
}

/// A network of the algorithm afterstate has a policy that nothing was learned by.
#[test]
fn the_policy_of_afterstates_is_called_untrained() {
    let case = with_all_heads();
    let mut of_turns = file(&case);
    of_turns.header.evaluates = EvaluatedPositions::Afterstates;
    let bytes = to_bytes(&of_turns, &case.model, NumberFormat::F32, Path::new("net.onnx")).expect("in range");
    let graph = ModelProto::decode(&*bytes).expect("what was encoded").graph.expect("a graph");
    let described = ["untrained", "result of the player whose turn has led to it"];
    for (output, meaning) in graph.output.iter().zip(described) {
        assert!(output.doc_string.contains(meaning), "{}: {}", output.name, output.doc_string);
    }
}

/// What a reader needs to use and to check the network is in the file.
#[test]
fn the_metadata_have_the_game_and_the_self_check() {
    let case = with_all_heads();
    let model = decoded(&case, NumberFormat::F32);
    let metadata: BTreeMap<&str, &str> =
        model.metadata_props.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect();
    let header: NetworkHeader = serde_json::from_str(metadata["vecaz"]).expect("a header");
    assert_eq!(header, file(&case).header);
    assert_eq!(metadata["precision"], "f32");
    let check: BTreeMap<String, Vec<Vec<f32>>> = serde_json::from_str(metadata["selfcheck"]).expect("rows");
    assert_eq!(check["obs"].concat(), case.obs[..8 * case.spec.obs.len()], "to the bit");
    let expected = expected(&case);
    for (name, width) in [("policy", 8), ("value", 1)] {
        assert!(check[name].iter().all(|row| row.len() == width), "{name}");
        assert!(difference(&check[name].concat(), &expected[name][..8 * width]) < 1e-5, "{name}");
    }
}

/// In f16 all numbers are those of f32, rounded, and only input and outputs are cast. In bf16 the matrices are, and nothing else.
#[test]
fn half_precision_rounds_the_numbers_once() {
    for case in specs().into_iter().map(Case::new) {
        let [whole, f16, bf16] = [NumberFormat::F32, NumberFormat::F16, NumberFormat::Bf16]
            .map(|numbers| decoded(&case, numbers).graph.expect("a graph"));
        let by_name = |constants: &[TensorProto]| -> BTreeMap<String, TensorProto> {
            constants.iter().map(|constant| (constant.name.clone(), constant.clone())).collect()
        };
        let whole_constants = by_name(&whole.initializer);
        for (graph, numbers, stored) in
            [(&f16, NumberFormat::F16, data_type::FLOAT16), (&bf16, NumberFormat::Bf16, data_type::BFLOAT16)]
        {
            let constants = by_name(&graph.initializer);
            assert_eq!(constants.keys().collect::<Vec<_>>(), whole_constants.keys().collect::<Vec<_>>());
            for (name, constant) in &constants {
                let whole = &whole_constants[name];
                if constant.data_type == stored {
                    let rounded =
                        NumberFormat::F32.decode(&whole.raw_data).into_iter().map(|x| numbers.round(x));
                    assert_eq!(numbers.decode(&constant.raw_data), rounded.collect::<Vec<_>>(), "{name}");
                } else {
                    assert_eq!(constant, whole, "{name}");
                    let is_number = constant.data_type == data_type::FLOAT;
                    assert!(!is_number || numbers == NumberFormat::Bf16, "{name} is not in f16");
                    assert!(!is_number || !name.ends_with(".weight"), "the matrix {name} is not in bf16");
                }
            }
            let casts = graph.node.iter().filter(|node| node.op_type == "Cast").count();
            let in_format = constants.values().filter(|constant| constant.data_type == stored).count();
            assert_eq!(casts, if numbers == NumberFormat::F16 { 1 + graph.output.len() } else { in_format });
            assert_eq!(graph.node.len() - casts, whole.node.len());
        }
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused_by_name() {
    let change = |name: &str, value: f32| {
        let mut case = with_all_heads();
        let Array { data, .. } = case.weights.get_mut(name).expect("its own");
        data[0] = value;
        case
    };
    let refused = |case: &Case, numbers| {
        let error = exported(case, numbers).expect_err("too large");
        assert!(matches!(error, Error::Unsupported { .. } | Error::NotFinite { .. }), "{error:?}");
        error.to_string()
    };
    let large = change("policy.linear.weight", 7e4);
    assert!(exported(&large, NumberFormat::Bf16).is_ok() && exported(&large, NumberFormat::F32).is_ok());
    let error = refused(&large, NumberFormat::F16);
    let says = "tensor policy.linear.weight in f16: it has the number 70000, and the largest of f16 is 65504";
    assert_eq!(error, says);
    let Case { model, mut weights, .. } = change("policy.bn.weight", 3e38);
    weights.get_mut("policy.bn.running_var").expect("its own").data[0] = 0.0;
    let error = LayerWriter::new(&model, &weights, NumberFormat::F32).map(drop).expect_err("infinite");
    assert_eq!(error.to_string(), "the scale or offset of BatchNorm policy.bn is not finite (inf)");
    let obs = Target::new("obs", TargetShape::Points, TargetKind::Sign);
    let case = Case::new(NetSpec { auxiliary: vec![obs], ..with_all_heads().spec });
    assert!(refused(&case, NumberFormat::F32).starts_with("an ONNX output obs: the input or another output"));
}
