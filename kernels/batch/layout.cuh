// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace batch {

// The parameter block of the kernels: the arrays of N games. Addresses are those on the device.
struct BatchBlock {
    State* states; // `[N]`
    u64* histories; // Keys of earlier positions, oldest first, one per ply. `[N, history]`
    u32* plies; // Plies of each game in progress. `[N]`
    u64* games; // Games finished in each slot. `[N]`
    u16* legal; // Legal actions or outcomes, ascending. `[N, E]`
    u16* num_legal; // `[N]`
    const u16* actions; // The actions to play. `[N]`
    u8* over; // 1 where a game has ended. `[N]`
    f32* returns; // The results of the games that have ended, 0 elsewhere. `[N, P]`
    f32* observations; // `[N, obs]`
    u32 num_games; // N.
};
static_assert(sizeof(BatchBlock) == 88, "must equal the Rust struct");

} // namespace batch
