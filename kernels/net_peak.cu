// Measures the peak of the tensor cores' instruction, without memory accesses.
#include "net/mma.cuh"

// `rounds` rounds of VZ_CHAINS instructions in each warp. The sum is stored so that the compiler keeps them.
VZ_BLOCK_KERNEL(VZ_THREADS) measure_peak(f32* out, u32 rounds) {
    f32 sums[VZ_CHAINS][4] = {};
    u32 a[4], b[2];
VZ_UNROLL
    for (int i = 0; i < 4; i++) a[i] = net::VZ_ELEMENT_TYPE::bits(0.001f * (f32)(lane() + 32 * i)) * 0x10001;
VZ_UNROLL
    for (int i = 0; i < 2; i++) b[i] = net::VZ_ELEMENT_TYPE::bits(0.002f * (f32)(lane() - 32 * i)) * 0x10001;
    for (u32 round = 0; round < rounds; round++) {
VZ_UNROLL
        for (int chain = 0; chain < VZ_CHAINS; chain++) {
            net::multiply_add<net::VZ_ELEMENT_TYPE>(sums[chain], a, b[0], b[1]);
        }
    }
    f32 total = 0.0f;
VZ_UNROLL
    for (int chain = 0; chain < VZ_CHAINS; chain++) total += sums[chain][0] + sums[chain][1] + sums[chain][2] + sums[chain][3];
    out[thread_in_grid()] = total;
}
