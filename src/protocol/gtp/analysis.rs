//! What a search found, as clients of Leela Zero (`lz-analyze`) and of KataGo (`kata-analyze`) read it.

use super::game::{Board, player_of};
use crate::engine::{Analysis, Move};
use crate::protocol::position::Position;
use crate::protocol::restriction::{Restriction, Restricts};
use std::fmt::Write;
use std::time::Duration;

/// The program whose clients read the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Numbers in hundredths of a percent.
    LeelaZero,
    /// Numbers from 0 to 1.
    KataGo,
}

/// A request for lines of analysis.
#[derive(Clone, Debug)]
pub struct Request {
    /// The form of the lines.
    pub style: Style,
    /// The player whose move is analysed; None for the player to move.
    pub player: Option<u8>,
    /// Time between two lines; None for none.
    pub interval: Option<Duration>,
    /// Minimum number of moves of a line, if so many are legal.
    pub min_moves: usize,
    /// Maximum number of moves of a line.
    pub max_moves: usize,
    /// Whether a line ends with the facts of the position.
    pub root_info: bool,
    /// The moves of the position that are searched, or not.
    pub restrictions: Vec<Restriction>,
}

/// A number of hundredths of a second, at least one: a line after each pass would be more than anybody reads.
fn centiseconds(text: &str) -> Option<Duration> {
    let value: f64 = text.parse().ok()?;
    let time = Duration::try_from_secs_f64(value / 100.0).ok()?;
    Some(time.max(Duration::from_millis(10)))
}

impl Request {
    /// Reads `[colour] [interval] [keyword value]..`. Keywords of which nothing is known are passed over with their value.
    pub fn read(style: Style, arguments: &[&str]) -> Option<Self> {
        let mut request = Self {
            style,
            player: None,
            interval: None,
            min_moves: 0,
            max_moves: usize::MAX,
            root_info: false,
            restrictions: Vec::new(),
        };
        let mut words = arguments.iter().copied().peekable();
        if let Some(player) = words.peek().and_then(|word| player_of(word)) {
            request.player = Some(player);
            words.next();
        }
        if let Some(interval) = words.peek().and_then(|word| centiseconds(word)) {
            request.interval = Some(interval);
            words.next();
        }
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word.to_ascii_lowercase().as_str() {
                "interval" => request.interval = Some(centiseconds(value)?),
                "minmoves" => request.min_moves = value.parse().ok()?,
                "maxmoves" => request.max_moves = value.parse().ok()?,
                "rootinfo" => request.root_info = value == "true",
                // A colour, points, and a number of moves: the search is restricted in the position alone, as by the number 1.
                restricts @ ("avoid" | "allow") => {
                    let player = player_of(value)?;
                    let moves = words.next()?.split(',').map(str::to_string).collect();
                    words.next()?.parse::<u32>().ok().filter(|&moves| moves > 0)?;
                    let restricts = if restricts == "allow" { Restricts::Others } else { Restricts::These };
                    request.restrictions.push(Restriction { restricts, player, moves });
                }
                _ => {}
            }
        }
        Some(request)
    }

    /// The line of what was found in `position`.
    pub fn line(&self, board: &Board, position: &Position, found: &Analysis) -> String {
        let visited = found.moves.iter().filter(|shown| shown.visits > 0).count();
        let count = visited.max(self.min_moves).max(1).min(self.max_moves.max(1));
        let mut text = String::new();
        for (order, shown) in found.moves.iter().take(count).enumerate() {
            if order > 0 {
                text.push(' ');
            }
            self.write_move(&mut text, board, position, (order, shown, found));
        }
        if self.root_info && self.style == Style::KataGo {
            let value = found.own_value();
            let _ = write!(
                text,
                " rootInfo visits {} utility {value:.6} winrate {:.6}",
                found.visits,
                share(value)
            );
        }
        text
    }

    fn write_move(
        &self,
        text: &mut String,
        board: &Board,
        position: &Position,
        (order, shown, found): (usize, &Move, &Analysis),
    ) {
        let Move { visits, prior, .. } = *shown;
        let value = shown.value.unwrap_or(found.own_value());
        let pv = position.names(&shown.line, |play, action| board.vertex(play, action)).join(" ");
        let (winrate, bound) = (share(value), lower_bound(value, visits));
        let vertex = board.vertex(position.play(), shown.action);
        let _ = match self.style {
            Style::LeelaZero => {
                let whole = |value: f32| (10_000.0 * value).round() as i64;
                let [winrate, prior, bound] = [winrate, prior, bound].map(whole);
                write!(
                    text,
                    "info move {vertex} visits {visits} winrate {winrate} prior {prior} lcb {bound} order {order} pv {pv}"
                )
            }
            Style::KataGo => write!(
                text,
                "info move {vertex} visits {visits} utility {value:.6} winrate {winrate:.6} prior {prior:.6} \
                 lcb {bound:.6} order {order} pv {pv}"
            ),
        };
    }
}

/// The share of points of a value in [-1, 1].
pub fn share(value: f32) -> f32 {
    (1.0 + value) / 2.0
}

/// A lower bound of the share of points after `visits` visits: two standard errors below it, with the largest variance that results in
/// [-1, 1] of this mean can have.
fn lower_bound(value: f32, visits: u64) -> f32 {
    let error = ((1.0 - value * value).max(0.0) / visits.max(1) as f32).sqrt();
    (share(value) - error).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_analysis_are_read() {
        let read = |text: &str| Request::read(Style::KataGo, &text.split_whitespace().collect::<Vec<_>>());
        let request = read("b 50 minmoves 3 maxmoves 7 rootInfo true ownership true").expect("read");
        assert_eq!((request.player, request.interval), (Some(0), Some(Duration::from_millis(500))));
        assert_eq!((request.min_moves, request.max_moves, request.root_info), (3, 7, true));
        let request = read("interval 12.5 avoid w D4,E5 1 allow b pass 2").expect("read");
        assert_eq!((request.player, request.interval), (None, Some(Duration::from_millis(125))));
        let [avoid, allow] = &request.restrictions[..] else { panic!("{request:?}") };
        assert_eq!((avoid.restricts, avoid.player, avoid.moves.len()), (Restricts::These, 1, 2));
        assert_eq!((allow.restricts, allow.player, &*allow.moves[0]), (Restricts::Others, 0, "pass"));
        assert_eq!(read("").expect("read").interval, None);
        for wrong in [
            "interval",
            "interval x",
            "interval -1",
            "interval nan",
            "minmoves -1",
            "avoid x D4 1",
            "avoid b D4",
            "avoid b D4 x",
            "allow b D4 0",
            "b 5 6",
        ] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_bound_is_below_the_share_and_comes_nearer() {
        let bounds = [1, 100, 10_000].map(|visits| lower_bound(0.2, visits));
        assert!(bounds.is_sorted() && bounds[2] < share(0.2) && bounds[2] > 0.58, "{bounds:?}");
        assert_eq!((lower_bound(1.0, 1), lower_bound(-1.0, 1)), (1.0, 0.0));
    }
}
