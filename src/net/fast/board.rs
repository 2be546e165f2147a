//! Which source positions an output position reads: runs of positions with the same taps.
//!
//! Activations are `[position, board, channel]`, so neighbouring positions with the same taps on the board are one long
//! run of rows for the kernel, and taps off the board cost nothing.

use super::tile::Tap;

/// Positions `first .. first + count` of the output, all with these taps, in the order of the layer's weights.
#[derive(Debug, PartialEq)]
pub(super) struct Run {
    pub first: usize,
    pub count: usize,
    pub taps: Vec<Tap>,
}

/// 3x3 convolution that keeps the board's size: in every board row the first column, the middle, the last column.
pub(super) fn conv3x3(height: usize, width: usize) -> Vec<Run> {
    let mut columns = vec![(0, 1)];
    if width > 2 {
        columns.push((1, width - 2));
    }
    if width > 1 {
        columns.push((width - 1, 1));
    }
    let run = |y: usize, (x, count): (usize, usize)| {
        let taps = (0..9).filter(|t| {
            let (sy, sx) = (y + t / 3, x + t % 3);
            (1..=height).contains(&sy) && (1..=width).contains(&sx)
        });
        let shift = |t: usize| (t / 3) as isize * width as isize + (t % 3) as isize - width as isize - 1;
        let taps = taps.map(|t| Tap { shift: shift(t), index: t }).collect();
        Run { first: y * width + x, count, taps }
    };
    (0..height).flat_map(|y| columns.iter().map(move |&c| (y, c))).map(|(y, c)| run(y, c)).collect()
}

/// 1x1 convolution on `positions`.
pub(super) fn pointwise(positions: usize) -> Vec<Run> {
    vec![Run { first: 0, count: positions, taps: vec![Tap { shift: 0, index: 0 }] }]
}

/// One output that reads every one of `positions`.
pub(super) fn dense(positions: usize) -> Vec<Run> {
    let taps = (0..positions).map(|p| Tap { shift: p as isize, index: p }).collect();
    vec![Run { first: 0, count: 1, taps }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_each_position_once_and_taps_stay_on_the_board() {
        for (height, width) in [(1, 1), (1, 2), (2, 1), (3, 3), (6, 7), (19, 19)] {
            let mut seen = vec![0; height * width];
            let mut taps = 0;
            for run in conv3x3(height, width) {
                for (p, seen) in seen.iter_mut().enumerate().skip(run.first).take(run.count) {
                    *seen += 1;
                    taps += run.taps.len();
                    for tap in &run.taps {
                        let source = p as isize + tap.shift;
                        let (dy, dx) = (tap.index as isize / 3 - 1, tap.index as isize % 3 - 1);
                        assert!((0..(height * width) as isize).contains(&source));
                        assert_eq!(source / width as isize, (p / width) as isize + dy);
                        assert_eq!(source % width as isize, (p % width) as isize + dx);
                    }
                }
            }
            assert!(seen.iter().all(|&n| n == 1));
            assert_eq!(taps, (3 * height - 2) * (3 * width - 2), "{height}x{width}");
        }
    }
}
