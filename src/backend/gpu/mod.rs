//! Games, trees and search as kernels: the same work as [`crate::backend::cpu`], done by a [`Device`](crate::device::Device). The kernels' sources are
//! under `kernels/`; Rust is the truth that they are checked against.
//!
//! States, trees and observations stay on the device. Commands to rows are gathered ([`queue`]) and launched for many
//! rows at once ([`arrays`]); a network runs on the host, through [`Backend`](super::Backend), or where the observations are
//! ([`take_network`](super::DevicePasses::take_network), [`simulate_constant_net`](super::DevicePasses::simulate_constant_net)), which copies one small block for any number of passes.

pub mod memory; // what a plan takes on a device
#[cfg(test)]
mod generated;
pub mod layout; // the structs that kernels share with Rust, sizes of arrays
pub mod arrays; // the arrays, and a launcher for each kernel
pub mod queue; // commands to rows, gathered
pub mod batch; // games without trees
pub mod game_slots; // self-play driven by the device
mod polls; // its counts and decisions on their way to the host
mod rows; // all of it together, with failures
mod packing; // several arrays in one buffer
mod snapshots; // one row between device and host
mod kernel_backend; // rows as a backend
mod open; // a backend on a GPU

pub use kernel_backend::KernelBackend;
pub use open::cuda_backend;
