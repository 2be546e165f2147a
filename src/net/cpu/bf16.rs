//! bfloat16 kernels in plain Rust.

use super::format::Format;
use super::kernels::kernels;
use crate::net::bf16_products::PortableBf16;
use crate::net::number::bf16_bits;
use crate::net::register_tile::Vector;

impl Format for PortableBf16 {
    const OUT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: Vector<Self>) {
        for (i, &x) in a.iter().enumerate() {
            // SAFETY: the kernel contract; LANES numbers of 16 bits are LANES / 2 words.
            unsafe { p.cast::<u16>().add(i).write(bf16_bits(x) as u16) };
        }
    }
}

kernels! {
    static PORTABLE = "portable-bf16", PortableBf16;
    chains 8;
    rows [1 2 3 4] [1 2 3] [1]
}
