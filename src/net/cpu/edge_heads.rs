//! The heads of an edge network.

use super::layer::{Buffers, RowLayout};
use super::message_passing::{Activations, EdgeMessages, MessageRows, slice};
use super::packed_net::Net;

impl Net {
    /// The format of the tower's activations; edge networks have no byte format.
    pub(super) fn activations(&self) -> Activations {
        if self.kernel_set.tower.out == 1 { Activations::F32 } else { Activations::Bf16 }
    }

    /// Heads of an edge network: activations -> logits, values before their tanh.
    ///
    /// # Safety
    /// The arrays are those of the layout for `boards` boards, and distinct.
    pub(super) unsafe fn edge_heads(
        &self,
        boards: usize,
        messages: &EdgeMessages,
        [a, hidden, logits, out]: [RowLayout; 4],
        rows: MessageRows,
    ) {
        let packed = &self.packed;
        let buffers =
            |source: RowLayout, out: RowLayout| Buffers { source, stream: out, out, ends: RowLayout::NONE };
        // SAFETY: the kernel contract.
        unsafe {
            packed.policy.run(boards, buffers(a, rows.logits));
            let edges = messages.edges.len();
            let by_edge: &[f32] = slice(rows.logits, edges, boards);
            let by_board: &mut [f32] = slice(logits, 1, boards);
            for (edge, logits) in by_edge.chunks_exact(boards).enumerate() {
                by_board[edge..].iter_mut().step_by(edges).zip(logits).for_each(|(to, from)| *to = *from);
            }
            messages.pool(boards, self.activations(), a, rows.pooled);
            packed.hidden.run(boards, buffers(rows.pooled, hidden));
            packed.value.run(boards, buffers(hidden, out));
        }
    }
}
