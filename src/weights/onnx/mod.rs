//! A network as an ONNX file, for onnxruntime, TensorRT, tract and other readers.
//!
//! Input: a network's file and its model. Output: one graph with a dynamic batch: input `obs`, an output for every head, the game and
//! the self-check in the metadata.

mod proto; // the messages of the format
mod graph; // nodes and constants
mod folding; // BatchNorm in the weights before it
mod layers; // a layer -> nodes
mod board_layers; // convolutions, logits at points
mod edge_layers; // layers on the edges of K_n
mod outputs; // heads -> outputs with their meaning
mod model_file; // the whole file

pub use model_file::to_bytes;

#[cfg(test)]
#[cfg(feature = "candle")]
mod tests;
