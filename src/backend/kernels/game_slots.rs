//! The N game slots of self-play on the device: twins of the structs in `kernels/search/play.cuh`, and their arrays.

use super::device::{Arg, Device};
use super::layout::Layout;
use super::packing::pack_snapshot;
use super::polls::{PollCounts, Polls};
use crate::backend::RootCache;
use crate::backend::decisions::DecisionBlock;
use crate::backend::device_selfplay::{PlayPlan, SlotStart};
use crate::error::Result;
use bytemuck::{Pod, Zeroable};

/// Bytes for the decisions of two polls: an eighth of what the trees take, but at least and at most this, and in any case those of
/// one pass each. A poll of 65,536 games of Connect Four with 800 simulations then has up to 37 passes, one of 16,384 games of Hex
/// 11 has 11.
const DECISIONS_BYTES: [usize; 2] = [64 << 20, 1 << 30];
/// The most passes of a poll.
const MOST_PASSES: usize = 4096;

/// Twin of `SlotRow`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct SlotRow {
    slot: u64,
    game: u64,
    plies: u32,
    opening: u32,
    passes: u32,
    task: u32,
}

/// Twin of `PlayNumbers`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct PlayNumbers {
    seed: u64,
    simulations: u32,
    fast_simulations: u32,
    schedule: u32,
    fast_schedule: u32,
    determinisations: u32,
    opening_plies: u32,
    opening_none: f32,
    temperature_plies: u32,
    playout_cap_prob: f32,
    num_starts: u32,
}

/// Twin of `Start`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Start {
    /// Where nodes, edges, actions, values, states and history begin among all trees' bytes.
    parts: [u64; 6],
    count: u32,
    num_history: u32,
}

/// Twin of `DecisionQueue`: decisions of the poll so far, and where its half begins.
const QUEUE_BYTES: usize = 8;

/// The arrays of N game slots.
pub struct DeviceGameSlots<D: Device> {
    numbers: D::Buffer,
    /// `[N]`
    all: D::Buffer,
    /// `[N, state bytes]`
    positions: D::Buffer,
    /// `[2, most passes, N]`
    decisions: D::Buffer,
    queue: D::Buffer,
    /// Summaries of single determinisations, before they are summed. `[B]`
    parts: D::Buffer,
    starts: D::Buffer,
    trees: D::Buffer,
    polls: Polls<D>,
    /// N.
    pub num: usize,
    /// D.
    pub determinisations: usize,
    /// The most passes of a poll.
    pub most_passes: u32,
    /// Bytes of the trees that new games are cloned from.
    pub starts_bytes: u64,
    /// Bytes of all arrays.
    pub bytes: u64,
}

impl<D: Device> DeviceGameSlots<D> {
    /// The arrays of `game_slots` on `device`. `schedules` are the places of the schedules of both budgets.
    ///
    /// # Errors
    /// What the device says.
    pub fn new(
        device: &D,
        layout: &Layout,
        plan: &PlayPlan,
        schedules: [u32; 2],
        game_slots: &[SlotStart<'_>],
        starts: &PackedStarts,
    ) -> Result<Self> {
        let n = game_slots.len();
        let most_passes = most_passes(layout, n);
        let filled = |bytes: &[u8]| -> Result<D::Buffer> {
            let mut buffer = device.alloc(bytes.len().max(8))?;
            device.upload(&mut buffer, 0, bytes)?;
            Ok(buffer)
        };
        let rows: Vec<SlotRow> = game_slots.iter().map(SlotRow::new).collect();
        let positions: Vec<u8> = game_slots.iter().flat_map(|slot| slot.state).copied().collect();
        let PackedStarts { trees, places } = starts;
        let numbers = PlayNumbers::new(plan, schedules, places.len());
        let decisions = 2 * most_passes * n * decision_bytes(layout);
        let parts = layout.shape.rows * layout.summary_bytes();
        let bytes = size_of_val(rows.as_slice()) + positions.len() + decisions + parts;
        Ok(Self {
            numbers: filled(bytemuck::bytes_of(&numbers))?,
            all: filled(bytemuck::cast_slice(&rows))?,
            positions: filled(&positions)?,
            decisions: device.alloc(decisions)?,
            queue: device.alloc(QUEUE_BYTES)?,
            parts: device.alloc(parts)?,
            starts: filled(bytemuck::cast_slice(places))?,
            trees: filled(trees)?,
            polls: Polls::new(device)?,
            num: n,
            determinisations: plan.determinisations,
            most_passes: most_passes as u32,
            starts_bytes: starts.bytes(),
            bytes: bytes as u64 + starts.bytes(),
        })
    }

    /// In the order of `VZ_GAME_SLOT_ARGUMENTS`.
    pub fn arguments(&self) -> [Arg<'_, D::Buffer>; 8] {
        [
            &self.numbers,
            &self.all,
            &self.positions,
            &self.decisions,
            &self.queue,
            &self.parts,
            &self.starts,
            &self.trees,
        ]
        .map(|buffer| Arg::Buffer(buffer, 0))
    }

    /// Decisions that a poll has room for.
    pub fn half(&self) -> usize {
        self.most_passes as usize * self.num
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
    /// As [`Polls::collect`].
    pub fn collect_poll(&mut self, device: &D, layout: &Layout) -> Result<PollCounts> {
        let (half, size) = (self.half(), decision_bytes(layout));
        self.polls.collect(device, &self.decisions, half * size, size)
    }

    /// What the poll that was collected last decided.
    ///
    /// # Errors
    /// What the device says.
    pub fn decisions(&self, layout: &Layout) -> Result<DecisionBlock<'_>> {
        Ok(DecisionBlock::new(self.polls.decisions()?, layout.summary_format()))
    }
}

/// The most bytes that the game slots of `rows` rows take, without the trees that new games are cloned from. It grows with `rows`.
pub fn most_game_slot_bytes(layout: &Layout, rows: usize) -> usize {
    let slot = size_of::<SlotRow>() + layout.state_size + layout.summary_bytes();
    rows * slot + most_decision_bytes(layout, rows.max(1))
}

/// The most passes of a poll of `n` game slots.
fn most_passes(layout: &Layout, n: usize) -> usize {
    most_decision_bytes(layout, n) / (2 * n * decision_bytes(layout))
}

/// Bytes for the decisions of two polls of `n` game slots, of which whole passes are allocated.
fn most_decision_bytes(layout: &Layout, n: usize) -> usize {
    let [least, most] = DECISIONS_BYTES;
    let pass = 2 * n * decision_bytes(layout);
    (n * layout.row_bytes().total() / 8).clamp(least, most).clamp(pass, MOST_PASSES * pass)
}

fn decision_bytes(layout: &Layout) -> usize {
    layout.summary_format().decision_bytes()
}

impl SlotRow {
    fn new(start: &SlotStart<'_>) -> Self {
        let SlotStart { slot, game, plies, opening, .. } = *start;
        Self { slot, game, plies, opening, passes: 0, task: 0 }
    }
}

impl PlayNumbers {
    fn new(plan: &PlayPlan, [schedule, fast_schedule]: [u32; 2], num_starts: usize) -> Self {
        Self {
            seed: plan.seed,
            simulations: plan.simulations,
            fast_simulations: plan.fast_simulations,
            schedule,
            fast_schedule,
            determinisations: plan.determinisations as u32,
            opening_plies: plan.opening_plies,
            opening_none: plan.opening_none,
            temperature_plies: plan.temperature_plies,
            playout_cap_prob: plan.playout_cap_prob,
            num_starts: num_starts as u32,
        }
    }
}

/// The trees that new games are cloned from, one after the other, and where each begins.
pub struct PackedStarts {
    trees: Vec<u8>,
    places: Vec<Start>,
}

impl PackedStarts {
    /// Packs the trees of `starts`.
    pub fn new(starts: &RootCache) -> Self {
        let (trees, places) = pack_starts(starts);
        Self { trees, places }
    }

    /// Bytes of all trees and their places.
    pub fn bytes(&self) -> u64 {
        (self.trees.len() + size_of_val(self.places.as_slice())) as u64
    }
}

fn pack_starts(starts: &RootCache) -> (Vec<u8>, Vec<Start>) {
    let mut all = Vec::new();
    let places = starts.iter().map(|(_, snapshot)| {
        let (bytes, parts) = pack_snapshot(snapshot);
        let first = all.len();
        all.extend_from_slice(&bytes);
        Start {
            parts: parts.map(|part| (first + part) as u64),
            count: snapshot.tree.count(0) as u32,
            num_history: snapshot.history.len() as u32,
        }
    });
    let places = places.collect();
    (all, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::any_game;
    use crate::config::Layers;
    use crate::selfplay::backend_plan;

    /// The most passes of a poll in self-play with this configuration.
    fn passes(config: &str) -> usize {
        let config = Layers::default().text(config, "test").and_then(Layers::resolve).expect("valid");
        let game = any_game(config.game_name(), &config.game_options()).expect("registered");
        let plan = backend_plan(&config, &game.sizes(), config.selfplay.games);
        most_passes(&Layout::new(&plan, &game.sizes(), game.state_size()), config.selfplay.games)
    }

    #[test]
    fn a_poll_of_a_large_batch_has_many_passes() {
        let connect_four = "game.name = \"connect_four\"\nselfplay.games = 65536\nsearch.simulations = 800";
        let hex = "game.name = \"hex\"\ngame.size = 11\nselfplay.games = 16384\nsearch.simulations = 800";
        assert_eq!([passes(connect_four), passes(hex)], [37, 11]);
    }

    #[test]
    fn a_poll_has_at_least_one_pass_and_at_most_a_bounded_number() {
        assert_eq!(passes("game.name = \"tic_tac_toe\"\nselfplay.games = 1"), MOST_PASSES);
        assert_eq!(passes("game.name = \"go\"\ngame.size = 19\nselfplay.games = 1048576"), 1);
    }
}
