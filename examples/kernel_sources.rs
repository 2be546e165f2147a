//! Prints all sources that are compiled for a GPU, one JSON object per line: source, headers and constants of every unit, for every
//! game with its default and some other settings, and for networks, whose kernels are specialised for each GPU generation.
//! `kernels/check_nvrtc.sh` compiles them.
//!
//!     cargo run --release --example kernel_sources > programs.jsonl

use serde_json::json;
use vecaz::batch::programs::{GAME_UNITS, program, training};
use vecaz::config::{Arch, TrainPrecision};
use vecaz::device::{Limits, Program};
use vecaz::error::Result;
use vecaz::game::ObsShape;
use vecaz::model::NetSpec;
use vecaz::net::gpu;
use vecaz::net::gpu::{Arithmetic, ElementType, MatrixInstruction};
use vecaz::registry::Registry;
use vecaz::registry::any_game;

/// Settings other than the defaults, which compile other branches of the sources or have the largest arrays.
const VARIANTS: &[(&str, &str)] = &[
    ("connect_four", "rows = 7\ncolumns = 8\nconnect = 5"),
    ("othello", "size = 6\nend = 'two_passes'"),
    ("hex", "size = 13\nswap = true"),
    ("hex", "size = 19"),
    ("gomoku", "size = 19\nrule = 'exact'\nopening = 'swap2'"),
    ("go", "size = 19"),
    ("clique", "n = 6\nk = 3\nmode = 'asymmetric'"),
    ("clique", "n = 17\nk = 4\nmode = 'avoid_clique'"),
    ("backgammon", "short_game = true\nsimple_doubles = true"),
    ("blob", "players = 8\ncards = 6"),
    ("blob", "players = 3\nfull = true"),
];

/// GPU generations: compute capability and the number of multiprocessors of one model.
const GENERATIONS: [(u32, u32); 7] =
    [(75, 40), (80, 108), (86, 84), (89, 142), (90, 132), (100, 148), (120, 170)];

/// Label, architecture, board, blocks and channels, number format, slots.
type NetworkCase = (&'static str, Arch, [usize; 3], [usize; 2], ElementType, usize);

const NETWORKS: [NetworkCase; 15] = [
    ("2x32 bf16", Arch::Resnet, [2, 6, 7], [2, 32], ElementType::Bf16, 4096),
    ("6x64 bf16 19x19", Arch::Resnet, [17, 19, 19], [6, 64], ElementType::Bf16, 4096),
    ("6x128 bf16", Arch::Resnet, [2, 6, 7], [6, 128], ElementType::Bf16, 4096),
    ("6x128 f16", Arch::Resnet, [2, 6, 7], [6, 128], ElementType::F16, 4096),
    ("6x128 tf32", Arch::Resnet, [2, 6, 7], [6, 128], ElementType::Tf32, 4096),
    ("6x128 f32", Arch::Resnet, [2, 6, 7], [6, 128], ElementType::F32, 4096),
    ("20x256 bf16 19x19", Arch::Resnet, [17, 19, 19], [20, 256], ElementType::Bf16, 1024),
    ("6x128 bf16, 16 slots", Arch::Resnet, [2, 6, 7], [6, 128], ElementType::Bf16, 16),
    ("6x128 bf16, 1 slot", Arch::Resnet, [2, 6, 7], [6, 128], ElementType::Bf16, 1),
    ("mlp 3x256 bf16", Arch::Mlp, [198, 1, 1], [3, 256], ElementType::Bf16, 4096),
    ("edge 3x64 bf16 K_14", Arch::Edge, [4, 91, 1], [3, 64], ElementType::Bf16, 4096),
    ("edge 3x64 f16 K_6", Arch::Edge, [4, 15, 1], [3, 64], ElementType::F16, 4096),
    ("edge 3x64 tf32 K_6, 16 slots", Arch::Edge, [4, 15, 1], [3, 64], ElementType::Tf32, 16),
    ("edge 6x128 f32 K_17", Arch::Edge, [4, 136, 1], [6, 128], ElementType::F32, 1024),
    ("edge 6x256 bf16 K_17", Arch::Edge, [4, 136, 1], [6, 256], ElementType::Bf16, 1024),
];

fn print_networks() -> Result<()> {
    for (label, arch, [planes, height, width], [blocks, channels], element_type, slots) in NETWORKS {
        let spec = NetSpec {
            arch,
            blocks,
            channels,
            policy_channels: 8,
            value_channels: 4,
            value_hidden: 64,
            obs: ObsShape { channels: planes, height, width },
            num_actions: if arch == Arch::Edge { height } else { height * width + 1 },
            num_players: 2,
            zero_sum_pair: true,
            ..NetSpec::default()
        };
        for (capability, multiprocessors) in GENERATIONS {
            let limits = Limits::of(capability, multiprocessors);
            let program = gpu::program(&spec, element_type, slots, limits)?;
            print_network(label, &capability.to_string(), &program);
            // Also with wgmma on Hopper.
            let arithmetic = Arithmetic { element_type, cores: MatrixInstruction::Wgmma };
            if arithmetic.on(capability).is_ok() {
                let program = gpu::program(&spec, arithmetic, slots, limits)?;
                print_network(&format!("{label}, wgmma"), &format!("{capability}a"), &program);
            }
        }
    }
    for (capability, _) in GENERATIONS {
        print_network(
            "the tensor cores' peak",
            &capability.to_string(),
            &gpu::peak_program(ElementType::F16),
        );
    }
    Ok(())
}

fn print_network(label: &str, architecture: &str, program: &Program) {
    let line = json!({
        "label": format!("network {label}"),
        "variant": false,
        "architecture": architecture,
        "unit": "net",
        "source": program.source,
        "headers": program.headers,
        "defines": program.defines,
    });
    println!("{line}");
}

fn main() -> Result<()> {
    print_networks()?;
    let defaults = Registry::built_in().names().into_iter().map(|name| (name, ""));
    for (name, options) in defaults.chain(VARIANTS.iter().copied()) {
        let table = options.parse().expect("the settings above are TOML");
        let game = any_game(name, &table)?;
        let label = format!("{name} {}", options.replace('\n', ", "));
        if game.cuda_source().is_none() {
            println!("{}", json!({ "label": label.trim(), "missing": true }));
            continue;
        }
        for unit in GAME_UNITS {
            let settings = if options.is_empty() { Settings::Default } else { Settings::Variant };
            print(label.trim(), settings, unit, &program(game.as_ref(), unit)?);
        }
    }
    // Training needs no game, except to gather samples.
    for precision in [TrainPrecision::F32, TrainPrecision::Bf16, TrainPrecision::F16] {
        print(&format!("training in {precision:?}"), Settings::Default, "train", &training(None, precision)?);
    }
    let game = any_game("hex", &toml::Table::new())?;
    print(
        "training of hex",
        Settings::Variant,
        "train",
        &training(Some(game.as_ref()), TrainPrecision::Bf16)?,
    );
    Ok(())
}

/// The settings for which a program is generated.
#[derive(Clone, Copy, PartialEq)]
enum Settings {
    /// The default game, or no game.
    Default,
    /// Other settings of a game, or a game where none is needed.
    Variant,
}

fn print(label: &str, settings: Settings, unit: &str, program: &Program) {
    let line = json!({
        "label": label,
        "variant": settings == Settings::Variant,
        "unit": unit,
        "source": program.source,
        "headers": program.headers,
        "defines": program.defines,
    });
    println!("{line}");
}
