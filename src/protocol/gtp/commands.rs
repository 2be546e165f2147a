//! The commands of GTP.

use super::analysis::{Request, Style};
use super::game::{Board, Kind, player_of};
use super::time::Clocks;
use crate::engine::Analysis;
use crate::error::Result;
use crate::game::view::Viewer;
use crate::protocol::dialogue::{Dialogue, Goal, LineOutcome, Protocol, Reading};
use crate::protocol::position::Position;
use crate::protocol::restriction::moves_left;
use crate::view;
use crate::words::two_decimals;

/// The commands of all games.
const COMMANDS: &str = "\
protocol_version name version known_command list_commands quit boardsize clear_board play genmove reg_genmove
undo time_settings kgs-time_settings time_left final_score showboard lz-analyze lz-genmove_analyze
kata-analyze kata-genmove_analyze analyze genmove_analyze stop gogui-interrupt";

/// The commands of Go alone.
const COMMANDS_OF_GO: &str = "\
komi fixed_handicap place_free_handicap set_free_handicap final_status_list kgs-genmove_cleanup";

/// Plies of a game of Go for each point of the board: no client knows of a limit.
const PLIES_A_POINT: i64 = 10;

/// An answer: the text after `=`, or after `?`.
type Answer = std::result::Result<String, String>;

/// What the engine is to do with the result of a search.
#[derive(Clone, Debug)]
enum Purpose {
    /// Play the move.
    Genmove,
    /// The same, and pass only if the game is then won as the board stands.
    Cleanup,
    /// Name the move.
    Suggest,
    /// Report until the next command.
    Analyse(Request),
    /// Report, then play the move.
    GenmoveAnalyse(Request),
}

/// The search in progress.
struct Task {
    id: String,
    purpose: Purpose,
    player: u8,
    /// The position that is searched.
    position: Position,
}

/// The engine's side of GTP.
pub struct Gtp {
    board: Board,
    clocks: Option<Clocks>,
    /// The position before each move that can be taken back.
    before: Vec<Vec<u16>>,
    task: Option<Task>,
}

impl Gtp {
    /// GTP for the game of `dialogue`.
    ///
    /// # Errors
    /// Those of `Board::of`.
    pub fn new(dialogue: &mut Dialogue) -> Result<Self> {
        let board = Board::of(dialogue.position.game().as_ref())?;
        if board.kind == Kind::Go {
            let plies = PLIES_A_POINT * i64::from(board.size * board.size);
            let game = dialogue.game_with("max_plies", plies)?;
            dialogue.position = Position::new(&game);
        }
        Ok(Self { board, clocks: None, before: Vec::new(), task: None })
    }

    /// The commands of this game.
    fn commands(&self) -> impl Iterator<Item = &'static str> {
        let of_go = if self.board.kind == Kind::Go { COMMANDS_OF_GO } else { "" };
        COMMANDS.split_whitespace().chain(of_go.split_whitespace())
    }

    fn is_known(&self, command: &str) -> bool {
        self.commands().any(|known| known == command)
    }

    /// Runs a command that has no search; None for one that has.
    fn run(&mut self, dialogue: &mut Dialogue, command: &str, arguments: &[&str]) -> Option<Answer> {
        let ok = |text: &str| Some(Ok(text.to_string()));
        match command {
            "protocol_version" => ok("2"),
            "name" => ok("vecaz"),
            "version" => ok(env!("CARGO_PKG_VERSION")),
            "quit" | "stop" | "gogui-interrupt" => ok(""),
            "known_command" => match arguments {
                [name] => ok(if self.is_known(name) { "true" } else { "false" }),
                _ => Some(syntax_error()),
            },
            "list_commands" => ok(&self.commands().collect::<Vec<_>>().join("\n")),
            "boardsize" => Some(self.boardsize(dialogue, arguments)),
            "clear_board" => {
                self.begin_game(dialogue);
                ok("")
            }
            "komi" => Some(self.komi(dialogue, arguments)),
            "play" => Some(self.play(dialogue, arguments)),
            "undo" => Some(self.undo(dialogue)),
            "time_settings" => Some(self.set_clocks(Clocks::of_settings(arguments))),
            "kgs-time_settings" => Some(self.set_clocks(Clocks::of_kgs(arguments))),
            "time_left" => Some(self.time_left(arguments)),
            "fixed_handicap" | "place_free_handicap" => Some(self.handicap(dialogue, command, arguments)),
            "set_free_handicap" => Some(self.free_handicap(dialogue, arguments)),
            "final_score" => Some(self.final_score(dialogue)),
            "final_status_list" => Some(self.final_status_list(dialogue, arguments)),
            "genmove" | "reg_genmove" if self.has_lost(dialogue, arguments) => ok("resign"),
            "showboard" => {
                let text = view::text(&dialogue.position.play().view(Viewer::Public));
                let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
                Some(Ok(format!("\n{}", lines.join("\n"))))
            }
            _ => None,
        }
    }

    /// `boardsize N`, and `boardsize N N` as Hex's clients say it.
    fn boardsize(&mut self, dialogue: &mut Dialogue, arguments: &[&str]) -> Answer {
        if !(1..=2).contains(&arguments.len()) {
            return syntax_error();
        }
        for side in arguments {
            let side: u32 = side.parse().map_err(|_| "syntax error".to_string())?;
            if side != self.board.size {
                return Err("unacceptable size".into());
            }
        }
        self.begin_game(dialogue);
        Ok(String::new())
    }

    fn begin_game(&mut self, dialogue: &mut Dialogue) {
        dialogue.begin_game(dialogue.position.back(usize::MAX));
        self.before.clear();
        self.clocks.iter_mut().for_each(Clocks::restart);
    }

    /// The position stays, and its moves as well.
    fn komi(&mut self, dialogue: &mut Dialogue, arguments: &[&str]) -> Answer {
        let [komi] = arguments else { return syntax_error() };
        let komi: f64 = komi.parse().map_err(|_| "syntax error".to_string())?;
        let game = dialogue.game_with("komi", komi).map_err(|e| e.to_string())?;
        let position = Position::after(&game, dialogue.position.actions()).map_err(|e| e.to_string())?;
        dialogue.position = position;
        Ok(String::new())
    }

    fn play(&mut self, dialogue: &mut Dialogue, arguments: &[&str]) -> Answer {
        let [colour, vertex] = arguments else { return syntax_error() };
        let player = player_of(colour).ok_or("syntax error")?;
        if self.board.kind == Kind::Hex && !self.board.is_vertex(vertex) || vertex.is_empty() {
            return syntax_error();
        }
        if self.board.kind == Kind::Hex && vertex.eq_ignore_ascii_case("resign") {
            // Benzene's match script tells it; the board stays.
            return Ok(String::new());
        }
        let illegal = || "illegal move".to_string();
        if let Some(actions) = self.board.before_swap(&dialogue.position, player, vertex) {
            for action in actions {
                let mut position = dialogue.position.clone();
                self.play_in(dialogue, &mut position, action).map_err(|_| illegal())?;
            }
            return Ok(String::new());
        }
        let mut position = self.board.turn_of(&dialogue.position, player).ok_or_else(illegal)?;
        let action = self.board.find(position.play(), vertex).ok_or_else(illegal)?;
        self.play_in(dialogue, &mut position, action).map_err(|_| illegal())?;
        Ok(String::new())
    }

    /// True for a player of Hex whose opponent has connected: Benzene's match script plays on until a program resigns.
    fn has_lost(&self, dialogue: &Dialogue, arguments: &[&str]) -> bool {
        let ([colour], Kind::Hex, true) = (arguments, self.board.kind, dialogue.position.is_over()) else {
            return false;
        };
        let play = dialogue.position.play();
        let returns = play.game().returns(play.state());
        player_of(colour).is_some_and(|player| returns[usize::from(player)] < 0.0)
    }

    /// Plays `action` in `position`, which becomes that of the dialogue.
    fn play_in(&mut self, dialogue: &mut Dialogue, position: &mut Position, action: u16) -> Result<()> {
        position.step(action)?;
        self.before.push(dialogue.position.actions().to_vec());
        dialogue.position = position.clone();
        Ok(())
    }

    fn undo(&mut self, dialogue: &mut Dialogue) -> Answer {
        let actions = self.before.pop().ok_or("cannot undo")?;
        let position = Position::after(dialogue.position.game(), &actions).map_err(|e| e.to_string())?;
        dialogue.position = position;
        Ok(String::new())
    }

    fn set_clocks(&mut self, clocks: Option<Option<Clocks>>) -> Answer {
        self.clocks = clocks.ok_or("syntax error")?;
        Ok(String::new())
    }

    fn time_left(&mut self, arguments: &[&str]) -> Answer {
        let [colour, rest @ ..] = arguments else { return syntax_error() };
        let player = player_of(colour).ok_or("syntax error")?;
        match Clocks::set_left(&mut self.clocks, usize::from(player), rest) {
            true => Ok(String::new()),
            false => syntax_error(),
        }
    }

    /// `fixed_handicap`, and `place_free_handicap`, for which the engine takes the points of the former, as many as there are.
    fn handicap(&mut self, dialogue: &mut Dialogue, command: &str, arguments: &[&str]) -> Answer {
        let [stones] = arguments else { return syntax_error() };
        let stones: usize = stones.parse().map_err(|_| "syntax error".to_string())?;
        let max = self.board.max_handicap();
        let stones = if command == "place_free_handicap" && stones >= 2 { stones.min(max) } else { stones };
        let points = self.board.handicap(stones).ok_or("invalid number of stones")?;
        self.place(dialogue, &points)?;
        Ok(points.iter().map(|&point| self.board.point(point)).collect::<Vec<_>>().join(" "))
    }

    fn free_handicap(&mut self, dialogue: &mut Dialogue, arguments: &[&str]) -> Answer {
        let points: Option<Vec<u16>> = arguments.iter().map(|text| self.board.cell(text)).collect();
        let points = points.filter(|points| points.len() >= 2).ok_or("bad vertex list")?;
        self.place(dialogue, &points)?;
        Ok(String::new())
    }

    fn place(&mut self, dialogue: &mut Dialogue, points: &[u16]) -> Answer {
        if !dialogue.position.actions().is_empty() {
            return Err("board not empty".into());
        }
        let position = self.board.with_handicap(&dialogue.position, points);
        dialogue.position = position.map_err(|_| "bad vertex list".to_string())?;
        Ok(String::new())
    }

    /// In Go that of the board as it stands, on which all stones are alive; in the other games the winner.
    fn final_score(&self, dialogue: &Dialogue) -> Answer {
        let play = dialogue.position.play();
        let lead = |values: Vec<f32>| values[0] - values[1];
        if self.board.kind == Kind::Go {
            let lead = lead(play.game().scores(play.state()));
            return Ok(match lead {
                lead if lead > 0.0 => format!("B+{}", two_decimals(lead)),
                lead if lead < 0.0 => format!("W+{}", two_decimals(-lead)),
                _ => "0".into(),
            });
        }
        if !dialogue.position.is_over() {
            return Err("cannot score".into());
        }
        let lead = lead(play.game().returns(play.state()));
        Ok(if lead == 0.0 { "0" } else { ["B+", "W+"][usize::from(lead < 0.0)] }.into())
    }

    /// By the rules all stones on the board are alive at the end.
    fn final_status_list(&self, dialogue: &Dialogue, arguments: &[&str]) -> Answer {
        match arguments {
            ["alive"] => {
                let groups = self.board.groups(&dialogue.position);
                let line = |group: &Vec<u16>| {
                    group.iter().map(|&point| self.board.point(point)).collect::<Vec<_>>().join(" ")
                };
                Ok(groups.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
            ["dead" | "seki"] => Ok(String::new()),
            _ => syntax_error(),
        }
    }

    /// Begins a search, or says why it cannot.
    fn begin(
        &mut self,
        dialogue: &mut Dialogue,
        id: &str,
        command: &str,
        arguments: &[&str],
    ) -> std::result::Result<(), String> {
        let (purpose, player) = self.purpose(dialogue, command, arguments)?;
        let position = self.board.turn_of(&dialogue.position, player);
        let position = position.ok_or_else(|| match dialogue.position.is_over() {
            true => "the game is over".to_string(),
            false => "it is the other player's turn".to_string(),
        })?;
        let mut moves = Vec::new();
        if let Purpose::Analyse(request) | Purpose::GenmoveAnalyse(request) = &purpose {
            moves =
                moves_left(&position, &request.restrictions, |name| self.board.find(position.play(), name))?;
        }
        let moves = self.board.searched(&dialogue.position, &position, moves);
        let goal = match &purpose {
            Purpose::Analyse(request) => Goal { interval: request.interval, ..Goal::default() },
            Purpose::GenmoveAnalyse(request) => {
                Goal { interval: request.interval, ..self.goal(dialogue, player) }
            }
            _ => self.goal(dialogue, player),
        };
        dialogue.search_among(position.clone(), goal, moves);
        self.task = Some(Task { id: id.to_string(), purpose, player, position });
        Ok(())
    }

    fn goal(&self, dialogue: &mut Dialogue, player: u8) -> Goal {
        match &self.clocks {
            Some(clocks) => dialogue.goal_by(player, clocks.left(usize::from(player))),
            None => dialogue.own_goal(),
        }
    }

    /// The purpose of a command that searches, and the player whose move it is about.
    fn purpose(
        &self,
        dialogue: &Dialogue,
        command: &str,
        arguments: &[&str],
    ) -> std::result::Result<(Purpose, u8), String> {
        let to_move = dialogue.position.player().unwrap_or_default();
        let style = if command.starts_with("kata-") { Style::KataGo } else { Style::LeelaZero };
        match command {
            "genmove" | "reg_genmove" | "kgs-genmove_cleanup" => {
                let [colour] = arguments else { return Err("syntax error".into()) };
                let player = player_of(colour).ok_or("syntax error")?;
                let purpose = match command {
                    "genmove" => Purpose::Genmove,
                    "reg_genmove" => Purpose::Suggest,
                    _ => Purpose::Cleanup,
                };
                Ok((purpose, player))
            }
            _ => {
                let request = Request::read(style, arguments).ok_or("syntax error")?;
                let player = request.player.unwrap_or(to_move);
                Ok(match command.ends_with("genmove_analyze") {
                    true => (Purpose::GenmoveAnalyse(request), player),
                    false => (Purpose::Analyse(request), player),
                })
            }
        }
    }

    /// The move of a search. In the cleanup a pass is chosen only if it wins with all stones on the board alive, and if there is another
    /// move.
    fn choose(&self, task: &Task, found: &Analysis) -> u16 {
        let best = found.best().action;
        let (play, pass) = (task.position.play(), self.board.pass());
        if !matches!(task.purpose, Purpose::Cleanup) || best != pass {
            return best;
        }
        let returns = play.game().returns(play.state());
        let others = found.moves.iter().map(|shown| shown.action).find(|&action| action != pass);
        match returns[usize::from(task.player)] > 0.0 {
            true => best,
            false => others.unwrap_or(best),
        }
    }

    fn found_move(&mut self, dialogue: &mut Dialogue, task: Task, found: &Analysis) -> Result<()> {
        let action = self.choose(&task, found);
        let vertex = self.board.vertex(task.position.play(), action);
        if !matches!(task.purpose, Purpose::Suggest) {
            let used = dialogue.elapsed();
            if let Some(clocks) = &mut self.clocks {
                clocks.spend(usize::from(task.player), used);
            }
            let mut position = task.position.clone();
            self.play_in(dialogue, &mut position, action)?;
        }
        match &task.purpose {
            Purpose::GenmoveAnalyse(request) => {
                dialogue.say(&request.line(&self.board, &task.position, found))?;
                dialogue.say(&format!("play {vertex}\n"))?;
            }
            _ => dialogue.say(&format!("={} {vertex}\n", task.id))?,
        }
        if !matches!(task.purpose, Purpose::Suggest) {
            dialogue.ponder();
        }
        Ok(())
    }
}

fn syntax_error() -> Answer {
    Err("syntax error".into())
}

/// A line without comment and control characters.
fn cleaned(line: &str) -> String {
    let text = line.split('#').next().unwrap_or_default();
    let kept = text.chars().filter(|&c| c == '\t' || !c.is_control());
    kept.map(|c| if c == '\t' { ' ' } else { c }).collect()
}

impl Protocol for Gtp {
    fn line(&mut self, dialogue: &mut Dialogue, line: &str) -> Result<LineOutcome> {
        let text = cleaned(line);
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
        let id = words.first().copied().filter(is_number).unwrap_or_default().to_string();
        if !id.is_empty() {
            words.remove(0);
        }
        let Some((command, arguments)) = words.split_first() else {
            // A number alone is a command without a name; an empty line is none.
            return match id.is_empty() {
                true => Ok(LineOutcome::Continue),
                false => dialogue.say(&format!("?{id} unknown command\n")).map(|()| LineOutcome::Continue),
            };
        };
        let answer = match self.is_known(command) {
            false => Some(Err("unknown command".to_string())),
            true => self.run(dialogue, command, arguments),
        };
        match answer {
            Some(Ok(text)) if text.is_empty() => dialogue.say(&format!("={id} \n"))?,
            Some(Ok(text)) => dialogue.say(&format!("={id} {text}\n"))?,
            Some(Err(why)) => dialogue.say(&format!("?{id} {why}\n"))?,
            None => match self.begin(dialogue, &id, command, arguments) {
                Err(why) => dialogue.say(&format!("?{id} {why}\n"))?,
                // The lines of an analysis follow the beginning of the answer, and an empty line ends it.
                Ok(()) if command.ends_with("analyze") => dialogue.say(&format!("={id} "))?,
                Ok(()) => {}
            },
        }
        Ok(if *command == "quit" { LineOutcome::Quit } else { LineOutcome::Continue })
    }

    /// Any line ends an analysis. Other searches end early by the comment `# interrupt` of GoGui.
    fn reading(&self, line: &str) -> Reading {
        match &self.task {
            Some(Task { purpose: Purpose::Analyse(_), .. }) => Reading::Interrupt,
            _ if line.trim() == "# interrupt" => Reading::Interrupt,
            _ => Reading::Wait,
        }
    }

    fn progress(&mut self, dialogue: &mut Dialogue, found: &Analysis) -> Result<()> {
        match &self.task {
            Some(Task {
                purpose: Purpose::Analyse(request) | Purpose::GenmoveAnalyse(request),
                position,
                ..
            }) => dialogue.say(&request.line(&self.board, position, found)),
            _ => Ok(()),
        }
    }

    fn found(&mut self, dialogue: &mut Dialogue, found: Result<Box<Analysis>>) -> Result<()> {
        let Some(task) = self.task.take() else { return Ok(()) };
        match (found, &task.purpose) {
            (Ok(found), Purpose::Analyse(request)) => {
                dialogue.say(&format!("{}\n", request.line(&self.board, &task.position, &found)))
            }
            (Ok(found), _) => self.found_move(dialogue, task, &found),
            // The answer has begun.
            (Err(_), Purpose::Analyse(_) | Purpose::GenmoveAnalyse(_)) => dialogue.say(""),
            (Err(error), _) => dialogue.say(&format!("?{} {error}\n", task.id)),
        }
    }
}
