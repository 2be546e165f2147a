//! The decisions of a device in a poll, read in place from the bytes that its kernels wrote, without a copy or an allocation a decision.
//! The arrays of a summary are those of `Summary` in `kernels/search/root.cuh`.

use crate::device_struct::device_struct;
use crate::play::DecidedPly;
use bytemuck::{Pod, Zeroable};

device_struct! {
    /// The scalars of a row's summary, in front of its arrays.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub(super) struct SummaryHead {
        /// E of the root.
        num_edges: u32,
        /// Index of the best action.
        best: u32,
        /// The player to move.
        player: u32,
        /// 1 where the value is proven.
        proven: u32,
    }
}

/// Bytes of the scalars in front of a summary's arrays.
const HEAD_BYTES: usize = size_of::<SummaryHead>();

/// The sizes of a summary's arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryFormat {
    /// P.
    pub players: usize,
    /// E, rounded up to a whole number of partial sums.
    pub padded_edges: usize,
}

impl SummaryFormat {
    /// Bytes of one summary, a multiple of 4.
    pub fn bytes(self) -> usize {
        HEAD_BYTES + 4 * self.players + 22 * self.padded_edges
    }

    /// Bytes of one decision: its head and its summary.
    pub fn decision_bytes(self) -> usize {
        size_of::<DecisionHead>() + self.bytes()
    }
}

/// The search result of one row.
#[derive(Clone, Copy, Debug)]
pub struct SummaryView<'a> {
    bytes: &'a [u8],
    format: SummaryFormat,
}

impl<'a> SummaryView<'a> {
    /// The summary at the beginning of `bytes`, whose address is a multiple of 4.
    pub fn new(bytes: &'a [u8], format: SummaryFormat) -> Self {
        Self { bytes: &bytes[..format.bytes()], format }
    }

    fn head(&self) -> &'a SummaryHead {
        bytemuck::from_bytes(&self.bytes[..HEAD_BYTES])
    }

    /// E of the root.
    fn num_edges(&self) -> usize {
        self.head().num_edges as usize
    }

    /// Index of the best action.
    pub fn best(&self) -> usize {
        self.head().best as usize
    }

    /// The player to move.
    pub fn player(&self) -> u8 {
        self.head().player as u8
    }

    /// True where the value is proven.
    pub fn proven(&self) -> bool {
        self.head().proven != 0
    }

    /// The root's value for every player. `[P]`
    pub fn value(&self) -> &'a [f32] {
        bytemuck::cast_slice(&self.bytes[HEAD_BYTES..HEAD_BYTES + 4 * self.format.players])
    }

    /// The array of 32-bit elements with this index: visits, new visits, prior, Q, policy. `[E]`
    fn array<T: Pod>(&self, index: usize) -> &'a [T] {
        let start = HEAD_BYTES + 4 * self.format.players + 4 * self.format.padded_edges * index;
        bytemuck::cast_slice(&self.bytes[start..start + 4 * self.num_edges()])
    }

    /// Visits, inherited ones included. `[E]`
    pub fn visits(&self) -> &'a [i32] {
        self.array(0)
    }

    /// Visits of the ply's own simulations. `[E]`
    pub fn new_visits(&self) -> &'a [i32] {
        self.array(1)
    }

    /// The network's priors. `[E]`
    pub fn prior(&self) -> &'a [f32] {
        self.array(2)
    }

    /// Mean values for the player to move. `[E]`
    pub fn q(&self) -> &'a [f32] {
        self.array(3)
    }

    /// The policy target. `[E]`
    pub fn policy(&self) -> &'a [f32] {
        self.array(4)
    }

    /// The legal actions. `[E]`
    pub fn actions(&self) -> &'a [u16] {
        let start = HEAD_BYTES + 4 * self.format.players + 20 * self.format.padded_edges;
        bytemuck::cast_slice(&self.bytes[start..start + 2 * self.num_edges()])
    }
}

device_struct! {
    /// One decided ply, in front of its summary.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub(super) struct DecisionHead {
        /// The game slot.
        slot: u32,
        /// Passes since the slots were attached, this one included.
        pass: u32,
        /// Index of the action in the legal list.
        action_index: u32,
        padding: u32,
    }
}

/// One decided ply of one game slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision<'a> {
    /// The slot's index among the attached ones.
    pub slot: usize,
    /// Passes since the slots were attached, this one included.
    pub pass: u32,
    /// The ply.
    pub ply: DecidedPly<'a>,
}

/// The decisions of one device in one poll. Those of one slot are in the order of their passes.
#[derive(Clone, Copy, Debug)]
pub struct DecisionBlock<'a> {
    bytes: &'a [u8],
    format: SummaryFormat,
    first_slot: usize,
}

impl<'a> DecisionBlock<'a> {
    /// The decisions that lie one after the other in `bytes`, whose address is a multiple of 4.
    pub fn new(bytes: &'a [u8], format: SummaryFormat) -> Self {
        Self { bytes, format, first_slot: 0 }
    }

    /// The same decisions with slot indices counted from `slots` on: other devices have the slots before.
    pub fn with_slot_offset(self, slots: usize) -> Self {
        Self { first_slot: self.first_slot + slots, ..self }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.format.decision_bytes()
    }

    /// True where nothing was decided.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Decision<'a>> {
        let Self { bytes, format, first_slot } = self;
        bytes.chunks_exact(format.decision_bytes()).map(move |bytes| {
            let (head, summary) = bytes.split_at(size_of::<DecisionHead>());
            let head: &DecisionHead = bytemuck::from_bytes(head);
            let summary = SummaryView::new(summary, format);
            let ply = DecidedPly {
                player: summary.player(),
                proven: summary.proven(),
                actions: summary.actions(),
                policy: summary.policy(),
                value: summary.value(),
                action_index: head.action_index as usize,
            };
            Decision { slot: first_slot + head.slot as usize, pass: head.pass, ply }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: SummaryFormat = SummaryFormat { players: 3, padded_edges: 8 };

    /// A decision as a kernel writes it: `num_edges` edges, everything else counted up from `first`.
    fn decision(slot: u32, num_edges: u32, first: u32) -> Vec<u32> {
        let mut words = vec![slot, first, 1, 0, num_edges, 2, 1, 1];
        words.extend((0..3).map(|i| (first as f32 + i as f32).to_bits()));
        for array in 0..5u32 {
            let of = |e: u32| 10 * array + e + first;
            words.extend((0..8).map(|e| if array < 2 { of(e) } else { (of(e) as f32).to_bits() }));
        }
        words.extend((0..4).map(|pair| (2 * pair + first) | ((2 * pair + 1 + first) << 16)));
        words
    }

    #[test]
    fn decisions_are_read_in_place() {
        let words = [decision(4, 3, 100), decision(2, 8, 200)].concat();
        assert_eq!(4 * words.len(), 2 * FORMAT.decision_bytes());
        let block = DecisionBlock::new(bytemuck::cast_slice(&words), FORMAT).with_slot_offset(20);
        let found: Vec<Decision<'_>> = block.iter().collect();
        assert_eq!((block.len(), found.len(), found[0].slot, found[1].slot), (2, 2, 24, 22));
        assert_eq!((found[0].pass, found[0].ply.action_index), (100, 1));
        assert_eq!(found[0].ply.actions, [100, 101, 102]);
        assert_eq!(found[0].ply.policy, [140.0, 141.0, 142.0]);
        assert_eq!(found[0].ply.value, [100.0, 101.0, 102.0]);
        assert_eq!(found[1].ply.actions.len(), 8);
        assert!(found[0].ply.proven && found[0].ply.player == 1);
        let summary = SummaryView::new(bytemuck::cast_slice(&words[4..]), FORMAT);
        assert_eq!((summary.visits(), summary.new_visits()), (&[100, 101, 102][..], &[110, 111, 112][..]));
        assert_eq!((summary.prior()[2], summary.q()[0], summary.best()), (122.0, 130.0, 2));
    }
}
