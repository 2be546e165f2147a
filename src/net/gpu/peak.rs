//! The program that measures the device's peak rate of products.

use super::element_type::ElementType;
use crate::device::Program;
use crate::device::source;

/// Threads of a block of [`peak_program`].
pub const PEAK_BLOCK: u32 = 256;
/// Products of 16-bit numbers that a warp adds up in a round of [`peak_program`].
pub const PEAK_PRODUCTS: u64 = PEAK_CHAINS * (16 * 8 * 16);
/// Independent sums of a warp of it, which hide the instruction's latency.
const PEAK_CHAINS: u64 = 16;

/// The program of kernel `measure_peak(out, rounds)`: [`PEAK_BLOCK`] threads a block, of which each warp adds up
/// [`PEAK_PRODUCTS`] products of `numbers` a round and each thread writes one float to `out`.
pub fn peak_program(element_type: ElementType) -> Program {
    let defines = [
        ("VZ_ELEMENT_TYPE", element_type.name().into()),
        ("VZ_THREADS", PEAK_BLOCK.to_string()),
        ("VZ_CHAINS", PEAK_CHAINS.to_string()),
    ];
    source::compose("a product", &["net_peak.cu"], defines.map(|(name, value)| (name.into(), value)).into())
}
