//! The tiles and slots that are chosen by computed cost, for Connect Four's networks on an H200.

use super::layers::ForwardLayers;
use super::network::SlotOrder;
use super::{Arithmetic, ElementType, ForwardLayer, MatrixInstruction};
use crate::config::{Arch, NetConfig};
use crate::device::Limits;
use crate::model::NetSpec;

/// Blocks, channels and the instruction.
const NETWORKS: [(usize, usize, MatrixInstruction); 4] = [
    (2, 32, MatrixInstruction::Mma),
    (6, 64, MatrixInstruction::Mma),
    (6, 128, MatrixInstruction::Mma),
    (6, 128, MatrixInstruction::Wgmma),
];

fn h200() -> Limits {
    Limits::of(90, 132)
}

fn spec(blocks: usize, channels: usize) -> NetSpec {
    let game = crate::registry::any_game("connect_four", &toml::Table::new()).expect("registered");
    let net = NetConfig { arch: Arch::Resnet, blocks, channels, ..NetConfig::default() };
    NetSpec::new(&net, &game.sizes())
}

#[test]
fn no_tile_costs_more_than_a_few_percent_above_the_cheapest_and_programs_are_few() {
    for (blocks, channels, cores) in NETWORKS {
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
        let arithmetic = Arithmetic { element_type: ElementType::Bf16, cores: MatrixInstruction::Mma };
        ForwardLayers::new(&spec(blocks, channels), arithmetic, slots, h200()).expect("fits").order
    };
    // One wave takes as long with fewer rows; of many, 9 % fewer rows are fewer waves.
    assert_eq!([1, 16, 128].map(|slots| order(6, 128, slots)), [SlotOrder::ByLeaf; 3]);
    assert_eq!([1, 16, 128].map(|slots| order(2, 32, slots)), [SlotOrder::ByLeaf; 3]);
    assert_eq!([4096, 16_384, 32_768].map(|slots| order(6, 128, slots)), [SlotOrder::Compact; 3]);
    assert_eq!(order(2, 32, 32_768), SlotOrder::Compact);
}
