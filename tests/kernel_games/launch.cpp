// Runs the batch kernels over a grid, one thread after another: they need no barrier. Stands below a program's source.
#include <utility>

namespace {

template <class... A, std::size_t... I>
void call(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
    kernel(*(A*)args[I]...);
}

// args[i] points to argument i. The last thread comes first: kernels must not care.
template <class... A>
void run_grid(void (*kernel)(A...), u32 grid, u32 block, void** args) {
    gridDim = {grid, 1, 1};
    blockDim = {block, 1, 1};
    for (u32 b = grid; b-- > 0;) {
        for (u32 t = block; t-- > 0;) {
            blockIdx = {b, 0, 0};
            threadIdx = {t, 0, 0};
            call(kernel, args, std::index_sequence_for<A...>());
        }
    }
}

} // namespace

#define VZ_LAUNCH(kernel) \
    extern "C" void launch_##kernel(u32 grid, u32 block, void** args) { run_grid(kernel, grid, block, args); }

VZ_LAUNCH(batch_init)
VZ_LAUNCH(batch_legal)
VZ_LAUNCH(batch_step)
VZ_LAUNCH(batch_observe)
VZ_LAUNCH(batch_random_play)
