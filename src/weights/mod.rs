//! Network files: safetensors with weights, a description for other programs, and self-check vectors; the same network as ONNX; and
//! weights that another program wrote.
//!
//! Input: a game, a network's sizes and weights. Output: a file that vecaz, PyTorch and readers of ONNX load, and back. Independent of
//! training and search.
//!
//! A file holds the tensors of [`crate::model::Model::params`] under their names, three tensors of the self-check
//! (`selfcheck.obs [8, F]`, `selfcheck.logits [8, A]`, `selfcheck.values [8, P]`), and one metadata entry `vecaz`: the
//! [`NetworkHeader`] as JSON.

mod number_format; // f32, bf16, f16
mod arrays; // named arrays <-> safetensors
mod evaluated; // which positions a network evaluates
mod describe; // a game in words, action names, observations
mod net_file; // the file of one network
#[cfg(feature = "onnx")]
mod onnx; // a network as an ONNX file
mod export; // files for other programs
mod import; // weights that another program wrote
mod target_network; // the part that predicts a target of a game's own
mod pack; // a network for self-play on the CPU

pub use arrays::{load_arrays, parse_arrays, save_arrays, serialize_arrays};
pub use evaluated::EvaluatedPositions;
pub use export::{FileFormat, export};
pub use import::{Import, ImportedFile};
pub use net_file::{FileTemplate, NetFile, NetworkHeader, SelfCheck, TOLERANCE};
pub use number_format::NumberFormat;
pub use pack::pack;
pub use target_network::target_network;

#[cfg(test)]
mod tests;
