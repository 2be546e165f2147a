//! The messages of ONNX files, with only those fields that vecaz writes and their numbers in the format.
//!
//! The source is `onnx/onnx.proto` of ONNX 1.8 (<https://github.com/onnx/onnx>, Apache-2.0), which defines IR version 7. It is of the
//! second version of protocol buffers: lists of numbers are not packed, and a number is written even if it is 0, as not every reader takes
//! the other form. A `oneof` with one used member is written as an optional field of its number, which gives the same bytes.

use prost::Message;

/// The version of the format.
pub const IR_VERSION: i64 = 7;
/// The version of the operators: the oldest that has all that are used here. Those that are used here mean the same up to version 17.
pub const OPERATOR_SET: i64 = 13;

/// Types of elements, `TensorProto.DataType`.
pub mod data_type {
    /// 32-bit floats.
    pub const FLOAT: i32 = 1;
    /// 64-bit integers.
    pub const INT64: i32 = 7;
    /// IEEE half precision.
    pub const FLOAT16: i32 = 10;
    /// The upper 16 bits of 32-bit floats.
    pub const BFLOAT16: i32 = 16;
}

/// Types of attributes, `AttributeProto.AttributeType`.
pub mod attribute_type {
    /// An integer.
    pub const INT: i32 = 2;
    /// A list of integers.
    pub const INTS: i32 = 7;
}

/// A whole file.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// [`IR_VERSION`].
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The program that wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Its version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// A number that grows with newer models of one name.
    #[prost(int64, tag = "5")]
    pub model_version: i64,
    /// A text for people.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// [`OPERATOR_SET`].
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Texts by name.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A set of operators; the standard one has an empty domain.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Its version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A named text.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The text.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A graph of operations.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The operations, each after those that it reads.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// The inputs.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// The outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// An operation.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// The names of what it reads.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// The names of what it makes.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// The attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
}

/// An attribute of an operation.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value of an integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// The value of a list of integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// One of [`attribute_type`].
    #[prost(int32, tag = "20")]
    pub r#type: i32,
}

/// A constant.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Lengths of the axes.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// One of [`data_type`].
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Its name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// The elements, row-major and little-endian.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

/// An input or output.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Elements and shape.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
    /// Its meaning.
    #[prost(string, tag = "3")]
    pub doc_string: String,
}

/// The type of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// That of a tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorType>,
}

/// The type of a tensor, `TypeProto.Tensor`.
#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    /// One of [`data_type`].
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// The shape of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// The axes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// The length of an axis, `TensorShapeProto.Dimension`: a number or a name.
#[derive(Clone, PartialEq, Message)]
pub struct Dimension {
    /// A fixed length.
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
    /// The name of a length that the caller chooses.
    #[prost(string, optional, tag = "2")]
    pub dim_param: Option<String>,
}
