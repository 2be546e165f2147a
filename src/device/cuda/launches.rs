//! Launches as errors name them.

use crate::device::interface::LaunchShape;
use std::sync::Arc;

/// A launch: the program, the kernel and its shape.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) program: Arc<str>,
    pub(super) kernel: &'static str,
    pub(super) shape: LaunchShape,
}

/// A kernel with its shape, in words.
pub(super) fn describe_launch(kernel: &str, shape: LaunchShape) -> String {
    let LaunchShape { grid, block, shared } = shape;
    format!("{kernel} ({grid} blocks of {block} threads, {shared} bytes of shared memory)")
}
