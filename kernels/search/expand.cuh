// Twin of src/search/expand.rs: the network's outputs for one new node. All functions: all lanes.
#pragma once
#include "tree.cuh"

namespace search {

// Gives node `n`, whose edges and actions are there, its priors and its value. `logits` [A]; `values` [P] in seats relative
// to the player who moves at `n`; seats without a player have the value 0.
VZ_DEVICE void expand(const Row& row, i32 n, const f32* logits, const f32* values) {
    const int num_edges = row.nodes[n].num_edges, observer = row.nodes[n].player, seated = game_num_seated(row.states[n]);
    for (int seat = lane(); seat < VZ_PLAYERS; seat += WARP) {
        const bool is_taken = seat < seated;
        row.value(n)[is_taken ? (observer + seat) % seated : seat] = is_taken ? values[seat] : 0.0f;
    }
    f32 prior[SLICES];
    f32 max_logit = refuted();
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const int e = edge_in(slice);
        prior[slice] = e < num_edges ? logits[row.actions(n)[e]] : refuted();
        max_logit = prior[slice] > max_logit ? prior[slice] : max_logit;
    }
    max_logit = largest_of(max_logit);
    Sum sum;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        prior[slice] = math::exp(prior[slice] - max_logit);
        sum.add(slice, prior[slice]);
    }
    const f32 inverse = 1.0f / sum.total();
    for_own_edges([&](int slice, int e) { row.prior(n)[e].real = prior[slice] * inverse; });
    if (lane() == 0) row.nodes[n].kind = NodeKind::Decision;
}

} // namespace search
