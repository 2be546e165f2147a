//! A graph under construction: nodes, and constants in the number format of the file.
//!
//! In f16 the whole graph computes in f16, between casts of its input and its outputs. In bf16 only the matrices are stored in it and are
//! cast to f32 before their use, since ONNX has no convolution in bf16 before operator set 22.

use super::proto::{AttributeProto, NodeProto, TensorProto, attribute_type, data_type};
use crate::error::{Error, Result};
use crate::weights::NumberFormat;

/// An attribute of a node.
#[derive(Clone, Copy)]
pub enum Attribute<'a> {
    /// A number.
    Int(&'static str, i64),
    /// A list of numbers.
    Ints(&'static str, &'a [i64]),
}

/// Nodes and constants. Their tensors have a slash before their name, so that names of inputs and outputs are free.
pub struct GraphBuilder {
    numbers: NumberFormat,
    /// The nodes so far.
    pub nodes: Vec<NodeProto>,
    /// The constants so far.
    pub constants: Vec<TensorProto>,
}

impl GraphBuilder {
    /// An empty graph with numbers in this format.
    pub fn new(numbers: NumberFormat) -> Self {
        Self { numbers, nodes: Vec::new(), constants: Vec::new() }
    }

    /// Adds the operation `op` called `name`; gives the name of what it makes.
    pub fn node(&mut self, op: &str, name: &str, inputs: &[&str], attributes: &[Attribute<'_>]) -> String {
        let output = format!("/{name}");
        let attribute = |attribute: &Attribute<'_>| match *attribute {
            Attribute::Int(name, i) => {
                AttributeProto { name: name.into(), i: Some(i), ints: vec![], r#type: attribute_type::INT }
            }
            Attribute::Ints(name, ints) => AttributeProto {
                name: name.into(),
                i: None,
                ints: ints.to_vec(),
                r#type: attribute_type::INTS,
            },
        };
        self.nodes.push(NodeProto {
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![output.clone()],
            name: name.into(),
            op_type: op.into(),
            attribute: attributes.iter().map(attribute).collect(),
        });
        output
    }

    /// A constant of integers: a list of indices or lengths.
    pub fn integers(&mut self, name: &str, data: &[i64]) -> String {
        let bytes = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(name, &[data.len()], data_type::INT64, bytes)
    }

    /// The constant with the number of a channel, where a slice begins or ends.
    pub fn channel(&mut self, channel: usize) -> String {
        self.integers(&format!("channel_{channel}"), &[channel as i64])
    }

    /// The constant with the axis of channels.
    pub fn channel_axis(&mut self) -> String {
        self.integers("channel_axis", &[1])
    }

    /// A constant of few numbers, such as biases.
    ///
    /// # Errors
    /// [`Error::NotFinite`]; [`Error::Unsupported`] for a number beyond the range of the format.
    pub fn vector(&mut self, name: &str, shape: &[usize], data: &[f32]) -> Result<String> {
        let numbers = match self.numbers {
            NumberFormat::F16 => NumberFormat::F16,
            NumberFormat::F32 | NumberFormat::Bf16 => NumberFormat::F32,
        };
        let bytes = encode(numbers, name, data)?;
        Ok(self.constant(name, shape, element_type(numbers), bytes))
    }

    /// A weight matrix, in the number format of the file.
    ///
    /// # Errors
    /// As [`GraphBuilder::vector`].
    pub fn matrix(&mut self, name: &str, shape: &[usize], data: &[f32]) -> Result<String> {
        let bytes = encode(self.numbers, name, data)?;
        let stored = self.constant(name, shape, element_type(self.numbers), bytes);
        Ok(match self.numbers {
            NumberFormat::Bf16 => self.cast(&format!("{name}.f32"), &stored, NumberFormat::F32),
            NumberFormat::F32 | NumberFormat::F16 => stored,
        })
    }

    /// `x` as the numbers with which the graph computes.
    pub fn input(&mut self, x: &str) -> String {
        match self.numbers {
            NumberFormat::F16 => self.cast(&format!("{x}.f16"), x, NumberFormat::F16),
            NumberFormat::F32 | NumberFormat::Bf16 => x.into(),
        }
    }

    /// Makes `x` the output `name`, in f32.
    pub fn output(&mut self, name: &str, x: &str) {
        if self.numbers == NumberFormat::F16 {
            let cast = self.cast(&format!("{name}.f32"), x, NumberFormat::F32);
            return self.rename(&cast, name);
        }
        self.rename(x, name);
    }

    fn cast(&mut self, name: &str, x: &str, numbers: NumberFormat) -> String {
        self.node("Cast", name, &[x], &[Attribute::Int("to", element_type(numbers).into())])
    }

    fn rename(&mut self, from: &str, to: &str) {
        for node in &mut self.nodes {
            let names = node.input.iter_mut().chain(&mut node.output);
            names.filter(|name| *name == from).for_each(|name| *name = to.into());
        }
    }

    fn constant(&mut self, name: &str, shape: &[usize], data_type: i32, raw_data: Vec<u8>) -> String {
        let (name, dims) = (format!("/{name}"), shape.iter().map(|&len| len as i64).collect());
        // Those of the graph K_n are the same in every block.
        if !self.constants.iter().any(|constant| constant.name == name) {
            self.constants.push(TensorProto { dims, data_type, name: name.clone(), raw_data });
        }
        name
    }
}

/// The numbers of constant `name`, which may have become infinite with BatchNorm in them.
fn encode(numbers: NumberFormat, name: &str, data: &[f32]) -> Result<Vec<u8>> {
    match data.iter().find(|x| !x.is_finite()) {
        Some(&value) => Err(Error::NotFinite { what: format!("tensor {name} with BatchNorm in it"), value }),
        None => numbers.encode(name, data),
    }
}

fn element_type(numbers: NumberFormat) -> i32 {
    match numbers {
        NumberFormat::F32 => data_type::FLOAT,
        NumberFormat::Bf16 => data_type::BFLOAT16,
        NumberFormat::F16 => data_type::FLOAT16,
    }
}
