//! The N game slots of self-play on the device: their structs, which `kernels/search/layout.cuh` is generated from, and their arrays.

use super::layout::{SearchLayout, TreeParts};
use super::packing::pack_snapshot;
use super::polls::{PollCounts, Polls};
use crate::backend::RootCache;
use crate::backend::decisions::DecisionBlock;
use crate::device::Device;
use crate::device_struct::{device_enum, device_struct};
use crate::error::Result;
use crate::play::{PlayPlan, SlotStart};
use bytemuck::{Pod, Zeroable};

/// Bytes for the decisions of two polls: an eighth of what the trees take, but at least and at most this, and in any case those of
/// one pass each. A poll of 65,536 games of Connect Four with 800 simulations then has up to 37 passes, one of 16,384 games of Hex
/// 11 has 11.
const DECISIONS_BYTES: [usize; 2] = [64 << 20, 1 << 30];
/// Maximum number of passes of a poll.
const MAX_PASSES: usize = 4096;

device_enum! {
    /// The next step of a slot's rows after a pass. Devices set all but the first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum SlotTask: u32 {
        /// They go on with the ply's search.
        SearchOn,
        /// They get a new root and begin a ply.
        SetRoot,
        /// They begin a ply at the root they have.
        BeginPly,
    }
}

device_struct! {
    /// One game in progress.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub(super) struct SlotRow {
        /// Its number over the whole run.
        slot: u64,
        /// Games finished in it.
        game: u64,
        /// Played and dealt so far.
        plies: u32,
        /// Plies at the front that were drawn at random.
        opening: u32,
        /// Passes since the slots were attached.
        passes: u32,
        /// The next step of its rows after the pass.
        task: u32 as "SlotTask",
    }

    /// How games are played.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub(super) struct PlayNumbers {
        /// The run's seed.
        seed: u64,
        /// Simulations of a ply.
        simulations: u32,
        /// Where the schedule of `simulations` begins.
        schedule: u32,
        /// D.
        determinisations: u32,
        /// Maximum number of random plies of an opening.
        opening_plies: u32,
        /// Fraction of games without random opening plies.
        opening_none: f32,
        /// Plies whose action is sampled from the policy.
        temperature_plies: u32,
        /// Trees that new games are cloned from.
        num_starts: u32,
        padding: u32,
    }

    /// Where the next decision is written. The array has room for the decisions of two polls, which take turns: the host copies those of
    /// one while the passes of the next fill the other's.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct DecisionQueue {
        /// Decisions of this poll.
        pub num: u32,
        /// Where those of this poll begin.
        pub first: u32,
    }

    /// The addresses of the game slots' arrays: the second argument of the kernels that play. All 0 where there are no game slots.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct GameSlots {
        /// One.
        pub play: u64 as "const PlayNumbers*",
        /// `[N]`
        pub all: u64 as "SlotRow*",
        /// Where hands are hidden: the whole states. `[N]`
        pub positions: u64 as "State*",
        /// `[2, max passes of a poll, N]`
        pub decisions: u64 as "Decision*",
        /// One.
        pub queue: u64 as "DecisionQueue*",
        /// Summaries of single determinisations, before they are summed. `[B]`
        pub parts: u64 as "Summary*",
        /// `[num_starts]`
        pub starts: u64 as "const TreeParts*",
        /// The bytes of all trees that new games are cloned from.
        pub trees: u64 as "const u8*",
    }
}

/// The arrays of N game slots.
pub struct DeviceGameSlots<D: Device> {
    /// The addresses of the arrays.
    pub block: GameSlots,
    decisions: D::Buffer,
    /// The other arrays whose addresses `block` has.
    _arrays: [D::Buffer; 7],
    polls: Polls<D>,
    /// N.
    pub num: usize,
    /// D.
    pub determinisations: usize,
    /// Maximum number of passes of a poll.
    pub max_passes: u32,
    /// Bytes of the trees that new games are cloned from.
    pub starts_bytes: u64,
    /// Bytes of all arrays.
    pub bytes: u64,
}

impl<D: Device> DeviceGameSlots<D> {
    /// The arrays of `game_slots` on `device`. `schedule` is the index of the schedule of a ply.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(
        device: &D,
        layout: &SearchLayout,
        plan: &PlayPlan,
        schedule: u32,
        game_slots: &[SlotStart<'_>],
        starts: &PackedStarts,
    ) -> Result<Self> {
        let n = game_slots.len();
        let max_passes = max_passes(layout, n);
        let filled = |bytes: &[u8]| -> Result<D::Buffer> {
            let mut buffer = device.alloc(bytes.len().max(8))?;
            device.upload(&mut buffer, 0, bytes)?;
            Ok(buffer)
        };
        let rows: Vec<SlotRow> = game_slots.iter().map(SlotRow::new).collect();
        let positions: Vec<u8> = game_slots.iter().flat_map(|slot| slot.state).copied().collect();
        let PackedStarts { trees, offsets } = starts;
        let numbers = PlayNumbers::new(plan, schedule, offsets.len());
        let decisions = 2 * max_passes * n * decision_bytes(layout);
        let parts = layout.shape.rows * layout.summary_bytes();
        let bytes = size_of_val(rows.as_slice()) + positions.len() + decisions + parts;
        let numbers = filled(bytemuck::bytes_of(&numbers))?;
        let all = filled(bytemuck::cast_slice(&rows))?;
        let positions = filled(&positions)?;
        let decisions = device.alloc(decisions)?;
        let queue = device.alloc(size_of::<DecisionQueue>())?;
        let parts = device.alloc(parts)?;
        let offsets = filled(bytemuck::cast_slice(offsets))?;
        let trees = filled(trees)?;
        Ok(Self {
            block: GameSlots {
                play: device.address(&numbers),
                all: device.address(&all),
                positions: device.address(&positions),
                decisions: device.address(&decisions),
                queue: device.address(&queue),
                parts: device.address(&parts),
                starts: device.address(&offsets),
                trees: device.address(&trees),
            },
            decisions,
            _arrays: [numbers, all, positions, queue, parts, offsets, trees],
            polls: Polls::new(device)?,
            num: n,
            determinisations: plan.determinisations,
            max_passes: max_passes as u32,
            starts_bytes: starts.bytes(),
            bytes: bytes as u64 + starts.bytes(),
        })
    }

    /// Decisions that a poll has room for.
    pub fn poll_capacity(&self) -> usize {
        self.max_passes as usize * self.num
    }

    /// Where the device writes a poll's header.
    pub fn header(&self) -> &D::Buffer {
        &self.polls.header
    }

    /// The polls.
    pub fn polls(&mut self) -> &mut Polls<D> {
        &mut self.polls
    }

    /// Waits for the oldest poll that has ended, and for its decisions.
    ///
    /// # Errors
    /// As `Polls::collect`.
    pub fn collect_poll(&mut self, device: &D, layout: &SearchLayout) -> Result<PollCounts> {
        let size = decision_bytes(layout);
        self.polls.collect(device, &self.decisions, self.poll_capacity() * size, size)
    }

    /// The decisions of the poll that was collected last.
    ///
    /// # Errors
    /// Those of the device.
    pub fn decisions(&self, layout: &SearchLayout) -> Result<DecisionBlock<'_>> {
        Ok(DecisionBlock::new(self.polls.decisions()?, layout.summary_format()))
    }
}

/// Maximum number of bytes that the game slots of `rows` rows take, without the trees that new games are cloned from. It grows with `rows`.
pub fn max_game_slot_bytes(layout: &SearchLayout, rows: usize) -> usize {
    let slot = size_of::<SlotRow>() + layout.state_size + layout.summary_bytes();
    rows * slot + max_decision_bytes(layout, rows.max(1))
}

/// Maximum number of passes of a poll of `n` game slots.
fn max_passes(layout: &SearchLayout, n: usize) -> usize {
    max_decision_bytes(layout, n) / (2 * n * decision_bytes(layout))
}

/// Bytes for the decisions of two polls of `n` game slots, of which whole passes are allocated.
fn max_decision_bytes(layout: &SearchLayout, n: usize) -> usize {
    let [min, max] = DECISIONS_BYTES;
    let pass = 2 * n * decision_bytes(layout);
    (n * layout.row_bytes().total() / 8).clamp(min, max).clamp(pass, MAX_PASSES * pass)
}

fn decision_bytes(layout: &SearchLayout) -> usize {
    layout.summary_format().decision_bytes()
}

impl SlotRow {
    fn new(start: &SlotStart<'_>) -> Self {
        let SlotStart { slot, game, plies, opening, .. } = *start;
        Self { slot, game, plies, opening, passes: 0, task: SlotTask::SearchOn as u32 }
    }
}

impl PlayNumbers {
    fn new(plan: &PlayPlan, schedule: u32, num_starts: usize) -> Self {
        Self {
            seed: plan.seed,
            simulations: plan.simulations,
            schedule,
            determinisations: plan.determinisations as u32,
            opening_plies: plan.opening_plies,
            opening_none: plan.opening_none,
            temperature_plies: plan.temperature_plies,
            num_starts: num_starts as u32,
            padding: 0,
        }
    }
}

/// The trees that new games are cloned from, one after the other, and where each begins.
pub struct PackedStarts {
    trees: Vec<u8>,
    offsets: Vec<TreeParts>,
}

impl PackedStarts {
    /// Packs the trees of `starts`.
    pub fn new(starts: &RootCache) -> Self {
        let (trees, offsets) = pack_starts(starts);
        Self { trees, offsets }
    }

    /// Bytes of all trees and their offsets.
    pub fn bytes(&self) -> u64 {
        (self.trees.len() + size_of_val(self.offsets.as_slice())) as u64
    }
}

fn pack_starts(starts: &RootCache) -> (Vec<u8>, Vec<TreeParts>) {
    let mut all = Vec::new();
    let offsets = starts.trees().iter().map(|tree| {
        let (bytes, parts) = pack_snapshot(&tree.snapshot);
        let first = all.len() as u64;
        all.extend_from_slice(&bytes);
        parts.offset_by(first)
    });
    let offsets = offsets.collect();
    (all, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;
    use crate::registry::any_game;
    use crate::selfplay::backend_plan;

    /// Maximum number of passes of a poll in self-play with this configuration.
    fn passes(config: &str) -> usize {
        let config = Layers::default().text(config, "test").and_then(Layers::resolve).expect("valid");
        let game = any_game(config.game_name(), &config.game_options()).expect("registered");
        let plan = backend_plan(&config, &game.sizes(), config.selfplay.games);
        max_passes(&SearchLayout::new(&plan, &game.sizes(), game.state_size()), config.selfplay.games)
    }

    #[test]
    fn a_poll_of_a_large_batch_has_many_passes() {
        let connect_four = "game.name = \"connect_four\"\nselfplay.games = 65536\nsearch.simulations = 800";
        let hex = "game.name = \"hex\"\ngame.size = 11\nselfplay.games = 16384\nsearch.simulations = 800";
        assert_eq!([passes(connect_four), passes(hex)], [37, 11]);
    }

    #[test]
    fn a_poll_has_at_least_one_pass_and_at_most_a_bounded_number() {
        assert_eq!(passes("game.name = \"tic_tac_toe\"\nselfplay.games = 1"), MAX_PASSES);
        assert_eq!(passes("game.name = \"go\"\ngame.size = 19\nselfplay.games = 1048576"), 1);
    }
}
