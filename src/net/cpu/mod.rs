//! The fused CPU forward of a [`crate::model::Tower`]. [`super::reference`] is the truth to which tests compare it.
//!
//! A chunk of boards small enough for the L2 cache goes through the whole network, stem to heads, before the next one
//! starts. Activations lie as `[position, board, channel]`, so each output position and tap on the board is a small matrix
//! product read in place: no im2col, no padding squares, BatchNorm, residual sum and relu done while sums are in
//! registers. One kernel (`tile`) does every layer; a linear layer on a board is one output position with a tap for
//! every square. If matrices are multiplied (`amx`) and boards fill whole tiles, activations are in the blocked
//! layout, `[position, channel block, board, 16 words]`, and a layer goes over all rows with one block of its weights after the other;
//! its stem alone reads im2col patches (`im2col`).
//!
//! Single-threaded on purpose: callers run one evaluator per thread ([`crate::net::Network::fork`]) on their own rows. The result is
//! batch-invariant to the bit: each sum takes its products in one fixed order, whatever the batch.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
mod aarch64_bf16;
#[cfg(target_arch = "aarch64")]
mod aarch64_int8;
#[cfg(target_arch = "aarch64")]
mod aarch64_pairs;
#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod amx_epilogue;
#[cfg(target_arch = "x86_64")]
mod amx_mma;
#[cfg(target_arch = "x86_64")]
mod amx_strip;
mod im2col;
mod bf16;
mod board;
mod chunk;
mod cpu_net;
mod edge_heads;
mod format;
mod forward;
mod int8;
mod layer;
mod message_passing;
mod observe;
mod pack;
mod packed_net;
mod kernel_set;
mod kernels;
mod portable;
mod tile;
mod tile_loop;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_bf16;
#[cfg(target_arch = "x86_64")]
mod x86_int8;

pub use cpu_net::CpuNet;
pub use kernel_set::{available_isas, check_precision, choose_isa};

#[cfg(test)]
mod tests;
