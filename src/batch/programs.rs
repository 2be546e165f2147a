//! The programs of the kernels that depend on a game's rules, and the constants that a game gives them.
//!
//! A built-in game's kernels are one file `kernels/games/<name>.cuh`, with the generated `<name>_layout.cuh` beside it; another game brings
//! its own files ([`crate::game::CudaSource`]).

use crate::batch::ErasedRules;
use crate::config::TrainPrecision;
use crate::device::Program;
use crate::device::source::compose;
use crate::error::{Error, Result};

/// The files `<unit>.cu` whose kernels depend on a game's rules: [`program`] makes a program of each.
pub const GAME_UNITS: &[&str] = &["search", "passes", "batch", "gather"];

/// The program with the kernels of `unit`, the file `kernels/<unit>.cu`, for the rules of `game`.
///
/// # Errors
/// [`Error::Unsupported`] if the game has no kernels or the unit is not one of [`GAME_UNITS`].
pub fn program(game: &dyn ErasedRules, unit: &str) -> Result<Program> {
    let Some(rules) = game.cuda_source() else {
        let why = "this game has no kernels; search it on the CPU";
        return Err(Error::unsupported(format!("game {} on a device", game.name()), why));
    };
    if !GAME_UNITS.contains(&unit) {
        return Err(Error::unsupported(
            format!("kernels {unit}.cu"),
            format!("expected one of {}", GAME_UNITS.join(", ")),
        ));
    }
    let includes = ["common.cuh", rules.header, "games/defaults.cuh", &format!("{unit}.cu")];
    let mut program = compose(game.name(), &includes, defines(game));
    program.headers.extend(rules.files.iter().map(|file| (file.name.into(), file.text.into())));
    Ok(program)
}

/// The program that trains a network in `precision`, with the kernels that gather samples of `game` if it has kernels.
///
/// # Errors
/// As [`program`]; none in practice, since `gather` is a unit.
pub fn training(game: Option<&dyn ErasedRules>, precision: TrainPrecision) -> Result<Program> {
    let mut program = match game.filter(|game| game.cuda_source().is_some()) {
        Some(game) => program(game, "gather")?,
        None => compose("training", &["common.cuh"], Vec::new()),
    };
    program.source += "#include \"train.cu\"\n";
    program.defines.push(("VZ_TRAIN_FORMAT".into(), (precision as u32).to_string()));
    Ok(program)
}

/// The constants of `game`: its sizes, each of its options as `VZ_OPT_..`, and the bytes of its first state.
///
/// A number or bool K = V is `VZ_OPT_K=V`, a string `VZ_OPT_K_V=1` with all but letters and digits replaced by `_`.
pub fn defines(game: &dyn ErasedRules) -> Vec<(String, String)> {
    let sizes = game.sizes();
    let numbers = [
        ("VZ_PLAYERS", sizes.num_players),
        ("VZ_ACTIONS", sizes.num_actions),
        ("VZ_MAX_LEGAL", sizes.max_legal),
        ("VZ_CHANCE", sizes.num_chance),
        ("VZ_CHANCE_RUN", sizes.max_chance_run),
        ("VZ_NUM_EDGES", sizes.num_edges()),
        ("VZ_TREE_EDGES", sizes.tree_edges()),
        ("VZ_OBS_CHANNELS", sizes.obs.channels),
        ("VZ_OBS_HEIGHT", sizes.obs.height),
        ("VZ_OBS_WIDTH", sizes.obs.width),
        ("VZ_MAX_PLIES", sizes.max_plies),
        ("VZ_ZERO_SUM", usize::from(sizes.zero_sum)),
        ("VZ_HIDDEN", usize::from(sizes.hidden_information)),
        ("VZ_USES_HISTORY", usize::from(sizes.uses_history)),
        ("VZ_STATE_BYTES", game.state_size()),
    ];
    let bytes: Vec<String> = game.init().iter().map(u8::to_string).collect();
    let mut all: Vec<(String, String)> =
        numbers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    all.push(("VZ_SYMMETRIES".into(), format!("{}ull", sizes.num_symmetries)));
    all.push(("VZ_INIT_STATE".into(), bytes.join(",")));
    all.extend(game.options().iter().filter_map(|(key, value)| option_define(key, value)));
    all
}

/// One option as a constant; None for a list or a table: no game has such an option.
fn option_define(key: &str, value: &toml::Value) -> Option<(String, String)> {
    let name = format!("VZ_OPT_{}", as_identifier(key));
    match value {
        toml::Value::Integer(x) => Some((name, format!("({x})"))),
        toml::Value::Float(x) => Some((name, format!("({:?}f)", *x as f32))),
        toml::Value::Boolean(x) => Some((name, u8::from(*x).to_string())),
        toml::Value::String(x) => Some((format!("{name}_{}", as_identifier(x)), "1".into())),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

fn as_identifier(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    fn value_of(game: &str, options: &str, name: &str) -> Option<String> {
        let game = any_game(game, &options.parse().expect("TOML")).expect(options);
        defines(&*game).into_iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    #[test]
    fn sizes_and_options_become_constants() {
        let some = |text: &str| Some(text.to_string());
        assert_eq!(value_of("connect_four", "rows = 5", "VZ_OPT_ROWS"), some("(5)"));
        assert_eq!(value_of("connect_four", "columns = 9", "VZ_ACTIONS"), some("9"));
        assert_eq!(value_of("connect_four", "", "VZ_STATE_BYTES"), some("24"));
        assert_eq!(value_of("go", "komi = -0.1", "VZ_OPT_KOMI"), some("(-0.1f)"));
        assert_eq!(value_of("hex", "swap = true", "VZ_OPT_SWAP"), some("1"));
        assert_eq!(value_of("gomoku", "opening = 'swap2'", "VZ_OPT_OPENING_SWAP2"), some("1"));
        assert_eq!(value_of("gomoku", "", "VZ_OPT_OPENING_SWAP2"), None);
        assert_eq!(value_of("tic_tac_toe", "", "VZ_INIT_STATE"), some("0,0,0,0"));
        assert_eq!(value_of("clique", "n = 17", "VZ_SYMMETRIES"), some("355687428096000ull"));
    }

    #[test]
    fn programs_are_refused_in_a_sentence() {
        let game = any_game("connect_four", &toml::Table::new()).expect("a game");
        let error = program(&*game, "no_such_unit").expect_err("no such unit").to_string();
        assert_eq!(error, "kernels no_such_unit.cu: expected one of search, passes, batch, gather");
    }
}
