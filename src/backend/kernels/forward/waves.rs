//! The computed waves and slots of Connect Four's networks on an H200, as `docs/gpu-waves.md` lists them.

use super::layers::ForwardLayers;
use super::slot_order::LIVE_SHARES;
use super::{Arithmetic, ElementType, ForwardLayer};
use crate::backend::kernels::network::SlotOrder;
use crate::config::{Arch, NetConfig, TensorCores};
use crate::device::Limits;
use crate::model::NetSpec;

const DOCUMENT: &str = include_str!("../../../../docs/gpu-waves.md");

/// Blocks, channels, the instruction, and for each number of slots the rows and columns of the tower's tile before tiles were chosen
/// by cost: the largest that leaves a block for every multiprocessor.
const NETWORKS: [(usize, usize, TensorCores, [[usize; 2]; 4]); 4] = [
    (2, 32, TensorCores::Mma, [[16, 16], [32, 32], [256, 32], [256, 32]]),
    (6, 64, TensorCores::Mma, [[16, 16], [32, 32], [256, 64], [256, 64]]),
    (6, 128, TensorCores::Mma, [[16, 16], [64, 64], [128, 128], [128, 128]]),
    (6, 128, TensorCores::Wgmma, [[64, 16], [64, 64], [128, 128], [128, 128]]),
];
const SLOTS: [usize; 4] = [1, 128, 1024, 4096];

fn h200() -> Limits {
    Limits::of(90, 132)
}

fn spec(blocks: usize, channels: usize) -> NetSpec {
    let game = crate::batch::any_game("connect_four", &toml::Table::new()).expect("registered");
    let net = NetConfig { arch: Arch::Resnet, blocks, channels, ..NetConfig::default() };
    NetSpec::new(&net, &game.sizes())
}

/// Tile, blocks, waves and thousands of cycles of the tower's layer.
fn facts(layer: &ForwardLayer, rows: usize) -> String {
    let [tile_rows, columns] = layer.block_shape();
    let (grid, waves) = (layer.launch_shape(rows).grid, layer.waves(rows, h200()));
    format!("{tile_rows} x {columns} | {grid} | {waves:.2} | {:.1}", layer.cycles(rows, h200()) / 1e3)
}

fn table() -> String {
    let mut lines = vec![
        "| network | N | tile before | blocks | waves | kcycles | tile now | blocks | waves | kcycles | slots evaluated |"
            .to_string(),
        "|---|---|---|---|---|---|---|---|---|---|---|".to_string(),
    ];
    for (blocks, channels, cores, before) in NETWORKS {
        let arithmetic = Arithmetic { element_type: ElementType::Bf16, cores };
        for (slots, shape) in SLOTS.into_iter().zip(before) {
            let layers =
                ForwardLayers::new(&spec(blocks, channels), arithmetic, slots, h200()).expect("fits");
            let candidates = ForwardLayer::candidates(layers.tower.spec, h200()).expect("fits");
            let old = candidates.iter().find(|layer| layer.block_shape() == shape).expect("a candidate");
            let rows = 42 * slots;
            let live = match layers.order {
                SlotOrder::ByLeaf => slots as f64,
                SlotOrder::Compact => LIVE_SHARES.map(|share| share * slots as f64 / 4.0).iter().sum(),
            };
            let instruction = if cores == TensorCores::Wgmma { " wgmma" } else { "" };
            let (old, new) = (facts(old, rows), facts(&layers.tower, rows));
            lines.push(format!("| {blocks}x{channels}{instruction} | {slots} | {old} | {new} | {live:.0} |"));
        }
    }
    lines.join("\n")
}

#[test]
fn the_document_has_the_computed_table() {
    let table = table();
    assert!(DOCUMENT.contains(&table), "docs/gpu-waves.md should have:\n{table}");
}

#[test]
fn no_tile_costs_more_than_a_few_percent_above_the_cheapest_and_programs_are_few() {
    for (blocks, channels, cores, _) in NETWORKS {
        let arithmetic = Arithmetic { element_type: ElementType::Bf16, cores };
        let spec = spec(blocks, channels);
        let mut programs = Vec::new();
        for slots in (0..17).map(|power| 1 << power) {
            let layers = ForwardLayers::new(&spec, arithmetic, slots, h200()).expect("fits");
            let all = ForwardLayer::candidates(layers.tower.spec, h200()).expect("fits");
            let rows = 42 * layers.boards;
            let cycles = |layer: &ForwardLayer| layer.cycles(rows, h200());
            let lowest = all.iter().map(cycles).fold(f64::INFINITY, f64::min);
            assert!(cycles(&layers.tower) <= 1.03 * lowest, "{slots} slots of {spec:?}");
            let defines = layers.defines(ElementType::Bf16);
            if !programs.contains(&defines) {
                programs.push(defines);
            }
        }
        assert!(programs.len() <= 11, "{} programs for {blocks}x{channels}", programs.len());
    }
}

#[test]
fn slots_are_compact_where_whole_waves_are_saved() {
    let order = |blocks, channels, slots| {
        let arithmetic = Arithmetic { element_type: ElementType::Bf16, cores: TensorCores::Mma };
        ForwardLayers::new(&spec(blocks, channels), arithmetic, slots, h200()).expect("fits").order
    };
    // One wave takes as long with fewer rows; of many, 9 % fewer rows are fewer waves.
    assert_eq!([1, 16, 128].map(|slots| order(6, 128, slots)), [SlotOrder::ByLeaf; 3]);
    assert_eq!([1, 16, 128].map(|slots| order(2, 32, slots)), [SlotOrder::ByLeaf; 3]);
    assert_eq!([4096, 16_384, 32_768].map(|slots| order(6, 128, slots)), [SlotOrder::Compact; 3]);
    assert_eq!(order(2, 32, 32_768), SlotOrder::Compact);
}
