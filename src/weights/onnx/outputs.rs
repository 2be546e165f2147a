//! The heads of a model as outputs of a graph, each with its meaning.
//!
//! The policy goes out as logits, since illegal actions are to be masked before the softmax. All other outputs are estimates of what
//! their heads learn, as numbers that a caller can show.

use super::layers::{INPUT, LayerWriter};
use crate::error::{Error, Result};
use crate::game::TargetShape;
use crate::model::{Head, HeadRole, Loss, NetSpec};
use crate::weights::evaluated::EvaluatedPositions;
use crate::weights::net_file::NetworkHeader;

/// An output of the graph.
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its elements for one observation.
    pub len: usize,
    /// Its meaning.
    pub meaning: String,
}

/// Makes an output of every head.
///
/// # Errors
/// [`Error::Unsupported`] for a target that has the name of another output or of the input.
pub fn add_outputs(writer: &mut LayerWriter<'_>, header: &NetworkHeader) -> Result<Vec<Output>> {
    let (net, observer) = (&header.net, header.evaluates.observer());
    let mut outputs: Vec<Output> = Vec::new();
    let mut add = |writer: &mut LayerWriter<'_>, output: Output, tensor: &str| {
        if output.name == INPUT || outputs.iter().any(|other| other.name == output.name) {
            let why = "the input or another output has this name; rename the game's target";
            return Err(Error::unsupported(format!("an ONNX output {}", output.name), why));
        }
        writer.graph.output(&output.name, tensor);
        outputs.push(output);
        Ok(())
    };
    for head in &writer.model.heads {
        let len = |layer: usize| writer.model.layers[layer].shape.len();
        if let Some(layer) = head.play {
            let name = if head.role == HeadRole::Policy { &head.name } else { VALUE };
            let output = Output { name: name.into(), len: len(layer), meaning: played_meaning(head, header) };
            let tensor = writer.tensor(layer).to_string();
            let outcome = (head.loss == Loss::ClassCrossEntropy).then(|| writer.probabilities(layer));
            add(writer, output, &tensor)?;
            if let Some(tensor) = outcome {
                let meaning = format!("probabilities of win, draw and loss for {observer}");
                add(writer, Output { name: head.name.clone(), len: 3, meaning }, &tensor)?;
            }
        } else {
            let output = Output {
                name: head.name.clone(),
                len: len(head.layer),
                meaning: target_meaning(head, net, observer),
            };
            let tensor = estimate(writer, head)?;
            add(writer, output, &tensor)?;
        }
    }
    Ok(outputs)
}

/// The name of the output with the values that the search reads.
pub const VALUE: &str = "value";

fn played_meaning(head: &Head, header: &NetworkHeader) -> String {
    let observer = header.evaluates.observer();
    match (head.role, header.net.zero_sum_pair) {
        (HeadRole::Policy, _) => match header.evaluates {
            EvaluatedPositions::Decisions => {
                "logits, one for each action, to be masked by the legal actions".into()
            }
            EvaluatedPositions::Afterstates => "untrained: turns are compared by their values alone".into(),
        },
        (_, true) => format!("expected result of {observer}, in [-1, 1]; the opponent's is the opposite"),
        (_, false) => {
            format!("expected result of each player, in [-1, 1], in seats relative to {observer}")
        }
    }
}

fn target_meaning(head: &Head, net: &NetSpec, observer: &str) -> String {
    let of_points =
        net.auxiliary.iter().any(|target| target.name == head.target && target.shape == TargetShape::Points);
    let of_each = if of_points { " of each point of the board, row by row" } else { "" };
    format!("expected {}{of_each}, in [-1, 1], seen by {observer}", head.target)
}

/// The estimate of what `head` learns. Where the probability (1 + t) / 2 is the sigmoid of the head's output y, the expectation t is
/// the hyperbolic tangent of y / 2.
fn estimate(writer: &mut LayerWriter<'_>, head: &Head) -> Result<String> {
    let tensor = writer.tensor(head.layer).to_string();
    match head.loss {
        Loss::SquaredError | Loss::LegalCrossEntropy | Loss::ClassCrossEntropy => Ok(tensor),
        Loss::BinaryCrossEntropy => {
            let half = writer.graph.vector("half", &[1], &[0.5])?;
            let halved = writer.graph.node("Mul", &format!("{}.half", head.name), &[&tensor, &half], &[]);
            Ok(writer.graph.node("Tanh", &format!("{}.estimate", head.name), &[&halved], &[]))
        }
    }
}
