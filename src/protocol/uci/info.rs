//! What a search found, as lines of `info` and `bestmove`.

use crate::engine::{Analysis, Move};
use crate::protocol::position::Position;
use std::fmt::Write;

/// Whether the chances of win, draw and loss are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShowWdl {
    /// They are not.
    No,
    /// They are, in thousandths.
    Yes,
}

/// The centipawns of a value in [-1, 1]: 90 tan(1.5637541897 v), the curve of Leela Chess Zero's `centipawn`.
pub fn centipawns(value: f32) -> i64 {
    (90.0 * (1.563_754_189_7 * f64::from(value.clamp(-1.0, 1.0))).tan()).round() as i64
}

/// The chances of win, draw and loss of a value in thousandths, with the sum 1000, if a draw has the chance `draw`, as far as the value
/// allows. Without a network that tells it a draw has none, which is what a value alone can tell.
pub fn wdl(value: f32, draw: f32) -> [i64; 3] {
    let draw = draw.clamp(0.0, 1.0 - value.abs());
    let thousandths = |share: f32| (1000.0 * share).round().clamp(0.0, 1000.0) as i64;
    let win = thousandths((1.0 + value - draw) / 2.0);
    let draw = thousandths(draw).min(1000 - win);
    [win, draw, 1000 - win - draw]
}

/// The lines of the `count` best moves.
pub fn lines(position: &Position, found: &Analysis, count: usize, show: ShowWdl) -> Vec<String> {
    let visited = found.moves.iter().filter(|shown| shown.visits > 0).count().max(1);
    let line = |(index, shown): (usize, &Move)| {
        let value = shown.value.unwrap_or(found.own_value());
        let (depth, nodes) = (shown.line.len().max(1), found.visits);
        let (speed, time) = (found.simulations_per_second(), (1000.0 * found.seconds) as u64);
        let mut text = format!("info depth {depth} seldepth {depth} multipv {} score ", index + 1);
        let _ = match mate(position, found, shown) {
            Some(moves) => write!(text, "mate {moves}"),
            None => write!(text, "cp {}", centipawns(value)),
        };
        if show == ShowWdl::Yes {
            let [win, draw, loss] = wdl(value, found.outcome.map_or(0.0, |[_, draw, _]| draw));
            let _ = write!(text, " wdl {win} {draw} {loss}");
        }
        let _ = write!(text, " nodes {nodes} nps {speed:.0} time {time} pv {}", shown.line_names.join(" "));
        text
    };
    found.moves.iter().take(count.min(visited)).enumerate().map(line).collect()
}

/// The moves to the mate at the end of the best line, if the search has proven it: positive if the player to move mates.
fn mate(position: &Position, found: &Analysis, shown: &Move) -> Option<i64> {
    let value = found.own_value();
    if !found.proven || value.abs() < 1.0 || shown.action != found.best().action {
        return None;
    }
    let mut end = position.clone();
    shown.line.iter().try_for_each(|&action| end.step(action)).ok()?;
    let moves = shown.line.len().div_ceil(2) as i64;
    end.is_over().then_some(if value > 0.0 { moves } else { -moves })
}

/// The line of the best move, with the expected reply.
pub fn best_move(found: &Analysis) -> String {
    let best = found.best();
    match best.line_names.get(1) {
        Some(reply) => format!("bestmove {} ponder {reply}", best.name),
        None => format!("bestmove {}", best.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centipawns_follow_the_curve() {
        assert_eq!([0.0, 0.5, -0.5].map(centipawns), [0, 89, -89]);
        assert!(centipawns(1.0) > 10_000 && centipawns(-1.0) < -10_000);
        assert!((0..200).map(|i| centipawns(i as f32 / 100.0 - 1.0)).is_sorted());
    }

    #[test]
    fn chances_are_thousandths() {
        assert_eq!(wdl(0.5, 0.0), [750, 0, 250]);
        assert_eq!(wdl(0.1, 0.5), [300, 500, 200]);
        assert_eq!(wdl(-0.75, 0.5), [0, 250, 750]);
        for value in [-1.0, -0.333, 0.0, 0.9999, 1.0] {
            for draw in [0.0, 0.123, 1.0] {
                let chances = wdl(value, draw);
                let are_shares = chances.iter().all(|&share| share >= 0);
                assert!(chances.iter().sum::<i64>() == 1000 && are_shares, "{chances:?}");
            }
        }
    }
}
