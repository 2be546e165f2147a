// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace board {

constexpr int CELL_WORDS = 6; // Words of a set of cells.

} // namespace board
