//! The program of a network's kernels.

use super::element_type::{Arithmetic, MatrixInstruction};
use super::layers::ForwardLayers;
use crate::device::source;
use crate::device::{GpuCode, Limits, Program};
use crate::error::Result;
use crate::model::NetSpec;

/// The program of `spec` for `slots` slots on a device of these limits.
///
/// # Errors
/// [`crate::Error::Config`] for an edge network on anything but the edges of a complete graph, [`crate::Error::Unsupported`] where the device is
/// too small or lacks the instruction.
pub fn program(
    spec: &NetSpec,
    arithmetic: impl Into<Arithmetic>,
    slots: usize,
    limits: Limits,
) -> Result<Program> {
    let arithmetic = arithmetic.into();
    let layers = ForwardLayers::new(spec, arithmetic, slots, limits)?;
    let units: &[&str] = match (&layers.head, &layers.graph) {
        (_, Some(_)) => &["net.cu", "net_edge.cu"],
        (Some(_), None) => &["net.cu", "net_tower.cu", "net_head.cu"],
        (None, None) => &["net.cu", "net_tower.cu"],
    };
    let program = source::compose("a network", units, layers.defines(arithmetic.element_type));
    let code = match arithmetic.cores {
        MatrixInstruction::Mma => GpuCode::Portable,
        MatrixInstruction::Wgmma => GpuCode::ArchSpecific,
    };
    Ok(Program { code, ..program })
}
