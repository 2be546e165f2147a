//! Prints what is compiled for a GPU, one JSON object a line: the source, headers and constants of every unit for every
//! game, at its default settings and some others. `kernels/check_nvrtc.sh` compiles them.
//!
//!     cargo run --release --example kernel_sources > programs.jsonl

use serde_json::json;
use vecaz::backend::kernels::device::Program;
use vecaz::backend::kernels::source::{GAME_UNITS, has_game, program, training};
use vecaz::batch::any_game;
use vecaz::config::TrainPrecision;
use vecaz::error::Result;
use vecaz::game::NAMES;

/// Settings beside the default ones, which give other branches of the sources or the largest arrays.
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

fn main() -> Result<()> {
    let defaults = NAMES.iter().map(|&name| (name, ""));
    for (name, options) in defaults.chain(VARIANTS.iter().copied()) {
        let table = options.parse().expect("the settings above are TOML");
        let game = any_game(name, &table)?;
        let label = format!("{name} {}", options.replace('\n', ", "));
        if !has_game(name) {
            println!("{}", json!({ "label": label.trim(), "missing": true }));
            continue;
        }
        for unit in GAME_UNITS {
            print(label.trim(), !options.is_empty(), unit, &program(game.as_ref(), unit)?);
        }
    }
    // Needs no game, and goes with those that gather samples.
    for precision in [TrainPrecision::F32, TrainPrecision::Bf16, TrainPrecision::F16] {
        print(&format!("training in {precision:?}"), false, "train", &training(None, precision)?);
    }
    let game = any_game("hex", &toml::Table::new())?;
    print("training of hex", true, "train", &training(Some(game.as_ref()), TrainPrecision::Bf16)?);
    Ok(())
}

fn print(label: &str, variant: bool, unit: &str, program: &Program) {
    let line = json!({
        "label": label,
        "variant": variant,
        "unit": unit,
        "source": program.source,
        "headers": program.headers,
        "defines": program.defines,
    });
    println!("{line}");
}
