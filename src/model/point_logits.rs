//! From the channels at the points of a board to logits.

use crate::game::PointOrder;

/// Which channel at which point is the logit of which action: action `k * planes + plane` is channel `plane` at point k in `order`;
/// action `points * planes + other` is the mean of channel `planes + other` over the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointLogits {
    /// Rows and columns of the board.
    pub board: [usize; 2],
    /// The order of its points.
    pub order: PointOrder,
    /// Actions at each of them.
    pub planes: usize,
    /// Actions at none.
    pub others: usize,
}

impl PointLogits {
    /// Points of the board.
    pub fn points(self) -> usize {
        self.board[0] * self.board[1]
    }

    /// A: logits.
    pub fn num_logits(self) -> usize {
        self.points() * self.planes + self.others
    }

    /// Channels at a point.
    pub fn channels(self) -> usize {
        self.planes + self.others
    }

    /// The logits `[boards, A]`, boards > 0, of the channels at the front of `rows [points, boards, stride]`.
    pub fn read(self, rows: &[f32], stride: usize, logits: &mut [f32]) {
        let (num_logits, at_points) = (self.num_logits(), self.points() * self.planes);
        let boards = logits.len() / num_logits;
        for number in 0..self.points() {
            let from = &rows[self.order.point(number, self.board) * boards * stride..];
            let to = &mut logits[number * self.planes..];
            copy_columns(self.planes, (from, stride), (to, num_logits));
        }
        for (board, logits) in logits.chunks_exact_mut(num_logits).enumerate() {
            for (channel, logit) in (self.planes..).zip(&mut logits[at_points..]) {
                let at = |point: usize| rows[(point * boards + board) * stride + channel];
                *logit = (0..self.points()).map(at).sum::<f32>() / self.points() as f32;
            }
        }
    }

    /// Writes the gradient of the channels at the front of `d_rows [points, boards, stride]`, given that of the logits `[boards, A]`,
    /// boards > 0.
    pub fn gradient(self, d_logits: &[f32], stride: usize, d_rows: &mut [f32]) {
        let (num_logits, at_points) = (self.num_logits(), self.points() * self.planes);
        let boards = d_logits.len() / num_logits;
        for number in 0..self.points() {
            let to = &mut d_rows[self.order.point(number, self.board) * boards * stride..];
            let from = &d_logits[number * self.planes..];
            copy_columns(self.planes, (from, num_logits), (to, stride));
        }
        for (row, d_row) in d_rows.chunks_exact_mut(stride).enumerate() {
            let of_means = &d_logits[row % boards * num_logits + at_points..][..self.others];
            let means = d_row[self.planes..].iter_mut().zip(of_means);
            means.for_each(|(d, of_mean)| *d = of_mean / self.points() as f32);
        }
    }

    /// The channel that the logit of `action` reads at `point`, and its factor.
    pub fn source(self, action: usize, point: usize) -> Option<(usize, f32)> {
        match action.checked_sub(self.points() * self.planes) {
            None => {
                let at = self.order.point(action / self.planes, self.board);
                (at == point).then_some((action % self.planes, 1.0))
            }
            Some(other) => Some((self.planes + other, 1.0 / self.points() as f32)),
        }
    }
}

/// Copies the first `count` numbers of each row of one array to the other, until one of them ends; both with the length of a row.
fn copy_columns(count: usize, (from, from_row): (&[f32], usize), (to, to_row): (&mut [f32], usize)) {
    if count == 1 {
        // One number by itself: 2 % of a pass in Hex, where the copy of a slice is a call.
        let from = from.iter().step_by(from_row);
        return to.iter_mut().step_by(to_row).zip(from).for_each(|(to, from)| *to = *from);
    }
    let rows = to.chunks_mut(to_row).zip(from.chunks(from_row));
    rows.for_each(|(to, from)| to[..count].copy_from_slice(&from[..count]));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading, its gradient and the factors are one linear map, the same for every board.
    #[test]
    fn the_gradient_is_the_transpose_of_reading() {
        const BOARDS: usize = 3;
        for (order, planes, others) in
            [(PointOrder::Rows, 1, 0), (PointOrder::Rows, 3, 2), (PointOrder::Columns, 2, 1)]
        {
            let logits = PointLogits { board: [2, 3], order, planes, others };
            let (channels, count, stride) = (planes + others, 6 * planes + others, planes + others + 2);
            assert_eq!(logits.num_logits(), count);
            for at in 0..6 * BOARDS * channels {
                let (point, board, channel) = (at / channels / BOARDS, at / channels % BOARDS, at % channels);
                let index = (point * BOARDS + board) * stride + channel;
                let mut rows = vec![0.0; 6 * BOARDS * stride];
                rows[index] = 1.0;
                let mut column = vec![9.0; BOARDS * count];
                logits.read(&rows, stride, &mut column);
                for (action, &factor) in column.iter().enumerate() {
                    let mut d = vec![0.0; BOARDS * count];
                    d[action] = 1.0;
                    let mut d_rows = vec![0.0; rows.len()];
                    logits.gradient(&d, stride, &mut d_rows);
                    assert_eq!(d_rows[index], factor, "{order:?}: {action}");
                    let own = action / count == board;
                    let source =
                        logits.source(action % count, point).filter(|source| own && source.0 == channel);
                    assert_eq!(source.map_or(0.0, |source| source.1), factor, "{order:?}: {action}");
                }
                assert_eq!(column.iter().sum::<f32>(), if channel < planes { 1.0 } else { 1.0 / 6.0 });
            }
        }
    }

    /// In chess square a1 is number 0 and in the last row, a8 number 7 and first.
    #[test]
    fn columns_begin_at_the_last_row() {
        let board = [8, 8];
        let point = |number| PointOrder::Columns.point(number, board);
        assert_eq!([0, 7, 8, 63].map(point), [56, 0, 57, 7]);
        let numbers: Vec<usize> = (0..6)
            .map(|number| PointOrder::Columns.number(PointOrder::Columns.point(number, [2, 3]), [2, 3]))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    }
}
