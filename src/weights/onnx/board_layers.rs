//! Layers on boards: convolutions, and those that compute a bias or a scale of each channel from the whole board.

use super::graph::Attribute;
use super::layers::{LayerWriter, scaled_rows};
use crate::error::Result;
use crate::game::PointActions;
use crate::model::{Array, board_factor};

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

    /// Mean and maximum of the first channels' ReLU -> a bias of the others. The mean that is repeated with a factor is in the weights of
    /// the mean, and the pooled channels have weights 0.
    pub(super) fn global_pool_bias(&mut self, index: usize, pooled: usize) -> Result<String> {
        let (name, x) = (self.name(index), self.read(index));
        let shape = self.model.layers[index].shape;
        let (weight_name, weight) = self.param(index, 0);
        let factor = board_factor(shape.positions());
        let row = |row: &[f32]| -> Vec<f32> {
            let (mean, rest) = row.split_at(pooled);
            let (scaled_mean, max) = rest.split_at(pooled);
            let means = mean.iter().zip(scaled_mean);
            let means = means.map(|(&w, &scaled)| (f64::from(w) + factor * f64::from(scaled)) as f32);
            means.chain(max.iter().copied()).collect()
        };
        let mut matrix = vec![0.0; pooled * 2 * pooled];
        matrix.extend(weight.data.chunks_exact(3 * pooled).flat_map(row));
        let matrix = self.graph.matrix(weight_name, &[shape.channels(), 2 * pooled, 1, 1], &matrix)?;

        let [first, last] = [0, pooled].map(|channel| self.graph.channel(channel));
        let axis = self.graph.channel_axis();
        let active = self.graph.node("Slice", &format!("{name}.pooled"), &[&x, &first, &last, &axis], &[]);
        let active = self.graph.node("Relu", &format!("{name}.active"), &[&active], &[]);
        let mean = self.graph.node("GlobalAveragePool", &format!("{name}.mean"), &[&active], &[]);
        let max = self.graph.node("GlobalMaxPool", &format!("{name}.max"), &[&active], &[]);
        let by_channel = [Attribute::Int("axis", 1)];
        let statistics =
            self.graph.node("Concat", &format!("{name}.statistics"), &[&mean, &max], &by_channel);
        let kernel = [Attribute::Ints("kernel_shape", &[1, 1])];
        let bias = self.graph.node("Conv", &format!("{name}.biases"), &[&statistics, &matrix], &kernel);
        Ok(self.graph.node("Add", &name, &[&x, &bias], &[]))
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

    /// Means of the channels -> a hidden layer -> a scale of each channel.
    pub(super) fn squeeze_excite(&mut self, index: usize) -> Result<String> {
        let (name, x) = (self.name(index), self.read(index));
        let means = self.graph.node("GlobalAveragePool", &format!("{name}.means"), &[&x], &[]);
        let squeezed = self.on_one_square(index, 0, &format!("{name}.squeeze"), &means)?;
        let active = self.graph.node("Relu", &format!("{name}.active"), &[&squeezed], &[]);
        let excited = self.on_one_square(index, 2, &format!("{name}.excite"), &active)?;
        let scale = self.graph.node("Sigmoid", &format!("{name}.scale"), &[&excited], &[]);
        Ok(self.graph.node("Mul", &name, &[&x, &scale], &[]))
    }

    /// The linear layer of parameters `first` and the one after it, on channels of one square.
    fn on_one_square(&mut self, index: usize, first: usize, name: &str, x: &str) -> Result<String> {
        let ((weight_name, Array { shape, data }), (bias_name, bias)) =
            (self.param(index, first), self.param(index, first + 1));
        let weight = self.graph.matrix(weight_name, &[shape[0], shape[1], 1, 1], data)?;
        let bias = self.graph.vector(bias_name, &bias.shape, &bias.data)?;
        let kernel = [Attribute::Ints("kernel_shape", &[1, 1])];
        Ok(self.graph.node("Conv", name, &[x, &weight, &bias], &kernel))
    }
}
