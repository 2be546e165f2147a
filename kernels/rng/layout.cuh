// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace rng {

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull; // 2^64 divided by the golden ratio, odd: the increment of SplitMix64.
constexpr f32 MIN_GAMMA = 1e-30f; // The smallest entry of a Dirichlet vector before it is normalised.

// The purpose of a random number. Two purposes never share a draw.
enum class Purpose : u64 {
    RootNoise = 1, // Dirichlet noise at a root.
    Gumbel = 2, // Gumbel noise at a root.
    Act = 3, // The action sampled after a search.
    Chance = 4, // Chance outcomes of games: dice, cards.
    SearchChance = 5, // Chance outcomes sampled inside a search.
    Determinise = 6, // Determinisations: the hidden information assumed by a search.
    Opening = 7, // Random opening plies of a self-play game.
    Weights = 9, // Initial weights of a network.
    Batch = 10, // The samples of a training batch.
    Symmetry = 11, // The symmetry applied to a sample.
    Evaluation = 12, // Matches, benchmarks and tests.
    Rollout = 13, // Rollouts of Monte Carlo players without a network.
};

} // namespace rng
