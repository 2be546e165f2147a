//! What a page shows of a run: settings, epochs, ladder and some of its games.

use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::error::{Error, Result};
use crate::eval::ladder::Ladder;
use crate::files::canonical_path;
use crate::game::view::Viewer;
use crate::game::{Turn, result_text, without_minus_zero};
use crate::play::FinishedGame;
use crate::registry::Registry;
use crate::report::comparison::ComparedRun;
use crate::report::games::ReportGame;
use crate::report::metrics;
use crate::report::tallies::Tallies;
use crate::run::folder::is_unstarted;
use crate::run::manifest::Manifest;
use crate::source::saved_layers;
use crate::words::count;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run that was read.
pub struct RunData {
    /// Its folder.
    pub dir: PathBuf,
    /// Its rules.
    pub game: Arc<dyn AnyGame>,
    /// What the page shows.
    pub shown: ComparedRun,
}

impl RunData {
    /// The run in `dir` with so many games.
    ///
    /// # Errors
    /// [`Error::Format`] if `dir` has no run or a file is damaged, [`Error::Io`], those of the configuration.
    pub fn read(dir: &Path, registry: &Registry, games: usize) -> Result<Self> {
        let config = saved_layers(dir)?.resolve()?;
        let game = registry.game_of(&config)?;
        let full = canonical_path(dir).map_err(|e| Error::io("opening", dir, e))?;
        let name = full.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let last = if is_unstarted(dir)? { None } else { LastGames::read(dir)? };
        let has_epochs = dir.join(metrics::FILE_NAME).exists();
        let shown = ComparedRun {
            name,
            config,
            records: if has_epochs { metrics::read_records(dir)? } else { Vec::new() },
            ladder: Ladder::read(dir)?,
            games: last.as_ref().map_or_else(|| Ok(Vec::new()), |last| last.shown(&game, games))?,
            tallies: last.map_or(Ok(None), |last| last.tallies(&game))?,
        };
        Ok(Self { dir: dir.to_path_buf(), game, shown })
    }
}

/// The runs as a page shows them: by the names of their folders, or by their whole paths where two are equal.
pub fn with_different_names(runs: Vec<RunData>) -> Vec<ComparedRun> {
    let names: Vec<String> = runs.iter().map(|run| run.shown.name.clone()).collect();
    let is_single = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let named = |(number, run): (usize, RunData)| {
        let path = run.dir.display().to_string();
        let is_repeated = names.iter().take(number).any(|name| *name == run.shown.name);
        let name = match (is_single(&run.shown.name), is_repeated) {
            (true, _) => run.shown.name.clone(),
            (false, false) => path,
            (false, true) => format!("{path} ({})", number + 1),
        };
        ComparedRun { name, ..run.shown }
    };
    runs.into_iter().enumerate().map(named).collect()
}

/// The games of a run's last epoch with games.
struct LastGames {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl LastGames {
    /// Those of the run in `dir`, if it has any.
    fn read(dir: &Path) -> Result<Option<Self>> {
        Manifest::with_current(dir, |manifest| {
            let last = manifest.games().pop();
            last.map(|name| Ok(Self { path: dir.join(&name), bytes: manifest.read(&name)? })).transpose()
        })
    }

    fn lines(&self) -> Vec<&[u8]> {
        self.bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect()
    }

    /// The epoch's number.
    fn epoch(&self) -> String {
        let stem = self.path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        stem.replace("epoch-", "").trim_start_matches('0').to_string()
    }

    /// What `read` makes of the game in line `index`.
    fn game<T>(&self, index: usize, line: &[u8], read: impl FnOnce(&FinishedGame) -> Result<T>) -> Result<T> {
        let wrong = |what: String| Error::format(&self.path, format!("line {}: {what}", index + 1));
        let stored: FinishedGame =
            serde_json::from_slice(line).map_err(|e| wrong(format!("not a stored game: {e}")))?;
        read(&stored).map_err(|e| wrong(e.to_string()))
    }

    /// At most `wanted` games, evenly spaced.
    fn shown(&self, game: &Arc<dyn AnyGame>, wanted: usize) -> Result<Vec<ReportGame>> {
        let (lines, epoch) = (self.lines(), self.epoch());
        let chosen = wanted.min(lines.len());
        let of = |number: usize| {
            let index = number * lines.len() / chosen;
            self.game(index, lines[index], |stored| report_game(game, &epoch, stored))
        };
        (0..chosen).map(of).collect()
    }

    /// What players count in beside points in all games, where `game` has a table of it.
    fn tallies(&self, game: &Arc<dyn AnyGame>) -> Result<Option<Tallies>> {
        let Some(table) = game.tally_table() else { return Ok(None) };
        let lines = self.lines();
        let games = count(lines.len(), "stored game");
        let mut tallies = Tallies::new(table, format!("{games} of epoch {}", self.epoch()));
        for (index, line) in lines.into_iter().enumerate() {
            self.game(index, line, |stored| {
                let mut play = Playthrough::new(game.clone());
                stored.actions.iter().try_for_each(|&action| {
                    let before = play.state().to_vec();
                    play.step(action)?;
                    tallies.add(game.as_ref(), &before, play.state());
                    Ok(())
                })
            })?;
        }
        Ok(Some(tallies))
    }
}

/// All positions of a stored game, as everybody may see them once it is over.
fn report_game(game: &Arc<dyn AnyGame>, epoch: &str, stored: &FinishedGame) -> Result<ReportGame> {
    let mut play = Playthrough::new(game.clone());
    let mut views = vec![view(&play)];
    let mut moves = Vec::with_capacity(stored.actions.len());
    for &action in &stored.actions {
        let name = game.action_name(play.state(), action);
        let who = match play.turn() {
            Turn::Chance => "chance: ",
            Turn::Player(_) | Turn::Over => "",
        };
        play.step(action)?;
        moves.push(format!("{who}{name}"));
        views.push(view(&play));
    }
    let title = format!(
        "epoch {epoch}, slot {}: {}",
        stored.slot,
        count(moves.len(), "ply").replace("plys", "plies")
    );
    let result = result_text(&stored.returns, game.sizes().zero_sum, |player| format!("player {player}"));
    let scores = without_minus_zero(game.scores(play.state()));
    Ok(ReportGame::new(title, moves, (result, stored.returns.clone(), scores), views))
}

/// The look of a position, without the legal actions.
fn view(play: &Playthrough) -> Value {
    let mut view = play.view(Viewer::All);
    view.actions.clear();
    serde_json::to_value(&view).unwrap_or_default()
}
