//! Games, trees and search as kernels: the same work as [`super::cpu`], done by a [`device::Device`]. The kernels' sources are
//! under `kernels/`; Rust is the truth that they are checked against.

pub mod device;
pub mod source;
pub mod batch;
