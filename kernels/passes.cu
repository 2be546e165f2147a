// Whole passes in one launch, where one answer serves all leaves; a launcher of the same name is in src/backend/kernels/arrays.rs.
// Apart from search.cu, since it takes the compiler longer than all of that, and a network's search has no use for it.
#include "search/expand.cuh"
#include "search/play.cuh"
#include "search/root.cuh"
#include "search/rows.cuh"

// One pass of row `b` where the network gives the same answer to everything: `logits` [A], `answers` [P]. Returns its leaves.
VZ_DEVICE u32 one_pass(const search::Rows& rows, u32 b, const f32* logits, const f32* answers) {
    search::select(rows, b);
    VZ_SYNC(20);
    const u32 found = rows.roots[b].num_leaves;
    for (u32 place = 0; place < found; place++) {
        const search::Leaf leaf = rows.leaves[b * rows.num_leaves + place];
        if (leaf.slot >= 0) search::expand(rows.row(b), leaf.node, logits, answers);
    }
    VZ_SYNC(21);
    search::backup_leaves(rows, b);
    VZ_SYNC(22);
    return found;
}

// `passes` whole passes of every row with one answer for all. One warp a row; no row waits for another. Without lanes (`play` is
// null) a row stops where it has no simulations left; where there are lanes, each of one row, all that follows a pass is done too.
// One kernel for both, so that a pass is compiled once.
VZ_DENSE_KERNEL simulate_rows(VZ_ROWS_ARGUMENTS, VZ_GAME_SLOT_ARGUMENTS, const f32* logits, const f32* answers, u32 passes) {
    const u32 b = warp_in_grid();
    if (b >= num_rows) return;
    const search::Rows rows = VZ_ROWS;
    const search::Lanes lanes = VZ_LANES;
    for (u32 pass = 0; pass < passes; pass++) {
        const u32 found = one_pass(VZ_ROWS, b, logits, answers);
        if (play == nullptr) {
            if (found == 0) return;
            continue;
        }
        search::act(rows, lanes, b);
        VZ_SYNC(30);
        search::start_ply(rows, lanes, b);
        VZ_SYNC(31);
    }
}
