//! The heads of an edge network.

use super::format::Activations;
use super::layer::{Buffers, RowLayout};
use super::message_passing::{EdgeMessages, MessageRows};
use super::packed_net::Net;

impl Net {
    /// The format of the tower's activations.
    pub(super) fn activations(&self) -> Activations {
        self.kernel_set.tower.writes
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
            self.point_logits(boards, a, [rows.logits, logits]);
            messages.pool(boards, self.activations(), a, rows.pooled);
            packed.hidden.run(boards, buffers(rows.pooled, hidden));
            packed.value.run(boards, buffers(hidden, out));
        }
    }
}
