//! One chunk of boards through the whole network.

use super::chunk::ChunkLayout;
use super::format::WeightFormat;
use super::im2col::Boards;
use super::layer::{Buffers, CacheLine, LINE, RowLayout, RowPlacement, lines};
use super::message_passing::{MessageRows, slice};
use super::observe::Observations;
use super::packed_net::Net;
use crate::error::{Error, Result};

/// A callback with the index and the activations of a tower layer.
pub(super) type LayerHook<'a> = &'a mut dyn FnMut(usize, &[f32]);

/// Work space of one chunk; grows to the largest chunk met.
#[derive(Default)]
pub(super) struct Workspace {
    /// Observations as the stem reads them, and activations.
    arrays: Vec<CacheLine>,
    /// Scratch on the way from observations to im2col patches.
    boards: Boards,
}

impl Net {
    /// Evaluates one chunk: `obs [boards, F]` to `outputs`, logits `[boards, A]`, or none where they are not read, and values `[boards, P]`.
    pub(super) fn chunk(
        &self,
        work: &mut Workspace,
        obs: &[f32],
        [logits, values]: [&mut [f32]; 2],
        hook: LayerHook<'_>,
    ) -> Result<()> {
        let out = self.value_outputs(work, obs, logits, hook)?;
        self.store_values(out, values);
        Ok(())
    }

    /// One chunk up to the function of the value head: returns what its last linear layer gives, `[boards, outputs]`.
    pub(super) fn value_outputs<'a>(
        &self,
        Workspace { arrays, boards: squares }: &'a mut Workspace,
        obs: &[f32],
        logits: &mut [f32],
        hook: LayerHook<'_>,
    ) -> Result<&'a [f32]> {
        if self.kernel_set.tower.unit == 4 {
            // In bytes a NaN would become a number.
            check_finite("an observation", obs)?;
        }
        let boards = obs.len() / self.model.obs().len();
        let layout = self.layout();
        let need = layout.words(boards);
        let total: usize = need.iter().sum();
        if arrays.len() * LINE < total {
            *arrays = lines(total);
        }
        let mut rest: &mut [f32] = bytemuck::cast_slice_mut(arrays);
        let arrays = need.map(|words| {
            let (array, after) = std::mem::take(&mut rest).split_at_mut(words);
            rest = after;
            array
        });
        // SAFETY: the kernels' instructions were detected when the network was packed; the arrays are those of the layout,
        // each for `boards` boards, and distinct.
        let out = unsafe { self.run_layers(&layout, (obs, squares), arrays, &mut *logits, hook) };
        check_finite("a logit", logits)?;
        let out = &out[..boards * self.model.outputs(self.tower.values)];
        check_finite("an output of the value head", out)?;
        Ok(out)
    }

    /// All layers on one chunk: observations -> `logits [boards, A]`, or none. Returns the array of the values before their tanh.
    ///
    /// # Safety
    /// The machine has the kernels' instructions; the arrays are those of [`ChunkLayout::words`] for the boards of `obs`.
    unsafe fn run_layers<'a>(
        &self,
        layout: &ChunkLayout,
        (obs, squares): (&[f32], &mut Boards),
        arrays: [&'a mut [f32]; 11],
        logits: &mut [f32],
        hook: LayerHook<'_>,
    ) -> &'a [f32] {
        let boards = obs.len() / self.model.obs().len();
        let [planes, stream, a, b, heads, hidden, out, sums, ends, pooled, by_point] = arrays;
        // SAFETY: the kernel contract; the arrays are distinct.
        unsafe {
            let at = |array: &mut [f32], row| RowLayout::whole(array, boards, row);
            // Messages between the layers of an edge network read whole rows.
            let is_blocked =
                self.packed.messages.is_none() && self.kernel_set.tower.strip_rows(boards).is_some();
            let tower = if is_blocked { RowLayout::blocked } else { RowLayout::whole };
            let planes = self.observe(layout, obs, squares, (planes, tower));
            let stream = tower(stream, boards, layout.stream_row);
            let [a, b] = [a, b].map(|array| tower(array, boards, layout.act_row));
            let (heads, hidden) = (at(heads, layout.head_row), at(hidden, layout.hidden_row));
            let logits = match logits.is_empty() {
                true => RowLayout::NONE,
                false => at(logits, self.model.num_actions()),
            };
            let values = at(out, layout.value_row);
            let rows = MessageRows {
                sums: at(sums, layout.act_row),
                ends: at(ends, layout.stream_row),
                pooled: at(pooled, layout.stream_row),
                logits: at(by_point, layout.logits_row.max(1)),
            };
            let matrices = self.kernel_set.tower.matrices.as_ref();
            matrices.inspect(|m| (m.begin)(m.rows));
            self.tower(boards, planes, [stream, a, b], rows, hook);
            match &self.packed.messages {
                Some(messages) => self.edge_heads(boards, messages, [a, hidden, logits, values], rows),
                None => self.heads(boards, [a, heads, hidden, logits, values], rows.logits),
            }
            matrices.inspect(|m| (m.end)());
        }
        out
    }

    /// Writes the stem's input. `tower` is the layout of rows in the tower.
    fn observe(
        &self,
        layout: &ChunkLayout,
        obs: &[f32],
        squares: &mut Boards,
        (planes, tower): (&mut [f32], RowPlacement),
    ) -> RowLayout {
        let (len, positions) = (self.model.obs().len(), layout.positions);
        let (boards, channels) = (obs.len() / len, len / positions);
        if let Some(im2col) = &self.packed.im2col {
            let to = tower(planes, boards, layout.obs_row);
            im2col.rows(obs, squares, planes, to);
            return tower(planes, boards, layout.obs_row);
        }
        let sizes = Observations { boards, channels, positions, row: layout.obs_row };
        match self.kernel_set.stem.weights {
            WeightFormat::Rounded => sizes.rounded_units(obs, planes),
            _ if self.kernel_set.stem.unit == 1 => sizes.f32_units(obs, planes),
            _ => sizes.bf16_units(obs, planes),
        }
        RowLayout::whole(planes, boards, layout.obs_row)
    }

    /// Stem and blocks: observations -> normalised activations in `a`.
    ///
    /// # Safety
    /// The arrays are those of the layout for `boards` boards.
    unsafe fn tower(
        &self,
        boards: usize,
        planes: RowLayout,
        [stream, a, b]: [RowLayout; 3],
        message_rows: MessageRows,
        hook: LayerHook<'_>,
    ) {
        let ends = message_rows.ends;
        let words = self.layout().positions * a.position;
        // SAFETY: the kernel contract; the output of a layer is never its input; `a` and `b` hold `words` words.
        unsafe {
            // From the first layer on that reads the blocked layout, all layers that multiply matrices run in strips.
            let tower = self.kernel_set.tower;
            let strips = tower.matrices.as_ref().zip(tower.strip_rows(boards));
            strips.filter(|_| planes.is_blocked()).inspect(|(m, rows)| (m.begin)(*rows));
            self.packed.stem.run(boards, Buffers { source: planes, stream, out: a, ends });
            strips.filter(|_| a.is_blocked()).inspect(|(m, rows)| (m.begin)(*rows));
            hook(0, std::slice::from_raw_parts(a.start, words));
            for (i, [first, second]) in self.packed.blocks.iter().enumerate() {
                if let Some(messages) = &self.packed.messages {
                    messages.send(i, boards, self.activations(), a, message_rows);
                }
                first.run(boards, Buffers { source: a, stream, out: b, ends });
                hook(2 * i + 1, std::slice::from_raw_parts(b.start, words));
                if let Some(messages) = &self.packed.messages {
                    messages.mix(i, boards, self.activations(), b);
                }
                second.run(boards, Buffers { source: b, stream, out: a, ends });
                hook(2 * i + 2, std::slice::from_raw_parts(a.start, words));
            }
        }
    }

    /// Heads: activations -> logits, unless there are no rows for them, and values before their tanh.
    ///
    /// # Safety
    /// As for `tower`.
    unsafe fn heads(
        &self,
        boards: usize,
        [a, heads, hidden, logits, out]: [RowLayout; 5],
        by_point: RowLayout,
    ) {
        let packed = &self.packed;
        let buffers = |source, out| Buffers { source, stream: out, out, ends: RowLayout::NONE };
        // SAFETY: the kernel contract; value channels follow the policy channels in a row of `heads`.
        unsafe {
            let (policy, value) = match (&packed.head, self.tower.heads) {
                (Some(head), Some([policy, _])) => {
                    head.run(boards, buffers(a, heads));
                    let start = heads.start.add(self.model.outputs(policy.conv));
                    (heads, RowLayout { start, ..heads })
                }
                _ => (a, a),
            };
            match self.model.point_logits() {
                _ if logits.start.is_null() => {}
                Some(_) => self.point_logits(boards, policy, [by_point, logits]),
                None => packed.policy.run(boards, buffers(policy, logits)),
            }
            packed.hidden.run(boards, buffers(value, hidden));
            packed.value.run(boards, buffers(hidden, out));
        }
    }

    /// The policy layer at each position, then logits by board.
    ///
    /// # Safety
    /// As for `tower`; the network has [`Model::point_logits`](crate::model::Model::point_logits).
    pub(super) unsafe fn point_logits(
        &self,
        boards: usize,
        source: RowLayout,
        [by_point, logits]: [RowLayout; 2],
    ) {
        let Some(points) = self.model.point_logits() else { return };
        // SAFETY: the kernel contract; rows of `by_point` and `logits` have no padding.
        unsafe {
            let buffers = Buffers { source, stream: by_point, out: by_point, ends: RowLayout::NONE };
            self.packed.policy.run(boards, buffers);
            let rows: &[f32] = slice(by_point, points.points(), boards);
            points.read(rows, points.channels(), slice(logits, 1, boards));
        }
    }

    /// Values of all players, from the outputs of the value head.
    fn store_values(&self, outputs: &[f32], values: &mut [f32]) {
        let (players, function) = (self.model.num_players, self.tower.value_function);
        let opposite = self.model.num_values() < players;
        let rows = outputs.chunks_exact(self.model.outputs(self.tower.values));
        for (outputs, values) in rows.zip(values.chunks_exact_mut(players)) {
            function.apply(outputs, values);
            if let ([v, other], true) = (values, opposite) {
                *other = -*v;
            }
        }
    }
}

fn check_finite(what: &str, numbers: &[f32]) -> Result<()> {
    // Without an early exit the compiler vectorises the loop, and nearly all arrays are finite.
    if numbers.iter().fold(true, |finite, x| finite & x.is_finite()) {
        return Ok(());
    }
    let value = numbers.iter().copied().find(|x| !x.is_finite()).unwrap_or(f32::NAN);
    Err(Error::NotFinite { what: format!("{what} of the network"), value })
}
