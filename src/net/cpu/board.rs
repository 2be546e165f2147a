//! The source positions that each output position reads, as runs of positions with the same taps.
//!
//! Activations are `[position, board, channel]`, so neighbouring positions with the same taps are one contiguous range of rows for
//! the kernel. Taps off the board are left out and cost nothing.

use super::tile::Tap;
use crate::model::CompleteGraph;

/// The `count` positions `first`, `first + step`, ..., all with these taps, in the order of the layer's weights. In a network on the
/// edges of K_n the positions are edges: all have the vertex `ends[0]`, and the other vertex counts up from `ends[1]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TapRun {
    pub first: usize,
    pub count: usize,
    pub step: usize,
    pub taps: Vec<Tap>,
    pub ends: [usize; 2],
}

/// No positions.
pub(super) static NO_POSITIONS: TapRun =
    TapRun { first: 0, count: 0, step: 1, taps: Vec::new(), ends: [0; 2] };

/// The runs of a layer.
#[derive(Clone)]
pub(super) struct Runs {
    /// For any number of boards.
    pub many: Vec<TapRun>,
    /// For one board, if longer runs are possible then. Only these may have a step over 1.
    single: Option<Vec<TapRun>>,
}

impl Runs {
    /// The runs for a chunk of `boards`.
    pub(super) fn of(&self, boards: usize) -> &[TapRun] {
        match &self.single {
            Some(single) if boards == 1 => single,
            _ => &self.many,
        }
    }

    /// A 3x3 convolution with zero padding.
    pub(super) fn conv3x3(height: usize, width: usize) -> Self {
        Self { many: conv3x3(height, width), single: Some(conv3x3_single(height, width)) }
    }

    /// A 1x1 convolution on `positions`.
    pub(super) fn pointwise(positions: usize) -> Self {
        let taps = vec![Tap { shift: 0, index: 0 }];
        Self { many: vec![TapRun { first: 0, count: positions, step: 1, taps, ends: [0; 2] }], single: None }
    }

    /// The same weights at every edge of a complete graph.
    pub(super) fn edges(edges: &CompleteGraph) -> Self {
        let run = |vertex: usize| TapRun {
            first: edges.ends.partition_point(|ends| ends[0] < vertex),
            count: edges.vertices - 1 - vertex,
            step: 1,
            taps: vec![Tap { shift: 0, index: 0 }],
            ends: [vertex, vertex + 1],
        };
        Self { many: (0..edges.vertices - 1).map(run).collect(), single: None }
    }

    /// A linear layer on the flattened board: one output position with a tap for each of `positions`.
    pub(super) fn dense(positions: usize) -> Self {
        let taps = (0..positions).map(|p| Tap { shift: p as isize, index: p }).collect();
        Self { many: vec![TapRun { first: 0, count: 1, step: 1, taps, ends: [0; 2] }], single: None }
    }
}

/// A 3x3 convolution: in every board row one run each for the first column, the middle and the last column.
fn conv3x3(height: usize, width: usize) -> Vec<TapRun> {
    let stripes = stripes(width);
    let run = |y: usize, &(x, count): &(usize, usize)| TapRun {
        first: y * width + x,
        count,
        step: 1,
        taps: taps3x3(height, width, y, x),
        ends: [0; 2],
    };
    (0..height).flat_map(|y| stripes.iter().map(move |stripe| run(y, stripe))).collect()
}

/// The same for a single board: the single squares of the left and right border are joined into runs along the column, so that the
/// kernel has more independent sums in flight.
fn conv3x3_single(height: usize, width: usize) -> Vec<TapRun> {
    let (mut runs, rest): (Vec<_>, Vec<_>) =
        conv3x3(height, width).into_iter().partition(|run| run.count > 1);
    let mut edges: Vec<TapRun> = Vec::new();
    for run in rest {
        let above = edges
            .iter_mut()
            .find(|edge| edge.taps == run.taps && run.first == edge.first + edge.count * width);
        match above {
            Some(edge) => edge.count += 1,
            None => edges.push(TapRun { step: width, ..run }),
        }
    }
    runs.extend(edges);
    runs
}

/// First column and number of columns with the same taps.
fn stripes(width: usize) -> Vec<(usize, usize)> {
    let all = [(0, 1), (1, width.saturating_sub(2)), (width - 1, usize::from(width > 1))];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// The taps of the square in row y and column x that are on the board.
fn taps3x3(height: usize, width: usize, y: usize, x: usize) -> Vec<Tap> {
    let on_board = |t: &usize| (1..=height).contains(&(y + t / 3)) && (1..=width).contains(&(x + t % 3));
    let shift = |t: usize| (t / 3) as isize * width as isize + (t % 3) as isize - width as isize - 1;
    (0..9).filter(on_board).map(|t| Tap { shift: shift(t), index: t }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_each_position_once_and_taps_stay_on_the_board() {
        for (height, width) in [(1, 1), (1, 2), (2, 1), (3, 3), (6, 7), (19, 19)] {
            for runs in [conv3x3(height, width), conv3x3_single(height, width)] {
                let mut seen = vec![0; height * width];
                for run in &runs {
                    for i in 0..run.count {
                        let p = run.first + i * run.step;
                        seen[p] += 1;
                        run.taps.iter().for_each(|tap| check_tap(tap, p, height, width));
                    }
                }
                assert!(seen.iter().all(|&n| n == 1));
                let taps: usize = runs.iter().map(|run| run.count * run.taps.len()).sum();
                assert_eq!(taps, (3 * height - 2) * (3 * width - 2), "{height}x{width}");
            }
        }
    }

    fn check_tap(tap: &Tap, position: usize, height: usize, width: usize) {
        let source = position as isize + tap.shift;
        let (dy, dx) = (tap.index as isize / 3 - 1, tap.index as isize % 3 - 1);
        assert!((0..(height * width) as isize).contains(&source));
        assert_eq!(source / width as isize, (position / width) as isize + dy);
        assert_eq!(source % width as isize, (position % width) as isize + dx);
    }

    #[test]
    fn a_single_board_has_few_runs_of_one_square() {
        let singles = |runs: Vec<TapRun>| runs.iter().filter(|run| run.count == 1).count();
        assert_eq!(singles(conv3x3(6, 7)), 12);
        assert_eq!(singles(conv3x3_single(6, 7)), 4);
    }
}
