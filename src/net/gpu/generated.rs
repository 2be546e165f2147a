//! Compares `kernels/net/layout.cuh` and `kernels/pooling/layout.cuh` with the Rust types that they are generated from.

use super::blocks::{Boards, LayerBlock, PoolArrays, ValuesBlock};
use super::pooling_block::PoolingBlock;
use crate::device_struct::{DeviceType, check_header};
use crate::model::{ChannelEffect, PoolStatistics};

#[test]
fn generated_header_of_the_forward_kernels_is_up_to_date() {
    let definitions = [
        Boards::definition().base("BoardRange"),
        LayerBlock::definition(),
        ValuesBlock::definition(),
        PoolArrays::definition(),
    ];
    check_header("net/layout.cuh", "net", "", &definitions);
}

#[test]
fn generated_header_of_the_pooling_kernels_is_up_to_date() {
    let definitions = [PoolStatistics::definition(), ChannelEffect::definition(), PoolingBlock::definition()];
    check_header("pooling/layout.cuh", "pooling", "", &definitions);
}
