//! Lanes of self-play on the device: leaf_dedup of the structs in `kernels/search/play.cuh`, and their arrays.

use super::device::{Arg, Device};
use super::layout::Layout;
use super::snapshots::pack_snapshot;
use crate::backend::RootCache;
use crate::backend::device_selfplay::{Decided, PlayPlan, SlotStart};
use crate::error::Result;
use crate::search::root::RootSummary;
use bytemuck::{Pod, Zeroable};

/// Room for what is decided between two looks of the host, in bytes: an eighth of what the trees take, but at least and at most this;
/// that of one pass in any case. With 65,536 games of Connect Four and 800 simulations it is enough for 75 passes, with 16,384 of
/// Hex 11 for 22.
const DECISIONS_BYTES: [usize; 2] = [64 << 20, 1 << 30];
/// The most passes between two looks of the host.
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

/// Twin of `Decision`, but for the summary behind it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct DecisionHead {
    slot: u32,
    pass: u32,
    place: u32,
    padding: u32,
}

/// The arrays of N game slots.
pub struct DeviceGameSlots<B> {
    numbers: B,
    /// `[N]`
    all: B,
    /// `[N, state bytes]`
    positions: B,
    /// `[most passes, N]`
    decisions: B,
    num_decisions: B,
    /// A place a row where determinisations are summed. `[B]`
    parts: B,
    starts: B,
    trees: B,
    /// N.
    pub num: usize,
    /// D.
    pub determinisations: usize,
    /// The most passes until what was decided is read.
    pub most_passes: u32,
    /// Bytes of the trees that new games are cloned from.
    pub starts_bytes: u64,
    /// Bytes of all arrays.
    pub bytes: u64,
}

impl<B> DeviceGameSlots<B> {
    /// The arrays on `device`. `schedules` are the places of the schedules of the two budgets.
    ///
    /// # Errors
    /// What the device says.
    pub fn new<D: Device<Buffer = B>>(
        device: &D,
        layout: &Layout,
        plan: &PlayPlan,
        schedules: [u32; 2],
        game_slots: &[SlotStart<'_>],
        starts: &PackedStarts,
    ) -> Result<Self> {
        let n = game_slots.len();
        let most_passes = most_passes(layout, n);
        let filled = |bytes: &[u8]| -> Result<B> {
            let mut buffer = device.alloc(bytes.len().max(8))?;
            device.upload(&mut buffer, 0, bytes)?;
            Ok(buffer)
        };
        let rows: Vec<SlotRow> = game_slots.iter().map(SlotRow::new).collect();
        let positions: Vec<u8> = game_slots.iter().flat_map(|slot| slot.state).copied().collect();
        let PackedStarts { trees, places } = starts;
        let numbers = PlayNumbers::new(plan, schedules, places.len());
        let bytes = size_of_val(rows.as_slice())
            + positions.len()
            + most_passes * n * decision_bytes(layout)
            + layout.shape.rows * layout.summary_bytes();
        Ok(Self {
            numbers: filled(bytemuck::bytes_of(&numbers))?,
            all: filled(bytemuck::cast_slice(&rows))?,
            positions: filled(&positions)?,
            decisions: device.alloc(most_passes * n * decision_bytes(layout))?,
            num_decisions: device.alloc(8)?,
            parts: device.alloc(layout.shape.rows * layout.summary_bytes())?,
            starts: filled(bytemuck::cast_slice(places))?,
            trees: filled(trees)?,
            num: n,
            determinisations: plan.determinisations,
            most_passes: most_passes as u32,
            starts_bytes: starts.bytes(),
            bytes: bytes as u64 + starts.bytes(),
        })
    }

    /// In the order of `VZ_GAME_SLOT_ARGUMENTS`.
    pub fn arguments(&self) -> [Arg<'_, B>; 8] {
        [
            &self.numbers,
            &self.all,
            &self.positions,
            &self.decisions,
            &self.num_decisions,
            &self.parts,
            &self.starts,
            &self.trees,
        ]
        .map(|buffer| Arg::Buffer(buffer, 0))
    }

    /// What was decided since the last call, in any order.
    ///
    /// # Errors
    /// What the device says.
    pub fn drain_decisions<D: Device<Buffer = B>>(
        &mut self,
        device: &D,
        layout: &Layout,
        out: &mut Vec<Decided>,
    ) -> Result<()> {
        let mut num = [0; 4];
        device.download(&self.num_decisions, 0, &mut num)?;
        let size = decision_bytes(layout);
        let mut bytes = vec![0; u32::from_ne_bytes(num) as usize * size];
        device.download(&self.decisions, 0, &mut bytes)?;
        device.upload(&mut self.num_decisions, 0, &[0; 4])?;
        out.extend(bytes.chunks_exact(size).map(|bytes| {
            let (head, summary_bytes) = bytes.split_at(size_of::<DecisionHead>());
            let head: DecisionHead = bytemuck::pod_read_unaligned(head);
            let mut summary = RootSummary::default();
            layout.read_summary(summary_bytes, &mut summary);
            Decided { slot: head.slot as usize, pass: head.pass, place: head.place as usize, summary }
        }));
        Ok(())
    }
}

/// The most bytes that the game slots of `rows` rows take, but for the trees that new games are cloned from.
pub fn most_game_slot_bytes(layout: &Layout, rows: usize) -> usize {
    let summaries = layout.summary_bytes();
    let slot = size_of::<SlotRow>() + layout.state_size + summaries;
    rows * slot + most_passes(layout, rows.max(1)) * rows * decision_bytes(layout)
}

/// Passes between two looks of the host, for `n` game slots.
fn most_passes(layout: &Layout, n: usize) -> usize {
    let [least, most] = DECISIONS_BYTES;
    let room = (n * layout.row_bytes().total() / 8).clamp(least, most);
    (room / (n * decision_bytes(layout))).clamp(1, MOST_PASSES)
}

fn decision_bytes(layout: &Layout) -> usize {
    size_of::<DecisionHead>() + layout.summary_bytes()
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
    /// Packs `starts`.
    pub fn new(starts: &RootCache) -> Self {
        let (trees, places) = pack_starts(starts);
        Self { trees, places }
    }

    /// Bytes of all.
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

    /// Passes between two looks of the host in self-play as `config` has it.
    fn passes(config: &str) -> usize {
        let config = Layers::default().text(config, "test").and_then(Layers::resolve).expect("valid");
        let game = any_game(config.game_name(), &config.game_options()).expect("registered");
        let plan = backend_plan(&config, &game.sizes(), config.selfplay.games);
        most_passes(&Layout::new(&plan, &game.sizes(), game.state_size()), config.selfplay.games)
    }

    #[test]
    fn large_batches_play_many_passes_between_two_looks() {
        let connect_four = "game.name = \"connect_four\"\nselfplay.games = 65536\nsearch.simulations = 800";
        let hex = "game.name = \"hex\"\ngame.size = 11\nselfplay.games = 16384\nsearch.simulations = 800";
        assert_eq!([passes(connect_four), passes(hex)], [75, 22]);
    }

    #[test]
    fn any_batch_plays_a_pass_and_a_small_one_not_too_many() {
        assert_eq!(passes("game.name = \"tic_tac_toe\"\nselfplay.games = 1"), MOST_PASSES);
        assert_eq!(passes("game.name = \"go\"\ngame.size = 19\nselfplay.games = 1048576"), 1);
    }
}
