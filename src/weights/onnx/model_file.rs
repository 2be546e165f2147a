//! The whole file: the graph with its input and outputs, the game and the self-check in the metadata.

use super::layers::{INPUT, LayerWriter};
use super::outputs::{Output, VALUE, add_outputs};
use super::proto::{
    Dimension, GraphProto, IR_VERSION, ModelProto, OPERATOR_SET, OperatorSetIdProto, StringStringEntryProto,
    TensorShapeProto, TensorType, TypeProto, ValueInfoProto, data_type,
};
use crate::error::{Error, Result};
use crate::model::{ActivationShape, Model, POLICY};
use crate::weights::net_file::{NetFile, NetworkHeader};
use crate::weights::number_format::NumberFormat;
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;

/// The name of the axis whose length a caller chooses.
const BATCH: &str = "batch";

/// The bytes of `file`, a network of `model`, as ONNX with its weights in `numbers`; errors name `path`.
///
/// # Errors
/// Those of [`LayerWriter::new`] and [`add_outputs`]; [`Error::Unsupported`] for a network beyond the size of such files.
pub fn to_bytes(file: &NetFile, model: &Model, numbers: NumberFormat, path: &Path) -> Result<Vec<u8>> {
    let header = NetworkHeader { model: None, ..file.header.clone() };
    let mut writer = LayerWriter::new(model, &file.weights, numbers)?;
    let outputs = add_outputs(&mut writer, &header)?;
    let tensor_of = |output: Output| value_info(&output.name, &[output.len], output.meaning);
    let graph = GraphProto {
        node: writer.graph.nodes,
        name: header.game.clone(),
        initializer: writer.graph.constants,
        input: vec![value_info(
            INPUT,
            &obs_shape(model.obs()),
            format!("a position seen by {}", header.evaluates.observer()),
        )],
        output: outputs.into_iter().map(tensor_of).collect(),
    };
    let entry = |(key, value): (&str, String)| StringStringEntryProto { key: key.into(), value };
    let metadata = [
        ("vecaz", header.to_json(path)?),
        ("precision", numbers.to_string()),
        ("selfcheck", self_check(file, path)?),
    ];
    let message = ModelProto {
        ir_version: IR_VERSION,
        producer_name: "vecaz".into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        model_version: header.updates as i64,
        doc_string: header.meaning,
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { version: OPERATOR_SET }],
        metadata_props: metadata.into_iter().map(entry).collect(),
    };
    match message.encoded_len() {
        bytes if bytes <= MAX_BYTES => Ok(message.encode_to_vec()),
        bytes => Err(Error::unsupported(
            format!("{} bytes as ONNX", bytes),
            format!("such a file has at most {MAX_BYTES}; export safetensors, or --precision f16"),
        )),
    }
}

/// Readers of protocol buffers refuse larger messages.
const MAX_BYTES: usize = i32::MAX as usize;

/// The axes of the input after the batch.
fn obs_shape(obs: ActivationShape) -> Vec<usize> {
    match obs {
        ActivationShape::Vector(features) => vec![features],
        ActivationShape::Board { channels, height, width } => vec![channels, height, width],
        ActivationShape::Edges { channels, .. } => vec![channels, obs.positions()],
    }
}

/// An input or output of 32-bit floats, `[batch, ..]`.
fn value_info(name: &str, shape: &[usize], doc_string: String) -> ValueInfoProto {
    let batch = Dimension { dim_value: None, dim_param: Some(BATCH.into()) };
    let fixed = |&len: &usize| Dimension { dim_value: Some(len as i64), dim_param: None };
    let dim = std::iter::once(batch).chain(shape.iter().map(fixed)).collect();
    let shape = Some(TensorShapeProto { dim });
    let tensor_type = Some(TensorType { elem_type: data_type::FLOAT, shape });
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }), doc_string }
}

/// The self-check as JSON: rows of the input `obs`, and of the outputs `policy` and `value` that the network gives for them in f32.
fn self_check(file: &NetFile, path: &Path) -> Result<String> {
    let (net, check) = (&file.header.net, &file.check);
    let rows = |data: &[f32], width: usize, used: usize| -> Vec<Vec<f32>> {
        data.chunks_exact(width).map(|row| row[..used].to_vec()).collect()
    };
    let features = net.obs.len();
    let arrays = BTreeMap::from([
        (INPUT, rows(&check.obs, features, features)),
        (POLICY, rows(&check.logits, net.num_actions, net.num_actions)),
        (VALUE, rows(&check.values, net.num_players, net.num_values())),
    ]);
    serde_json::to_string(&arrays).map_err(|e| Error::format(path, format!("cannot be written: {e}")))
}
