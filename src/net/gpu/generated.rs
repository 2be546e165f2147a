//! Compares `kernels/net/layout.cuh` with the Rust types that it is generated from.

use super::blocks::{Boards, LayerBlock, ValuesBlock};
use crate::device_struct::{DeviceType, check_header};

#[test]
fn generated_header_of_the_forward_kernels_is_up_to_date() {
    let definitions =
        [Boards::definition().base("BoardRange"), LayerBlock::definition(), ValuesBlock::definition()];
    check_header("net/layout.cuh", "net", "", &definitions);
}
