// The kernels of a search: one warp a row, or one a leaf. src/backend/gpu/arrays.rs has a launcher of the same name for each.
// The first argument of every kernel is the parameter block (`Rows` in tree.cuh).
#include "number.cuh"
#include "search/compact.cuh"
#include "search/expand.cuh"
#include "search/play.cuh"
#include "search/root.cuh"
#include "search/rows.cuh"

// One warp a command. `states` of the commands [num], `history` of all of them back to back.
VZ_KERNEL set_roots(
    VZ_BY_VALUE search::Rows rows, const search::SetRootCommand* commands, const State* given, const u64* history, u32 num
) {
    const u32 i = warp_in_grid();
    if (i < num) search::set_root(rows, commands[i], given[i], history);
}

// One warp a command.
VZ_KERNEL begin_rows(VZ_BY_VALUE search::Rows rows, const search::BeginCommand* commands, u32 num) {
    const u32 i = warp_in_grid();
    if (i < num) search::begin(rows, commands[i]);
}

// One warp a command.
VZ_KERNEL advance_rows(VZ_BY_VALUE search::Rows rows, const search::AdvanceCommand* commands, u32 num) {
    const u32 i = warp_in_grid();
    if (i < num) search::advance(rows, commands[i]);
}

// One warp a row.
VZ_DENSE_KERNEL select_rows(VZ_BY_VALUE search::Rows rows) {
    const u32 b = warp_in_grid();
    if (b < rows.num_rows) search::select(rows, b);
}

// One block.
VZ_KERNEL number_leaves(VZ_BY_VALUE search::Rows rows, u32* num_live) {
    __shared__ u32 shared[search::MAX_WARPS];
    search::number_leaves(rows, shared, num_live);
}

// One block.
VZ_KERNEL count_rows(VZ_BY_VALUE search::Rows rows, search::Totals* out) {
    __shared__ search::Totals shared[search::MAX_WARPS];
    search::count_rows(rows, shared, out);
}

template <class Out>
VZ_DEVICE void observe_leaf(const search::Rows& rows, u32 leaf_index, Out* out) {
    const u32 b = leaf_index / rows.params.leaves;
    if (b >= rows.num_rows || leaf_index % rows.params.leaves >= rows.roots[b].num_leaves) return;
    const search::Leaf leaf = rows.leaves[leaf_index];
    if (leaf.slot < 0) return;
    const search::Row row = rows.row(b);
    const u64 len = (u64)VZ_OBS_CHANNELS * VZ_OBS_HEIGHT * VZ_OBS_WIDTH;
    const int player = row.nodes[leaf.node].player;
    game_observe(row.states[leaf.node], player, lane(), WARP, out + leaf.slot * len);
}

// One warp a leaf; its observation goes to its slot of `out` [slots, F].
VZ_KERNEL observe_leaves(VZ_BY_VALUE search::Rows rows, f32* out) { observe_leaf(rows, warp_in_grid(), out); }

// The same for a network that takes bfloat16.
VZ_KERNEL observe_leaves_bf16(VZ_BY_VALUE search::Rows rows, number::Bf16* out) { observe_leaf(rows, warp_in_grid(), out); }

// One warp a leaf; its evaluation is in its slot of `logits` [slots, A] and `values` [slots, P].
VZ_KERNEL expand_leaves(VZ_BY_VALUE search::Rows rows, const f32* logits, const f32* values) {
    const u32 leaf_index = warp_in_grid(), b = leaf_index / rows.params.leaves;
    if (b >= rows.num_rows || leaf_index % rows.params.leaves >= rows.roots[b].num_leaves) return;
    const search::Leaf leaf = rows.leaves[leaf_index];
    if (leaf.slot < 0) return;
    search::expand(rows.row(b), leaf.node, logits + (u64)leaf.slot * VZ_ACTIONS, values + (u64)leaf.slot * VZ_PLAYERS);
}

// One warp a row.
VZ_KERNEL backup_rows(VZ_BY_VALUE search::Rows rows) {
    const u32 b = warp_in_grid();
    if (b < rows.num_rows) search::backup_leaves(rows, b);
}

// The end of a pass in every game slot. One warp a slot.
VZ_KERNEL act_game_slots(VZ_BY_VALUE search::Rows rows, VZ_BY_VALUE search::GameSlots slots, u32 num_games) {
    const u32 i = warp_in_grid();
    if (i < num_games) search::act(rows, slots, i);
}

// Begins the next ply in every row whose slot has one. One warp a row.
VZ_KERNEL start_rows(VZ_BY_VALUE search::Rows rows, VZ_BY_VALUE search::GameSlots slots) {
    const u32 b = warp_in_grid();
    if (b < rows.num_rows) search::start_ply(rows, slots, b);
}

// Ends a poll: writes its header, and sets the queue to the other poll's part of `decisions`, of `poll_capacity` decisions each.
// `not_finite`: the network's word, which is cleared, or null. One thread.
VZ_KERNEL end_poll(
    VZ_BY_VALUE search::Rows rows, VZ_BY_VALUE search::GameSlots slots, const search::Totals* totals, u32* not_finite,
    u32 poll_capacity, search::PollHeader* out
) {
    if (thread_in_grid() != 0) return;
    search::DecisionQueue& queue = *slots.queue;
    *out = search::PollHeader{*totals, queue.num, not_finite == nullptr ? 0 : *not_finite};
    if (not_finite != nullptr) *not_finite = 0;
    queue = search::DecisionQueue{0, queue.first == 0 ? poll_capacity : 0};
}

// One warp for each row of `list` [num].
VZ_KERNEL summarise_rows(VZ_BY_VALUE search::Rows rows, const u32* list, u32 num, search::Summary* out) {
    const u32 i = warp_in_grid();
    if (i < num) search::summarise(rows, list[i], out[i]);
}

// Keeps the `limit` > 0 most visited nodes of row `b`. One warp.
VZ_KERNEL trim_row(VZ_BY_VALUE search::Rows rows, u32 b, u32 limit) {
    if (warp_in_grid() == 0) search::keep_most_visited(rows.row(b), limit, rows.targets + (u64)b * rows.num_nodes);
}

template <class T>
VZ_DEVICE void copy_block(T* to, const T* from, u64 size) {
    for (u64 i = threadIdx.x; i < size; i += blockDim.x) to[i] = from[i];
}

// Gives each row of `list` a copy of a tree, its states and its history. `from` is the buffer that has its `parts`. One block a row.
VZ_KERNEL clone_rows(VZ_BY_VALUE search::Rows rows, const u32* list, const u8* from, VZ_BY_VALUE search::TreeParts parts) {
    const u32 b = list[blockIdx.x];
    const search::Row row = rows.row(b);
    const u64 count = parts.count;
    copy_block(row.nodes, (const search::Node*)(from + parts.nodes), count);
    copy_block(row.edges, (const search::Word*)(from + parts.edges), count * 4 * search::PADDED);
    copy_block(row.actions_, (const u16*)(from + parts.actions), count * search::PADDED);
    copy_block(row.values, (const f32*)(from + parts.values), count * VZ_PLAYERS);
    copy_block(row.states, (const State*)(from + parts.states), count);
    copy_block(rows.history(b), (const u64*)(from + parts.history), parts.num_history);
    if (threadIdx.x >= WARP) return;
    if (lane() == 0) *row.count = parts.count;
    search::deactivate(rows, b, parts.num_history);
}
