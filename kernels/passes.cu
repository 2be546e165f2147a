// Whole passes in one launch, where all leaves get the same logits and values; the launcher of the same name is in
// src/backend/gpu/arrays.rs. Apart from search.cu, since it takes longer to compile than all of that, and a search with a network
// does not use it.
#include "search/expand.cuh"
#include "search/play.cuh"
#include "search/root.cuh"
#include "search/rows.cuh"

// One pass of row `b` in which all leaves get the same `logits` [A] and values `values` [P]. Returns the number of its leaves.
VZ_DEVICE u32 one_pass(const search::Rows& rows, u32 b, const f32* logits, const f32* values) {
    search::select(rows, b);
    VZ_SYNC(20);
    const u32 found = rows.roots[b].num_leaves;
    for (u32 index = 0; index < found; index++) {
        const search::Leaf leaf = rows.leaves[b * rows.params.leaves + index];
        if (leaf.slot >= 0) search::expand(rows.row(b), leaf.node, logits, values);
    }
    VZ_SYNC(21);
    search::backup_leaves(rows, b);
    VZ_SYNC(22);
    return found;
}

// `passes` whole passes of every row. One warp a row; rows are independent. Without game slots (`slots.play` is null) a row stops where it
// has no simulations left. With game slots, each of one row, every pass ends with `act` and `start_ply`. One kernel for both, so that a pass
// is compiled once.
VZ_DENSE_KERNEL simulate_rows(
    VZ_BY_VALUE search::Rows rows, VZ_BY_VALUE search::GameSlots slots, const f32* logits, const f32* values, u32 passes
) {
    const u32 b = warp_in_grid();
    if (b >= rows.num_rows) return;
    for (u32 pass = 0; pass < passes; pass++) {
        const u32 found = one_pass(rows, b, logits, values);
        if (slots.play == nullptr) {
            if (found == 0) return;
            continue;
        }
        search::act(rows, slots, b);
        VZ_SYNC(30);
        search::start_ply(rows, slots, b);
        VZ_SYNC(31);
    }
}
