//! Compares `kernels/search/layout.cuh` and `kernels/batch/layout.cuh` with the Rust types that they are generated from.

use super::arrays;
use super::batch::BatchBlock;
use super::game_slots::{DecisionQueue, GameSlots, PlayNumbers, SlotRow, SlotTask};
use super::layout;
use super::layout::{
    AdvanceCommand, BeginCommand, Leaf, ParameterBlock, RootRow, RowCounts, SetRootCommand, Totals, TreeParts,
};
use super::polls::PollHeader;
use crate::backend::decisions::{DecisionHead, SummaryHead};
use crate::config::Algorithm;
use crate::device_struct::{DeviceType, check_header};
use crate::net::gpu::slot_order;
use crate::play::plan;
use crate::search::root::RowKey;
use crate::search::{MctsSolver, SearchParams, backup, select};
use crate::simd;
use crate::tree::{self, Node, NodeKind};

/// Types of the addresses that Rust does not define.
const PREAMBLE: &str = "
union Word;      // tree.cuh
struct Summary;  // root.cuh
struct Decision; // play.cuh
";

#[test]
fn generated_header_of_the_search_kernels_is_up_to_date() {
    let definitions = [
        tree::device_constants(),
        backup::device_constants(),
        backup::VirtualLoss::definition(),
        select::device_constants(),
        plan::device_constants(),
        layout::device_constants(),
        simd::device_constants(),
        arrays::device_constants(),
        slot_order::device_constants(),
        Algorithm::definition(),
        MctsSolver::definition(),
        SearchParams::definition(),
        NodeKind::definition(),
        // Two loads of 16 bytes on a device.
        Node::definition().aligned(16),
        RowKey::definition(),
        RootRow::definition(),
        Leaf::definition(),
        RowCounts::definition(),
        TreeParts::definition(),
        ParameterBlock::definition(),
        Totals::definition(),
        SetRootCommand::definition(),
        AdvanceCommand::definition(),
        BeginCommand::definition(),
        SummaryHead::definition(),
        DecisionHead::definition(),
        DecisionQueue::definition(),
        PollHeader::definition(),
        SlotTask::definition(),
        SlotRow::definition(),
        PlayNumbers::definition(),
        GameSlots::definition(),
    ];
    check_header("search/layout.cuh", "search", PREAMBLE, &definitions);
}

#[test]
fn generated_header_of_the_batch_kernels_is_up_to_date() {
    check_header("batch/layout.cuh", "batch", "", &[BatchBlock::definition()]);
}
