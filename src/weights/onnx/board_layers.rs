//! Layers on boards: convolutions, and logits at points.

use super::graph::Attribute;
use super::layers::{LayerWriter, scaled_rows};
use crate::error::Result;
use crate::game::PointActions;

impl LayerWriter<'_> {
    /// A convolution with `margin` zeros around the board.
    pub(super) fn convolution(&mut self, index: usize, margin: i64) -> Result<String> {
        let norm = self.folded(index)?;
        let (name, x) = (self.name(index), self.read(index));
        let (weight_name, weight) = self.param(index, 0);
        let side = 2 * margin + 1;
        let mut inputs = vec![x];
        inputs.push(self.graph.matrix(weight_name, &weight.shape, &scaled_rows(weight, norm.as_ref()))?);
        if let Some(norm) = norm {
            let offset = &norm.offset;
            inputs.push(self.graph.vector(&format!("{name}.bias"), &[offset.len()], offset)?);
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let attributes = [Attribute::Ints("kernel_shape", &[side; 2]), Attribute::Ints("pads", &[margin; 4])];
        Ok(self.graph.node("Conv", &name, &inputs, &attributes))
    }

    /// The first channels at the points in the order of the actions, and the means of the others.
    pub(super) fn point_logits(&mut self, index: usize, actions: PointActions) -> String {
        let (name, x) = (self.name(index), self.read(index));
        let logits = self.model.input_shapes(index)[0].point_logits(actions);
        let flat = [Attribute::Int("axis", 1)];
        let [first, last, end] = [0, logits.planes, logits.channels()].map(|c| self.graph.channel(c));
        let axis = self.graph.channel_axis();
        let planes = self.graph.node("Slice", &format!("{name}.planes"), &[&x, &first, &last, &axis], &[]);
        let last_axis = [Attribute::Ints("perm", &[0, 2, 3, 1])];
        let rows = self.graph.node("Transpose", &format!("{name}.rows"), &[&planes], &last_axis);
        let shape = [0, logits.points() as i64, logits.planes as i64];
        let shape = self.graph.integers("shape_of_points", &shape);
        let rows = self.graph.node("Reshape", &format!("{name}.by_row"), &[&rows, &shape], &[]);
        let order: Vec<i64> =
            (0..logits.points()).map(|number| logits.order.point(number, logits.board) as i64).collect();
        let order = self.graph.integers("order_of_points", &order);
        let points = self.graph.node("Gather", &format!("{name}.points"), &[&rows, &order], &flat);
        let at_points = self.graph.node("Flatten", &format!("{name}.at_points"), &[&points], &flat);
        if logits.others == 0 {
            return at_points;
        }
        let others = self.graph.node("Slice", &format!("{name}.others"), &[&x, &last, &end, &axis], &[]);
        let means = self.graph.node("GlobalAveragePool", &format!("{name}.means"), &[&others], &[]);
        let means = self.graph.node("Flatten", &format!("{name}.flat_means"), &[&means], &flat);
        self.graph.node("Concat", &name, &[&at_points, &means], &flat)
    }
}
