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

    /// The logits `[A]` of one board, of which `channel` gives channel c at point p.
    pub fn read(self, channel: impl Fn(usize, usize) -> f32, logits: &mut [f32]) {
        let (at_points, others) = logits.split_at_mut(self.points() * self.planes);
        for (number, logits) in at_points.chunks_exact_mut(self.planes).enumerate() {
            let point = self.order.point(number, self.board);
            logits.iter_mut().enumerate().for_each(|(plane, logit)| *logit = channel(plane, point));
        }
        for (other, logit) in others.iter_mut().enumerate() {
            let sum: f32 = (0..self.points()).map(|point| channel(self.planes + other, point)).sum();
            *logit = sum / self.points() as f32;
        }
    }

    /// The gradient of channel `channel` at `point`, given that of the logits.
    pub fn gradient(self, d_logits: &[f32], channel: usize, point: usize) -> f32 {
        match channel.checked_sub(self.planes) {
            None => d_logits[self.order.number(point, self.board) * self.planes + channel],
            Some(other) => d_logits[self.points() * self.planes + other] / self.points() as f32,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading, its gradient and the factors are one linear map.
    #[test]
    fn the_gradient_is_the_transpose_of_reading() {
        for (order, planes, others) in
            [(PointOrder::Rows, 1, 0), (PointOrder::Rows, 3, 2), (PointOrder::Columns, 2, 1)]
        {
            let channels = planes + others;
            let logits = PointLogits { board: [2, 3], order, planes, others };
            assert_eq!(logits.num_logits(), 6 * planes + others);
            for (channel, point) in
                (0..channels).flat_map(|channel| (0..6).map(move |point| (channel, point)))
            {
                let mut column = vec![9.0; logits.num_logits()];
                logits.read(|c, p| f32::from(u8::from((c, p) == (channel, point))), &mut column);
                for (action, &factor) in column.iter().enumerate() {
                    let mut d = vec![0.0; logits.num_logits()];
                    d[action] = 1.0;
                    assert_eq!(logits.gradient(&d, channel, point), factor, "{order:?}: {action}");
                    let source = logits.source(action, point).filter(|source| source.0 == channel);
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
