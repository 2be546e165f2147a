// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace search {

union Word;      // tree.cuh
struct Summary;  // root.cuh
struct Decision; // play.cuh

constexpr i32 ROOT = 0; // The root's index in every row.
constexpr i32 NO_NODE = -1; // The absent node: child of an edge that was never taken, parent of the root.
constexpr u32 REFUTED_BITS = 0xFF800000u; // The bits of `REFUTED`, -inf.

// The loss subtracted from each edge on the path of a pending leaf, so that the next leaves of the pass take other paths.
constexpr f32 VIRTUAL_LOSS = 1.0f;

// Whether selection has already counted the leaf's visits and applied a virtual loss to its path.
enum class VirtualLoss : u32 {
    None = 0, // No: the leaf is the only one of its row in this pass.
    Applied = 1, // Yes: the row has several leaves in this pass.
};

// Minimum scale of completed Q values. Never 0: the value sum -inf of a refuted edge stays -inf.
constexpr f32 MIN_SCALE = 1e-30f;
constexpr f32 MIN_SCORE = -1e30f; // Minimum score, that of a node without a legal edge.

// Random openings that are tried until one does not end the game; a game then starts without one.
constexpr u64 MAX_OPENING_ATTEMPTS = 100ull;
// Maximum number of consecutive games of a slot that end in their deal; after them the slot begins no further game.
constexpr u64 MAX_UNDECIDED_GAMES = 10000ull;

constexpr i32 NO_SLOT = -1; // The absent evaluation slot: the leaf needs no evaluation.

constexpr int LANES = 8; // Lanes of the row loops: partial sums of a sum over edges.

constexpr int ROW_BLOCK = 128; // Threads of a block whose warps work each on its own row.

constexpr int COUNTING_THREADS = 512; // Maximum number of threads of the one block that counts rows or numbers leaves.

// The search algorithm: the selection rule and the policy target.
enum class Algorithm : u32 {
    Puct = 0, // PUCT with Dirichlet noise (AlphaZero, Silver et al. 2018); the target is the visit distribution.
    Gumbel = 1, // Sequential halving over Gumbel-sampled actions (Danihelka et al. 2022); the target is the improved policy.
    // No tree: all positions after a whole turn are evaluated, and the turn to the best one is played (TD-Gammon, Tesauro 1995); there
    // is no policy target. CPU only.
    Afterstate = 2,
};

// Whether values are proven (MCTS-Solver).
enum class MctsSolver : u32 {
    Off = 0, // Every value is an estimate.
    On = 1, // MCTS-Solver, for two-player zero-sum games without chance and hidden information.
};

// Parameters of a search, resolved for one game. Where the arrays live is not among them.
struct SearchParams {
    Algorithm algorithm; // PUCT or Gumbel; rows of `Afterstate` have no tree.
    u32 simulations; // S: simulations of one ply.
    u32 leaves; // L: leaves that a row selects in one pass.
    f32 c_init; // c_init of PUCT.
    f32 c_base; // c_base of PUCT.
    f32 fpu_reduction; // The reduction of first-play urgency, the Q of an edge without visits, from the node's mean value.
    f32 dirichlet_epsilon; // Share of Dirichlet noise in the root's priors.
    f32 dirichlet_alpha; // Dirichlet alpha; 0 stands for 10 / legal actions.
    u32 max_num_considered_actions; // Maximum number of actions that sequential halving considers.
    u32 puct_visits; // Visits from which a node below the root of a Gumbel search selects by PUCT.
    f32 c_visit; // c_visit of Gumbel.
    f32 c_scale; // c_scale of Gumbel, for Q mapped to [0, 1].
    MctsSolver solver; // Whether proven values are backed up.
    f32 inherit_cap; // The share of `simulations` up to which inherited visits replace new simulations.
    u32 min_simulations; // Fewest new simulations of one ply.
    u32 turns; // Turns that rows of `Afterstate` look ahead.
};
static_assert(sizeof(SearchParams) == 64, "must equal the Rust struct");

// The kind of a node.
enum class NodeKind : u8 {
    Unevaluated = 0, // Added in this pass; its network evaluation is pending.
    Decision = 1, // A player moves.
    Chance = 2, // Chance draws an outcome.
    Terminal = 3, // The game is over.
    Horizon = 4, // A new deal begins. The node is a leaf whose value is the result of the round before.
};

// One node's scalars.
struct alignas(16) Node {
    i32 parent; // Index of the parent, `NO_NODE` at the root.
    i32 visits; // Simulations that passed through or ended here, those in flight included.
    f32 value_sum; // Sum of the values backed up through here, for `player`.
    f32 lower; // Proven lower bound of the game's value for `player`; -1 at first.
    f32 upper; // Proven upper bound of the game's value for `player`; 1 at first. The value is proven when `lower == upper`.
    u16 parent_edge; // The parent's edge that leads here.
    u16 num_edges; // Edges in use.
    u16 depth; // Edges from the row's first root to here. Subtree reuse does not renumber it, so only differences are meaningful.
    u8 player; // The player to move; 0 at chance and terminal nodes.
    NodeKind kind;
    u8 bounds_dirty; // 1 if the bounds have changed since they were last propagated to the parent.
    u8 padding[3];
};
static_assert(sizeof(Node) == 32, "must equal the Rust struct");

// The game, determinisation and ply of a row's search: the counters that key all its random numbers.
struct RowKey {
    u64 seed; // The run's seed.
    u64 slot; // Index of the game slot, over all devices of the run.
    u64 game; // Number of games that the slot finished before this one.
    u64 determinisation; // Index of the determinisation of the game.
    u64 ply; // Index of the ply.
};
static_assert(sizeof(RowKey) == 40, "must equal the Rust struct");

// The scalars of one row.
struct RootRow {
    f32 dirichlet_epsilon; // Share of the Dirichlet noise in the priors.
    u32 left; // New simulations of the ply still to run.
    u32 budget; // New simulations of the ply in all.
    u32 schedule; // Where the row's schedule begins.
    u32 schedule_len; // Simulations of that schedule.
    u32 num_leaves; // Leaves of this pass.
    u32 num_evals; // Leaves of this pass that need the network.
    u32 num_history; // Keys of positions before the root.
};
static_assert(sizeof(RootRow) == 32, "must equal the Rust struct");

// A leaf of a pass.
struct Leaf {
    i32 node; // Its node.
    i32 slot; // Index of its evaluation in the network's output, or `NO_SLOT`.
};
static_assert(sizeof(Leaf) == 8, "must equal the Rust struct");

// Work of a row since it was last added to `Totals`.
struct RowCounts {
    u32 passes; // Passes in which it selected anything.
    u32 leaves; // Leaves of any kind.
    u32 num_evals; // Leaves that needed the network.
    u32 simulations; // Leaves that are simulations.
    u64 depth_sum; // Sum of the leaves' depths.
    u32 depth_max; // Depth of the deepest leaf.
    u32 padding;
};
static_assert(sizeof(RowCounts) == 32, "must equal the Rust struct");

// A tree that rows are cloned from: where its parts begin among the bytes of one buffer.
struct TreeParts {
    u64 nodes; // `[count]`
    u64 edges; // `[count, 4, Ep]`
    u64 actions; // `[count, Ep]`
    u64 values; // `[count, P]`
    u64 states; // `[count]`
    u64 history; // `[num_history]`
    u32 count; // Nodes.
    u32 num_history; // Keys of the positions before the root.
};
static_assert(sizeof(TreeParts) == 56, "must equal the Rust struct");

// The parameter block: the arrays of all rows, their sizes and the search's parameters. Every kernel of a search takes it by value
// as its first argument. Addresses are those on the device.
struct ParameterBlock {
    Node* nodes; // `[B, T]`
    Word* edges; // Prior, visits, value sum and child. `[B, T, 4, Ep]`
    u16* actions; // `[B, T, Ep]`
    f32* values; // `[B, T, P]`
    u32* counts; // Nodes in use. `[B]`
    State* states; // `[B, T]`
    RootRow* roots; // `[B]`
    RowKey* keys; // `[B]`
    f32* noise; // `[B, Ep]`
    i32* base_visits; // `[B, Ep]`
    f32* root_sums; // `[B, P]`
    u64* histories; // Keys of the positions before the root, then room for those of a path. `[B, history_len]`
    Leaf* leaves; // `[B, L]`
    i32* targets; // New indices of nodes in a compaction. `[B, T]`
    RowCounts* done; // `[B]`
    const u32* tables; // Schedules of sequential halving, `[considered actions + 1, simulations]` each.
    u32 num_rows; // B.
    u32 num_nodes; // T.
    u32 history_len; // Maximum number of history keys of a row.
    u32 keep_limit; // Maximum number of nodes of a kept subtree; 0 if none is kept.
    SearchParams params; // The search's parameters.
};
static_assert(sizeof(ParameterBlock) == 208, "must equal the Rust struct");

// The sums over all rows since they were last counted.
struct Totals {
    u64 passes; // Passes, summed over rows, in which a row selected anything.
    u64 leaves; // Leaves of any kind.
    u64 num_evals; // Leaves that needed the network.
    u64 simulations; // Leaves that are simulations.
    u64 depth_sum; // Sum of the leaves' depths.
    u64 depth_max; // Depth of the deepest leaf.
    u64 unfinished; // Rows with simulations left.
    u64 padding;
};
static_assert(sizeof(Totals) == 64, "must equal the Rust struct");

// Gives a row a new root.
struct SetRootCommand {
    u32 row; // The row.
    u32 num_history; // Keys of its history.
    u64 first_key; // Where its keys begin among those of all commands.
};
static_assert(sizeof(SetRootCommand) == 16, "must equal the Rust struct");

// Plays an action in a row.
struct AdvanceCommand {
    u32 row; // The row.
    u32 action; // The action that is played, or the outcome that is dealt.
};
static_assert(sizeof(AdvanceCommand) == 8, "must equal the Rust struct");

// Begins a row's ply.
struct BeginCommand {
    u32 row; // The row.
    u32 simulations; // New simulations, before inherited ones are subtracted.
    u32 noisy; // 1 where the root explores.
    u32 schedule; // Where the schedule of this many simulations begins.
    RowKey key; // Keys the ply's random numbers.
};
static_assert(sizeof(BeginCommand) == 56, "must equal the Rust struct");

// The scalars of a row's summary, in front of its arrays.
struct SummaryHead {
    u32 num_edges; // E of the root.
    u32 best; // Index of the best action.
    u32 player; // The player to move.
    u32 proven; // 1 where the value is proven.
};
static_assert(sizeof(SummaryHead) == 16, "must equal the Rust struct");

// One decided ply, in front of its summary.
struct DecisionHead {
    u32 slot; // The game slot.
    u32 pass; // Passes since the slots were attached, this one included.
    u32 action_index; // Index of the action in the legal list.
    u32 padding;
};
static_assert(sizeof(DecisionHead) == 16, "must equal the Rust struct");

// Where the next decision is written. The array has room for the decisions of two polls, which take turns: the host copies those of
// one while the passes of the next fill the other's.
struct DecisionQueue {
    u32 num; // Decisions of this poll.
    u32 first; // Where those of this poll begin.
};
static_assert(sizeof(DecisionQueue) == 8, "must equal the Rust struct");

// Results of the passes of one poll.
struct PollHeader {
    Totals totals; // Sums over all rows.
    u32 num_decisions; // Decisions of the poll.
    u32 not_finite; // Not 0 if an output of the network was NaN or infinite.
};
static_assert(sizeof(PollHeader) == 72, "must equal the Rust struct");

// The next step of a slot's rows after a pass. Devices set all but the first.
enum class SlotTask : u32 {
    SearchOn = 0, // They go on with the ply's search.
    SetRoot = 1, // They get a new root and begin a ply.
    BeginPly = 2, // They begin a ply at the root they have.
};

// One game in progress.
struct SlotRow {
    u64 slot; // Its number over the whole run.
    u64 game; // Games finished in it.
    u32 plies; // Played and dealt so far.
    u32 opening; // Plies at the front that were drawn at random.
    u32 passes; // Passes since the slots were attached.
    SlotTask task; // The next step of its rows after the pass.
};
static_assert(sizeof(SlotRow) == 32, "must equal the Rust struct");

// How games are played.
struct PlayNumbers {
    u64 seed; // The run's seed.
    u32 simulations; // Simulations of a ply.
    u32 schedule; // Where the schedule of `simulations` begins.
    u32 determinisations; // D.
    u32 opening_plies; // Maximum number of random plies of an opening.
    f32 opening_none; // Fraction of games without random opening plies.
    u32 temperature_plies; // Plies whose action is sampled from the policy.
    u32 num_starts; // Trees that new games are cloned from.
    u32 padding;
};
static_assert(sizeof(PlayNumbers) == 40, "must equal the Rust struct");

// The addresses of the game slots' arrays: the second argument of the kernels that play. All 0 where there are no game slots.
struct GameSlots {
    const PlayNumbers* play; // One.
    SlotRow* all; // `[N]`
    State* positions; // Where hands are hidden: the whole states. `[N]`
    Decision* decisions; // `[2, max passes of a poll, N]`
    DecisionQueue* queue; // One.
    Summary* parts; // Summaries of single determinisations, before they are summed. `[B]`
    const TreeParts* starts; // `[num_starts]`
    const u8* trees; // The bytes of all trees that new games are cloned from.
};
static_assert(sizeof(GameSlots) == 64, "must equal the Rust struct");

} // namespace search
