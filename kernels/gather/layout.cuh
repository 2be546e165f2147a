// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace gather {

// The parameter block of `gather_samples`: the rows to make of a batch, the samples that they are made of, and where they go.
// Addresses are those on the device; R is the number of samples that the arrays hold.
struct GatherBlock {
    u32 rows; // Rows to make.
    u32 first_row; // Index of the first of them in the batch.
    u64 seed; // The run's seed.
    u64 number; // The batch's number. It and the seed key all draws.
    u64 len; // Samples that are drawn from.
    u32 drawn; // 1 where the arrays hold the rows' own samples, in their order; 0 where each row draws one of `len`.
    u32 symmetries; // 1 where each row draws a symmetry of the game.
    const u8* states; // `[R, state bytes]`
    const u8* players; // The players to move. `[R]`
    const u16* num_legal; // Legal actions. `[R]`
    const u16* actions; // `[R, most legal actions]`
    const f32* policy; // `[R, most legal actions]`
    const f32* values; // `[R, P]`
    State* images; // Scratch for the states after a symmetry. `[rows]`
    f32* out_obs; // `[rows, F]`
    f32* out_policy; // `[rows, A]`
    u8* out_legal; // `[rows, A]`
    f32* out_values; // `[rows, P]`
    f32* out_weight; // `[rows]`
};
static_assert(sizeof(GatherBlock) == 136, "must equal the Rust struct");

} // namespace gather
