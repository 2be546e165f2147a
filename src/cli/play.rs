//! `vecaz play`: a game against a network in the terminal.

use super::source::{Source, start_threads};
use crate::act::sum_determinisations;
use crate::batch::Playthrough;
use crate::error::{Error, Result};
use crate::eval::arena::determinised;
use crate::game::Turn;
use crate::report::progress::print;
use crate::rng::{Key, Purpose};
use crate::run::memory::check_search;
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::searcher::Searchers;
use clap::{Args, value_parser};
use std::io::BufRead;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  vecaz play                             against the embedded network
  vecaz play runs/connect_four --sims 2000 --seat 1
  vecaz play runs/clique-1 --set game.n=8

Type an action's number or name; `undo` takes back your last move, `hint` shows the search's result,
`quit` exits.";

/// The arguments of `vecaz play`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlayArgs {
    /// The folder of a run, or a weights file [default: the embedded network]
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// Simulations per move
    #[arg(long, value_name = "S", default_value_t = 800, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub sims: u32,
    /// Your seat: 0 begins
    #[arg(long, value_name = "P", default_value_t = 0, value_parser = value_parser!(u8).range(..8))]
    pub seat: u8,
    /// Override one configuration key of the run, e.g. search.leaves=4, or game.n=8 for an edge network; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
    /// The seed of chance and ties
    #[arg(long, value_name = "X", default_value_t = 1)]
    pub seed: u64,
}

/// A game between a user and a search.
struct Session {
    source: Source,
    searchers: Searchers,
    play: Playthrough,
    args: PlayArgs,
}

/// The effect of a line of input.
enum Input {
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
pub fn execute(args: PlayArgs) -> Result<()> {
    let threads = start_threads(args.threads as usize)?;
    let source = Source::open(args.run.as_deref(), &args.set)?;
    let players = source.game.sizes().num_players;
    if usize::from(args.seat) >= players {
        return Err(Error::config("--seat", args.seat, format!("0..={}", players - 1)));
    }
    let rows = source.determinisations();
    let params = source.params(Some(args.sims));
    check_search(source.game.as_ref(), params, source.placement(), rows)?;
    let searchers = Searchers::new(
        source.game.as_ref(),
        source.network()?.as_ref(),
        params,
        source.placement(),
        rows,
        threads,
    )?;
    let play = Playthrough::new(source.game.clone());
    Session { source, searchers, play, args }.run()
}

impl Session {
    fn run(&mut self) -> Result<()> {
        let game = self.source.game.clone();
        print(&format!(
            "{}; you are player {}. Type an action's number or name, undo, hint or quit.\n",
            game.name(),
            self.args.seat
        ))?;
        let mut lines = std::io::stdin().lock().lines();
        loop {
            match self.play.turn() {
                Turn::Over => return self.close(),
                Turn::Chance => self.deal()?,
                Turn::Player(seat) if seat == self.args.seat => {
                    print(&format!("\n{}", game.display(self.play.state())))?;
                    loop {
                        print("> ")?;
                        let Some(line) = lines.next() else { return print("\n") };
                        let line = line.map_err(|e| Error::io("reading", "stdin", e))?;
                        match self.input(line.trim())? {
                            Input::Moved => break,
                            Input::Again => {}
                            Input::Quit => return Ok(()),
                        }
                    }
                }
                Turn::Player(_) => self.reply()?,
            }
        }
    }

    fn deal(&mut self) -> Result<()> {
        let game = self.source.game.clone();
        let outcomes = self.play.legal();
        let probs = game.chance_probs(self.play.state(), &outcomes);
        let ply = self.play.actions().len() as u64;
        let mut rng = Key::new(self.args.seed, Purpose::Chance).with(ply).stream();
        let outcome = outcomes[rng.weighted(&probs)];
        if !game.sizes().hidden_information {
            print(&format!("dealt: {}\n", game.action_name(self.play.state(), outcome)))?;
        }
        self.play.step(outcome)
    }

    fn input(&mut self, text: &str) -> Result<Input> {
        match text {
            "quit" | "q" => Ok(Input::Quit),
            "" => Ok(Input::Again),
            "hint" => {
                let found = self.search()?;
                self.explain(&found).map(|()| Input::Again)
            }
            "undo" => {
                self.undo()?;
                print(&self.source.game.display(self.play.state())).map(|()| Input::Again)
            }
            text => match self.play.step_text(text) {
                Ok(()) => Ok(Input::Moved),
                Err(e) => print(&format!("{e}\n")).map(|()| Input::Again),
            },
        }
    }

    /// Returns to the user's previous decision.
    fn undo(&mut self) -> Result<()> {
        let actions = self.play.actions().to_vec();
        let mut plays = vec![Playthrough::new(self.source.game.clone())];
        for &action in &actions {
            let mut next = plays[plays.len() - 1].clone();
            next.step(action)?;
            plays.push(next);
        }
        plays.pop();
        let mine = Turn::Player(self.args.seat);
        if let Some(before) = plays.into_iter().rev().find(|play| play.turn() == mine) {
            self.play = before;
        }
        Ok(())
    }

    fn search(&mut self) -> Result<RootSummary> {
        let key = RowKey { seed: self.args.seed, ply: self.play.actions().len() as u64, ..RowKey::default() };
        let positions = determinised(&self.play, key, self.source.determinisations());
        let parts = self.searchers.search(&positions, self.args.sims, Exploration::Plain)?;
        let mut sum = RootSummary::default();
        sum_determinisations(&parts, &mut sum);
        Ok(sum)
    }

    fn reply(&mut self) -> Result<()> {
        let found = self.search()?;
        // In games with hidden information, the search's result would reveal the hand.
        if !self.source.game.sizes().hidden_information {
            self.explain(&found)?;
        }
        let action = found.actions[found.best];
        let name = self.source.game.action_name(self.play.state(), action);
        print(&format!("player {} plays {name}\n", found.player))?;
        self.play.step(action)
    }

    /// Prints value, visits and the principal variation.
    fn explain(&mut self, found: &RootSummary) -> Result<()> {
        let game = self.source.game.clone();
        let value = found.value[usize::from(found.player)];
        let proven = if found.proven { " (proven)" } else { "" };
        print(&format!("value {value:+.3}{proven} for player {}\n", found.player))?;
        let mut order: Vec<usize> = (0..found.actions.len()).collect();
        order.sort_by_key(|&i| (i != found.best, -found.visits[i]));
        for &i in order.iter().take(7) {
            print(&format!(
                "  {:>8}  visits {:>6}  value {:+.3}  prior {:.3}\n",
                game.action_name(self.play.state(), found.actions[i]),
                found.visits[i],
                found.q[i],
                found.prior[i]
            ))?;
        }
        if game.sizes().hidden_information {
            return Ok(());
        }
        let line = self.searchers.shards()[0].backend.principal_variation(0, 12)?;
        let mut play = self.play.clone();
        let mut names = Vec::new();
        for action in line {
            names.push(game.action_name(play.state(), action));
            play.step(action)?;
        }
        print(&format!("  expected: {}\n", names.join(" ")))
    }

    fn close(&self) -> Result<()> {
        let game = &self.source.game;
        let scores: Vec<String> = game.scores(self.play.state()).iter().map(|s| s.to_string()).collect();
        print(&format!(
            "\n{}game over, scores by player: {}\n",
            game.display(self.play.state()),
            scores.join(", ")
        ))
    }
}
