//! `vecaz play`: a game against a network in the terminal.

use super::threads::start_threads;
use crate::batch::Playthrough;
use crate::config::{Algorithm, DEFAULT_GAME};
use crate::engine::{Analysis, EndCause, Engine, Limit};
use crate::error::{Error, Result};
use crate::eval::elo::signed;
use crate::game::view::Viewer;
use crate::game::{Turn, result_text, without_minus_zero};
use crate::registry::Registry;
use crate::report::layout::{fill, sentence_width};
use crate::report::progress::print;
use crate::rng::{Key, Purpose};
use crate::run::memory::engine_mib;
use crate::source::Source;
use crate::view;
use crate::words::count;
use clap::{Args, value_parser};
use std::io::BufRead;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  vecaz play                             against the embedded network
  vecaz play runs/connect_four --sims 2000 --seat 1
  vecaz play runs/clique-1 --set game.n=8

Type a move's name or number. `hint` shows the search's result, `undo` takes
back your last move, `help` or `?` lists the legal moves, `quit` exits. The last
move is in brackets on the board.";

/// The arguments of `vecaz play`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlayArgs {
    /// The folder of a run (its best network) or of one of its checkpoints, or a weights file [default: the embedded
    /// network]
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// Refused with what to do: the game is that of the network.
    #[arg(long, value_name = "G", hide = true)]
    pub game: Option<String>,
    /// Simulations per move [default: 800]
    #[arg(long, value_name = "S", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub sims: Option<u32>,
    /// Your seat: 0 begins
    #[arg(long, value_name = "P", default_value_t = 0, value_parser = value_parser!(u8).range(..8))]
    pub seat: u8,
    /// Override one configuration key of the run, e.g. search.leaves=4, or game.n=8 for an edge network; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
    /// The seed of chance outcomes and tie breaks
    #[arg(long, value_name = "X", default_value_t = 1)]
    pub seed: u64,
}

impl PlayArgs {
    fn simulations(&self) -> u32 {
        self.sims.unwrap_or(800)
    }
}

/// Maximum MiB of trees.
const MEMORY_MIB: usize = 2048;

/// A game between a user and a search.
struct Session {
    source: Source,
    engine: Engine,
    args: PlayArgs,
}

/// The effect of a line of input.
enum InputEffect {
    /// An action was played.
    Moved,
    /// The user is still to move.
    Again,
    Quit,
}

/// Plays one game in the terminal.
///
/// # Errors
/// Those of reading the run, [`Error::Config`] for a seat that the game does not have, and [`Error::Unsupported`] for a search
/// that does not fit into memory.
pub fn execute(args: PlayArgs, registry: &Registry) -> Result<()> {
    if let Some(game) = &args.game {
        let expected = format!(
            "a network in its place, which names its game: `vecaz run --game {game} --minutes 10` trains one, `vecaz play RUN` plays it; \
             without RUN the embedded network plays {DEFAULT_GAME}"
        );
        return Err(Error::config("--game", game, expected));
    }
    let threads = start_threads(args.threads as usize)?;
    let source = Source::open(args.run.as_deref(), registry, &args.set)?;
    let players = source.game.num_seated(&source.game.init());
    if usize::from(args.seat) >= players {
        return Err(Error::config("--seat", args.seat, format!("a whole number from 0 to {}", players - 1)));
    }
    source.expect_tree("--sims", args.sims)?;
    let mut settings = source.settings(Some(args.simulations()), threads);
    (settings.seed, settings.memory_mib) = (args.seed, engine_mib(MEMORY_MIB));
    let engine = Engine::new(source.game.clone(), source.network()?.as_ref(), settings)?;
    Session { source, engine, args }.run()
}

impl Session {
    fn run(&mut self) -> Result<()> {
        print(&self.introduction())?;
        let mut lines = std::io::stdin().lock().split(b'\n');
        loop {
            match self.play().turn() {
                Turn::Over => return self.close(),
                Turn::Chance => self.deal()?,
                Turn::Player(seat) if seat == self.args.seat => {
                    print(&format!("\n{}", self.board()))?;
                    loop {
                        print("> ")?;
                        let Some(line) = lines.next() else { return print("\n") };
                        let line = line.map_err(|e| Error::io("reading", "stdin", e))?;
                        // A byte that is not UTF-8 makes a name that is no move, and the game goes on.
                        match self.input(String::from_utf8_lossy(&line).trim())? {
                            InputEffect::Moved => break,
                            InputEffect::Again => {}
                            InputEffect::Quit => return Ok(()),
                        }
                    }
                }
                Turn::Player(_) => self.reply()?,
            }
        }
    }

    /// The game so far.
    fn play(&self) -> &Playthrough {
        self.engine.playthrough()
    }

    /// The game with its settings, the network, and the aim of every player.
    fn introduction(&self) -> String {
        let Source { game, label, .. } = &self.source;
        let settings: Vec<String> =
            game.keys().iter().map(|key| format!("{} = {}", key.name, key.value)).collect();
        let mut text = game.name().to_string();
        if !settings.is_empty() {
            text += &format!(" ({})", settings.join(", "));
        }
        text += &match self.source.config.eval_algorithm() {
            Algorithm::Puct | Algorithm::Gumbel => {
                let in_deals = match game.sizes().hidden_information {
                    true => {
                        format!(" in each of {}", count(self.source.config.eval_determinisations(), "deal"))
                    }
                    false => String::new(),
                };
                format!(", {}{in_deals} a move by {label}", count(self.args.simulations(), "simulation"))
            }
            Algorithm::Afterstate => {
                let turns = count(self.source.config.eval.turns, "turn");
                format!(", decided by a lookahead of {turns} by {label}")
            }
        };
        text = fill(&text, sentence_width(), [0, 2]);
        for player in 0..game.num_seated(&game.init()) as u8 {
            let aim = format!("{}: {}.", self.name_of(player), game.aim(player));
            text += &fill(&aim, sentence_width(), [0, 2]);
        }
        if self.source.file.header.updates == 0 {
            text += &fill(
                "NOTE: this network has 0 updates. It is untrained: its moves are those of a search with random priors and values.",
                sentence_width(),
                [0, 2],
            );
        }
        text + "Type a move, or help.\n"
    }

    /// A player by number, with "you" or "the network".
    fn name_of(&self, player: u8) -> String {
        let who = if player == self.args.seat { "you" } else { "the network" };
        format!("player {player} ({who})")
    }

    /// The aim, the commands, and the names of all legal moves.
    fn help(&self) -> String {
        let game = &self.source.game;
        let legal = self.play().legal();
        let text = format!(
            "{}hint: what the search finds; undo: takes back your last move; quit: exits.\n",
            fill(
                &format!("{}: {}.", self.name_of(self.args.seat), game.aim(self.args.seat)),
                sentence_width(),
                [0, 2]
            )
        );
        let names: Vec<String> =
            legal.iter().map(|&action| game.action_name(self.play().state(), action)).collect();
        text + &fill(
            &format!("{}: {}", count(legal.len(), "legal move"), names.join(" ")),
            sentence_width(),
            [0, 2],
        )
    }

    /// The position as the user sees it, with the last player's move in brackets.
    fn board(&self) -> String {
        view::text(&self.play().view(Viewer::Player(self.args.seat)))
    }

    fn deal(&mut self) -> Result<()> {
        let game = self.source.game.clone();
        let outcomes = self.play().legal();
        let probs = game.chance_probs(self.play().state(), &outcomes);
        let ply = self.play().actions().len() as u64;
        let mut rng = Key::new(self.args.seed, Purpose::Chance).with(ply).stream();
        let outcome = outcomes[rng.weighted(&probs)];
        if !game.sizes().hidden_information {
            print(&format!("dealt: {}\n", game.action_name(self.play().state(), outcome)))?;
        }
        self.engine.play(outcome)
    }

    fn input(&mut self, text: &str) -> Result<InputEffect> {
        match text.to_lowercase().as_str() {
            "quit" | "q" | "exit" => Ok(InputEffect::Quit),
            "" => Ok(InputEffect::Again),
            "help" | "?" => print(&self.help()).map(|()| InputEffect::Again),
            "hint" => {
                let found = self.search()?;
                self.explain(&found).map(|()| InputEffect::Again)
            }
            "undo" => {
                self.undo()?;
                print(&self.board()).map(|()| InputEffect::Again)
            }
            _ => match self.play_text(text) {
                Ok(()) => Ok(InputEffect::Moved),
                Err(e) => print(&format!("{e}\n")).map(|()| InputEffect::Again),
            },
        }
    }

    /// Returns to the user's previous decision.
    fn undo(&mut self) -> Result<()> {
        let mine = Turn::Player(self.args.seat);
        let mut earlier = (0..self.play().actions().len()).rev().map(|plies| self.play().after(plies));
        match earlier.find(|play| play.turn() == mine) {
            Some(before) => self.engine.set_position(&before),
            None => Ok(()),
        }
    }

    /// Plays the move that the user typed.
    fn play_text(&mut self, text: &str) -> Result<()> {
        let play = self.play();
        let action = play.find(text).ok_or_else(|| play.illegal(text))?;
        self.engine.play(action)
    }

    fn search(&mut self) -> Result<Analysis> {
        self.engine.analyse(&Limit::simulations(self.args.simulations().into()))
    }

    fn reply(&mut self) -> Result<()> {
        let found = self.search()?;
        let best = found.best();
        print(&format!("{} plays {}\n", self.name_of(found.player), best.name))?;
        self.engine.play(best.action)
    }

    /// Prints value, visits and the principal variation.
    fn explain(&self, found: &Analysis) -> Result<()> {
        let proven = if found.proven { " (proven)" } else { "" };
        let unit = self.source.game.points_of_value();
        let shown = |value: f32| signed(f64::from(value * unit.unwrap_or(1.0)), 3);
        let points = if unit.is_some() { " points" } else { "" };
        let mut text = format!(
            "value {}{points}{proven} for {}; the move to play, then others by visits:\n",
            shown(found.own_value()),
            self.name_of(found.player)
        );
        if found.end == EndCause::Memory {
            text += &format!("the trees are full after {}\n", count(found.visits, "simulation"));
        }
        for line in found.moves.iter().take(7) {
            let value = line.value.map_or("-".to_string(), shown);
            text += &format!(
                "  {:>8}  visits {:>6}  value {value:>6}  prior {:.3}\n",
                line.name, line.visits, line.prior
            );
        }
        if !self.source.game.sizes().hidden_information {
            text += &format!("  expected: {}\n", found.best().line_names.join(" "));
        }
        print(&text)
    }

    fn close(&self) -> Result<()> {
        let game = &self.source.game;
        let state = self.play().state();
        let [returns, scores] = [game.returns(state), game.scores(state)].map(without_minus_zero);
        let scores = match scores == returns {
            true => String::new(),
            false => {
                let list: Vec<String> = scores.iter().map(f32::to_string).collect();
                format!("; scores by player: {}", list.join(", "))
            }
        };
        let result = result_text(&returns, game.sizes().zero_sum, |player| self.name_of(player));
        print(&format!("\n{}game over: {result}{scores}\n", self.board()))
    }
}
