//! Compares `kernels/train/layout.cuh` and `kernels/gather/layout.cuh` with the Rust types that they are generated from.

use super::samples::GatherBlock;
use super::step::{LossBlock, Settings, UpdateReport};
use crate::device_struct::{DeviceType, check_header};
use crate::model;
use crate::model::Connectivity;
use crate::net::gpu_train::blocks::{
    Activation, LinearBlock, MessageBlock, NormBlock, TriangleTerms, UpdateBlock, WeightGradientBlock,
};
use crate::net::gpu_train::constants;
use crate::net::gpu_train::layers::LinearShape;
use crate::net::gpu_train::logits::LogitLayout;

/// Types of the addresses that Rust does not define.
const PREAMBLE: &str = "
// A number of the activations; format.cuh has the definition.
#if VZ_TRAIN_FORMAT == 0
typedef f32 Element;
#else
struct Element;
#endif
struct LinearShape; // operands.cuh
";

#[test]
fn generated_header_of_the_training_kernels_is_up_to_date() {
    let definitions = [
        constants::definition(),
        model::device_constants(),
        Connectivity::definition(),
        LinearShape::definition().base("LinearShapeFields"),
        Settings::definition(),
        UpdateReport::definition(),
        LogitLayout::definition(),
        LossBlock::definition(),
        Activation::definition(),
        LinearBlock::definition(),
        WeightGradientBlock::definition(),
        NormBlock::definition(),
        TriangleTerms::definition(),
        MessageBlock::definition(),
        UpdateBlock::definition(),
    ];
    check_header("train/layout.cuh", "train", PREAMBLE, &definitions);
}

#[test]
fn generated_header_of_the_gathering_kernel_is_up_to_date() {
    check_header("gather/layout.cuh", "gather", "", &[GatherBlock::definition()]);
}
