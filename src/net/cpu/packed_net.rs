//! A network packed for the CPU's kernels.

use super::kernel_set::KernelSet;
use super::pack::PackedLayers;
use crate::model::{Model, Tower};

/// What [`super::CpuNet`]s of one network share.
pub(super) struct Net {
    pub(super) model: Model,
    pub(super) tower: Tower,
    pub(super) packed: PackedLayers,
    pub(super) kernel_set: KernelSet,
}
