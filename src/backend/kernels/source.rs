//! The kernel sources, which are embedded in the program, and the constants that a game gives them.
//!
//! A new game's kernels are one file `kernels/games/<name>.cuh`, with the generated `<name>_layout.cuh` beside it. For work on a
//! machine that cannot build the program, [`SourceFolder`] replaces the embedded sources by those of a folder.

use super::device::{GpuCode, Program};
use crate::batch::AnyGame;
use crate::config::TrainPrecision;
use crate::error::{Error, Result};
use crate::files::{open_regular, text_of};
use std::fs;
use std::path::PathBuf;

/// The variable that names a folder of kernel sources to compile instead of the embedded ones.
pub const FOLDER_VARIABLE: &str = "VECAZ_KERNELS";

/// Every embedded file of `kernels/`: the name by which sources include it, and its text. Sorted by name.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The files `<unit>.cu` whose kernels depend on a game's rules: [`program`] makes a program of each.
pub const GAME_UNITS: &[&str] = &["search", "passes", "batch", "gather"];

/// True if `game` has kernels.
pub fn has_game(game: &str) -> bool {
    text(&header_of(game)).is_some()
}

/// The program with the kernels of `unit`, the file `kernels/<unit>.cu`, for the rules of `game`.
///
/// # Errors
/// [`Error::Unsupported`] if the game has no kernels or the unit is not one of [`GAME_UNITS`].
pub fn program(game: &dyn AnyGame, unit: &str) -> Result<Program> {
    if !has_game(game.name()) {
        let why = "this game has no kernels; search it on the CPU";
        return Err(Error::unsupported(format!("game {} on a device", game.name()), why));
    }
    if !GAME_UNITS.contains(&unit) {
        return Err(Error::unsupported(
            format!("kernels {unit}.cu"),
            format!("expected one of {}", GAME_UNITS.join(", ")),
        ));
    }
    let includes = ["common.cuh", &header_of(game.name()), "games/defaults.cuh", &format!("{unit}.cu")];
    Ok(compose(game.name(), &includes, defines(game)))
}

/// A program that includes the files `includes` with these constants; errors call it `name`.
pub fn compose(name: &str, includes: &[&str], defines: Vec<(String, String)>) -> Program {
    Program {
        game: name.into(),
        source: includes.iter().map(|name| format!("#include \"{name}\"\n")).collect(),
        headers: FILES.iter().map(|&(name, text)| (name.into(), text.into())).collect(),
        defines,
        code: GpuCode::Portable,
    }
}

/// The program that trains a network in `precision`, with the kernels that gather samples of `game` if it has kernels.
///
/// # Errors
/// As [`program`]; none in practice, since `gather` is a unit.
pub fn training(game: Option<&dyn AnyGame>, precision: TrainPrecision) -> Result<Program> {
    let mut program = match game.filter(|game| has_game(game.name())) {
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
pub fn defines(game: &dyn AnyGame) -> Vec<(String, String)> {
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

fn header_of(game: &str) -> String {
    format!("games/{game}.cuh")
}

fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// A folder laid out as `kernels/`, whose files replace the embedded ones when a program is compiled for a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFolder(PathBuf);

impl SourceFolder {
    /// The sources in `folder`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// The folder that [`FOLDER_VARIABLE`] names; None if the variable is unset or empty.
    pub fn of_environment() -> Option<Self> {
        std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()).map(Self::at)
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }

    /// `program` with every header that is one of [`FILES`] read from this folder; other headers stay.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder is not there, or naming the first file that cannot be read: an embedded source never stands
    /// in for a missing one.
    pub fn replace_headers(&self, program: &Program) -> Result<Program> {
        fs::read_dir(&self.0).map_err(|e| Error::io(READING, &self.0, e))?;
        let headers = program.headers.iter().map(|(name, content)| {
            let content = match text(name) {
                Some(_) => {
                    let path = self.0.join(name);
                    open_regular(&path)
                        .and_then(|file| text_of(file, MAX_BYTES))
                        .map_err(|e| Error::io(READING, path, e))?
                }
                None => content.clone(),
            };
            Ok((name.clone(), content))
        });
        Ok(Program { headers: headers.collect::<Result<_>>()?, ..program.clone() })
    }
}

/// The most bytes of a source file.
const MAX_BYTES: u64 = 1 << 20;

/// The operation that errors of a [`SourceFolder`] name.
const READING: &str = "VECAZ_KERNELS: reading the kernel sources";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::any_game;

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

    /// A folder with every embedded file.
    fn copied_sources() -> (tempfile::TempDir, SourceFolder) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in FILES {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("inside the folder")).expect("created");
            fs::write(path, text).expect("written");
        }
        let sources = SourceFolder::at(folder.path());
        (folder, sources)
    }

    #[test]
    fn a_folder_replaces_the_embedded_sources() {
        let (folder, sources) = copied_sources();
        let game = any_game("hex", &toml::Table::new()).expect("a game");
        let mut embedded = program(&*game, "search").expect("kernels");
        embedded.headers.push(("of_a_test.cuh".into(), "int x;".into()));
        assert_eq!(sources.replace_headers(&embedded).expect("read"), embedded);
        fs::write(folder.path().join("games/hex.cuh"), "// another\n").expect("written");
        let replaced = sources.replace_headers(&embedded).expect("read");
        let changed: Vec<_> =
            replaced.headers.iter().filter(|header| !embedded.headers.contains(header)).collect();
        assert_eq!(changed, [&("games/hex.cuh".to_string(), "// another\n".to_string())]);
        assert_eq!(Program { headers: embedded.headers.clone(), ..replaced }, embedded);
    }

    #[test]
    fn a_missing_folder_or_file_is_named() {
        let (folder, sources) = copied_sources();
        let game = any_game("hex", &toml::Table::new()).expect("a game");
        let embedded = program(&*game, "search").expect("kernels");
        let refusal =
            |sources: &SourceFolder| sources.replace_headers(&embedded).expect_err("missing").to_string();
        let gone = folder.path().join("search/root.cuh");
        fs::remove_file(&gone).expect("removed");
        let expected = |path: &std::path::Path| {
            format!(
                "VECAZ_KERNELS: reading the kernel sources {}: No such file or directory (os error 2)",
                path.display()
            )
        };
        assert_eq!(refusal(&sources), expected(&gone));
        let nowhere = folder.path().join("nowhere");
        assert_eq!(refusal(&SourceFolder::at(&nowhere)), expected(&nowhere));
    }
}
