//! The limits of `go`.

use crate::protocol::clock::TimeLeft;
use crate::protocol::dialogue::{Dialogue, Goal};
use std::time::Duration;

/// The longest expected line that the engine tells, which bounds `depth`.
const MAX_DEPTH: u64 = 12;
/// Time between two reports.
const INTERVAL: Duration = Duration::from_millis(250);
/// The same while an end by depth is looked for.
const SHORT_INTERVAL: Duration = Duration::from_millis(20);

/// When a search may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// As soon as it ends.
    #[default]
    AtEnd,
    /// Not before `stop`.
    AfterStop,
    /// Not before `ponderhit` or `stop`.
    AfterPonderhit,
}

/// The words of `go`.
#[derive(Clone, Debug, Default)]
pub struct Go {
    /// When it may answer.
    pub answer: Answer,
    /// The moves of `searchmoves`.
    pub moves: Vec<String>,
    /// The length of the expected line at which it ends.
    pub depth: Option<u64>,
    nodes: Option<u64>,
    move_time: Option<Duration>,
    /// Whether `mate` was given: an end by proof.
    mate: bool,
    time: [Option<Duration>; 2],
    increment: [Duration; 2],
    moves_to_go: Option<u32>,
}

/// A number of milliseconds; clocks that have run out are negative for some programs.
fn milliseconds(text: &str) -> Option<Duration> {
    let value: i64 = text.parse().ok()?;
    Some(Duration::from_millis(value.max(0) as u64))
}

impl Go {
    /// Reads the words after `go`. Words that mean nothing are passed over, as the protocol asks.
    pub fn read(words: &[&str]) -> Self {
        let mut go = Self::default();
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.next() {
            let mut number = || words.next_if(|text| text.parse::<i64>().is_ok());
            match word {
                "infinite" => go.answer = Answer::AfterStop,
                "ponder" => go.answer = Answer::AfterPonderhit,
                "wtime" => go.time[0] = number().and_then(milliseconds),
                "btime" => go.time[1] = number().and_then(milliseconds),
                "winc" => go.increment[0] = number().and_then(milliseconds).unwrap_or_default(),
                "binc" => go.increment[1] = number().and_then(milliseconds).unwrap_or_default(),
                "movestogo" => go.moves_to_go = number().and_then(|text| text.parse().ok()),
                "movetime" => go.move_time = number().and_then(milliseconds),
                "nodes" => go.nodes = number().and_then(|text| text.parse().ok()),
                "depth" => go.depth = number().and_then(|text| text.parse().ok()),
                "mate" => go.mate = number().is_some(),
                "searchmoves" => {
                    while let Some(name) = words.next_if(|word| is_move(word)) {
                        go.moves.push(name.to_string());
                    }
                }
                _ => {}
            }
        }
        go
    }

    /// The goal of a search for `player`.
    pub fn goal(&self, dialogue: &mut Dialogue, player: u8) -> Goal {
        let interval = Some(if self.depth.is_some() { SHORT_INTERVAL } else { INTERVAL });
        if self.answer != Answer::AtEnd {
            return Goal { interval, ..Goal::default() };
        }
        let own = dialogue.own_goal();
        let mut goal = Goal::default();
        let side = usize::from(player);
        if let Some(remaining) = self.time[side] {
            let clock = TimeLeft {
                remaining,
                increment: self.increment[side],
                moves_to_go: self.moves_to_go,
                overtime: Duration::ZERO,
            };
            goal = dialogue.goal_by(player, clock);
        }
        if let Some(time) = self.move_time {
            let within = goal_within(dialogue, time);
            let time = [goal.time, within.time].into_iter().flatten().min();
            goal = Goal { time, simulations: within.simulations, ..goal };
        }
        let by_depth =
            self.depth.and_then(|depth| Some(own.simulations?.saturating_mul(depth.clamp(1, MAX_DEPTH))));
        let max = dialogue.pace.max_simulations.unwrap_or(u64::MAX);
        let counts = [self.nodes.map(|nodes| nodes.clamp(1, max)), by_depth, goal.simulations];
        goal.simulations = counts.into_iter().flatten().min();
        if goal.simulations.is_none() && goal.time.is_none() {
            goal = own;
        }
        goal.time = [goal.time, dialogue.pace.time].into_iter().flatten().min();
        Goal { interval, ..goal }
    }

    /// True if the expected line is as long as `depth` asks.
    pub fn is_deep_enough(&self, line: usize) -> bool {
        self.depth.is_some_and(|depth| line as u64 >= depth.clamp(1, MAX_DEPTH))
    }

    /// The same search once the opponent has made the expected move.
    #[must_use]
    pub fn after_ponderhit(mut self) -> Self {
        self.answer = Answer::AtEnd;
        self
    }
}

/// The goal of a move of at most `time`, of which the overhead is kept back: at most half, since a time below the overhead cannot be kept.
fn goal_within(dialogue: &Dialogue, time: Duration) -> Goal {
    let goal = dialogue.goal_within(time);
    let half = dialogue.pace.time.map_or(time / 2, |own| own.min(time / 2));
    Goal { time: goal.time.max(Some(half)), ..goal }
}

fn is_move(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_square = |at: usize| {
        matches!(bytes.get(at), Some(b'a'..=b'h')) && matches!(bytes.get(at + 1), Some(b'1'..=b'8'))
    };
    (4..=5).contains(&bytes.len()) && is_square(0) && is_square(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::engine::Settings;
    use crate::net::{HashNet, IoShape};
    use crate::protocol::dialogue::{Pace, Parts, Ponder, converse};
    use crate::protocol::uci::Uci;
    use crate::registry::Registry;

    fn read(text: &str) -> Go {
        Go::read(&text.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn words_are_read_and_others_passed_over() {
        let go =
            read("wtime 1000 btime -5 winc 10 foo binc 20 movestogo 7 searchmoves e2e4 e7e8q depth 4 mate 3");
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!((go.time, go.moves_to_go, go.depth), ([ms(1000), ms(0)], Some(7), Some(4)));
        assert_eq!(go.increment.map(|time| time.as_millis()), [10, 20]);
        assert_eq!(go.moves, ["e2e4", "e7e8q"]);
        assert!(go.mate && go.answer == Answer::AtEnd);
        assert!(go.is_deep_enough(4) && !go.is_deep_enough(3));
        assert_eq!(read("infinite").answer, Answer::AfterStop);
        let go = read("ponder movetime infinite nodes 99999999999999999999 wtime");
        assert_eq!(
            (go.move_time, go.nodes, go.answer),
            (None, None, Answer::AfterStop),
            "a number is missing"
        );
        assert_eq!(read("ponder nodes 5").after_ponderhit().answer, Answer::AtEnd);
    }

    /// A dialogue about chess with an overhead of 100 ms and moves of at most `longest`.
    fn parts(longest: Option<Duration>) -> Parts {
        let registry = Registry::built_in();
        let game = registry.game("chess", &toml::Table::new()).expect("registered");
        let sizes = game.sizes();
        let network = Box::new(HashNet(IoShape::of(&sizes)));
        let settings = Settings { threads: 1, leaves: 1, ..Settings::new(&Config::default(), &sizes) };
        let overhead = Duration::from_millis(100);
        let pace = Pace {
            simulations: Some(20),
            time: longest,
            max_simulations: None,
            overhead,
            ponder: Ponder::Never,
        };
        Parts { game, registry, network, settings, pace }
    }

    #[test]
    fn the_time_of_a_move_keeps_the_overhead_back() {
        let ms = Duration::from_millis;
        for (text, longest, expected) in [
            ("movetime 1000", None, Some(ms(900))),
            ("movetime 150", None, Some(ms(75))),
            ("movetime 20 nodes 5", None, Some(ms(10))),
            ("movetime 0", None, Some(ms(0))),
            ("movetime 1000", Some(ms(300)), Some(ms(300))),
            ("movetime 100", Some(ms(10)), Some(ms(10))),
            ("movetime 1000 wtime 1300", None, Some(ms(1000) / 30)),
            ("movetime 100 wtime 100000", None, Some(ms(50))),
            ("nodes 5", None, None),
        ] {
            let mut time = None;
            converse(parts(longest), std::io::empty(), Box::new(std::io::sink()), |dialogue| {
                time = read(text).goal(dialogue, 0).time;
                Ok(Box::new(Uci::new(dialogue)?))
            })
            .expect("a dialogue");
            assert_eq!(time, expected, "{text} within {longest:?}");
        }
    }
}
