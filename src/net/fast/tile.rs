//! The one inner kernel: a tile of MR rows by NV vectors of output channels.
//!
//! Activations are 32-bit units: one f32, or two bf16. A row holds the units of one (position, board); tap t of an output
//! row reads the row `shift` rows away. Each accumulator takes its products in the order of taps, then units, whatever
//! the tile's shape, so a row's result does not depend on the rows around it.

/// Vectors of a packed weight block: `[taps, depth, BLOCK, LANES]` units.
pub(super) const BLOCK: usize = 2;

/// One tap of an output row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tap {
    /// Positions between the source and the output.
    pub shift: isize,
    /// Index among the layer's taps, for the weights.
    pub index: usize,
}

/// What becomes of a sum s = bias + products. `norm` is relu(scale * x + offset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epilogue {
    /// Residual stream = s; activations = norm(s).
    Enter,
    /// Residual stream += s; activations = norm(stream).
    Leave,
    /// Activations = relu(s).
    Inner,
    /// f32 output = relu(s).
    Hidden,
    /// f32 output = s, of the valid lanes only.
    Output,
}

/// What one kernel call works on. Strides are in 32-bit words.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub taps: &'a [Tap],
    /// Units of a tap.
    pub depth: usize,
    /// Source row of the tile's first output row under a shift of 0.
    pub x: *const f32,
    pub x_row: usize,
    /// Words between two positions of the source.
    pub x_position: isize,
    /// First block of weights, and words from one to the next.
    pub weights: *const f32,
    pub block: usize,
    /// Vectors of one weight block, `BLOCK` or fewer for the last.
    pub block_vectors: usize,
    pub bias: *const f32,
    pub scale: *const f32,
    pub offset: *const f32,
    /// Residual stream, first row of the tile (Enter, Leave).
    pub stream: *mut f32,
    pub stream_row: usize,
    /// Activations or f32 output, first row of the tile.
    pub out: *mut f32,
    pub out_row: usize,
    /// Output channels from the tile's first one to the layer's last (Output).
    pub valid: usize,
    pub epilogue: Epilogue,
}

/// A kernel of fixed shape.
///
/// # Safety
/// The machine has the kernel's instructions, and every pointer of the tile is valid for what MR rows, NV vectors, the
/// taps, the depth and the epilogue reach.
pub(super) type TileFn = unsafe fn(&Tile<'_>);

/// The kernels of one instruction set and number format.
pub(super) struct Kernels {
    pub name: &'static str,
    /// f32 numbers of a vector.
    pub lanes: usize,
    /// Activations of a unit.
    pub unit: usize,
    /// By log2(NV), then MR - 1.
    pub tiles: [&'static [TileFn]; 3],
    /// `rounds` times `chains` multiplications of whole vectors that wait for nothing but registers.
    pub peak: unsafe fn(rounds: usize) -> f32,
    pub chains: usize,
}

/// The kernel `$entry` of NV = `$nv` for every listed MR.
macro_rules! tiles {
    ($entry:ident, $nv:literal, [$($mr:literal)*]) => { &[$($entry::<$mr, $nv> as $crate::net::fast::tile::TileFn),*] };
}
pub(super) use tiles;

/// The most that the machine can multiply: CHAINS sums in registers, no memory.
///
/// # Safety
/// The machine has S's instructions.
#[inline(always)]
pub(super) unsafe fn peak<S: Simd, const CHAINS: usize>(rounds: usize) -> f32 {
    // SAFETY: the caller's promise; loads and stores are of a local array of at least LANES numbers.
    unsafe {
        let mut numbers = std::hint::black_box([0.5_f32; 16]);
        let factor = S::load(numbers.as_ptr());
        let mut sums = [factor; CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = S::dot(factor, factor, *sum);
            }
        }
        let total = sums.into_iter().reduce(|a, b| S::add(a, b)).unwrap_or(factor);
        S::store(numbers.as_mut_ptr(), total);
        numbers[0]
    }
}

/// One instruction set and number format, a vector being LANES accumulators.
pub(super) trait Simd {
    const LANES: usize;
    /// Activations of a 32-bit unit.
    const UNIT: usize;
    type Vector: Copy;
    unsafe fn zero() -> Self::Vector;
    unsafe fn load(p: *const f32) -> Self::Vector;
    /// One unit (or number) in every lane.
    unsafe fn splat(p: *const f32) -> Self::Vector;
    /// acc + the product of units.
    unsafe fn dot(a: Self::Vector, b: Self::Vector, acc: Self::Vector) -> Self::Vector;
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a * b + c of f32.
    unsafe fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// max(a, 0), NaN where a is NaN.
    unsafe fn relu(a: Self::Vector) -> Self::Vector;
    unsafe fn store(p: *mut f32, a: Self::Vector);
    /// The first `valid` lanes, which may be more than there are.
    unsafe fn store_valid(p: *mut f32, a: Self::Vector, valid: usize);
    /// Lanes as activations: LANES / UNIT words.
    unsafe fn store_units(p: *mut f32, a: Self::Vector);
}

/// The kernel's body; instantiated inside functions that enable S's instructions.
///
/// # Safety
/// As for [`TileFn`].
#[inline(always)]
pub(super) unsafe fn tile<S: Simd, const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the caller's promise covers every row, vector and tap below.
    unsafe {
        let sums = products::<S, MR, NV>(t);
        match t.epilogue {
            Epilogue::Enter => each::<S, MR, NV>(t, sums, |s, row, lane| {
                S::store(t.stream.add(row * t.stream_row + lane), s);
                store_norm::<S>(t, s, row, lane);
            }),
            Epilogue::Leave => each::<S, MR, NV>(t, sums, |s, row, lane| {
                let stream = t.stream.add(row * t.stream_row + lane);
                let s = S::add(S::load(stream), s);
                S::store(stream, s);
                store_norm::<S>(t, s, row, lane);
            }),
            Epilogue::Inner => each::<S, MR, NV>(t, sums, |s, row, lane| {
                S::store_units(t.out.add(row * t.out_row + lane / S::UNIT), S::relu(s));
            }),
            Epilogue::Hidden => each::<S, MR, NV>(t, sums, |s, row, lane| {
                S::store(t.out.add(row * t.out_row + lane), S::relu(s));
            }),
            Epilogue::Output => each::<S, MR, NV>(t, sums, |s, row, lane| {
                S::store_valid(t.out.add(row * t.out_row + lane), s, t.valid - lane);
            }),
        }
    }
}

/// Calls `f` with bias + sum, row and first lane of every vector.
#[inline(always)]
unsafe fn each<S: Simd, const MR: usize, const NV: usize>(
    t: &Tile<'_>,
    sums: [[S::Vector; NV]; MR],
    f: impl Fn(S::Vector, usize, usize),
) {
    #[allow(clippy::needless_range_loop)] // j is a column of `sums`
    for j in 0..NV {
        // SAFETY: bias is padded to whole vectors.
        let bias = unsafe { S::load(t.bias.add(j * S::LANES)) };
        for i in 0..MR {
            // SAFETY: the caller enabled S's instructions.
            f(unsafe { S::add(sums[i][j], bias) }, i, j * S::LANES);
        }
    }
}

#[inline(always)]
unsafe fn store_norm<S: Simd>(t: &Tile<'_>, x: S::Vector, row: usize, lane: usize) {
    // SAFETY: scale and offset are padded to whole vectors; out holds the row.
    unsafe {
        let (scale, offset) = (S::load(t.scale.add(lane)), S::load(t.offset.add(lane)));
        let out = t.out.add(row * t.out_row + lane / S::UNIT);
        S::store_units(out, S::relu(S::mul_add(x, scale, offset)));
    }
}

/// Sums of products over taps and units, in that order.
#[inline(always)]
unsafe fn products<S: Simd, const MR: usize, const NV: usize>(t: &Tile<'_>) -> [[S::Vector; NV]; MR] {
    // SAFETY: the caller's promise; x and weights hold `depth` units for every tap.
    unsafe {
        let mut sums = [[S::zero(); NV]; MR];
        let row = t.block_vectors * S::LANES;
        for tap in t.taps {
            // Not unrolled: the compiler would move broadcasts ahead of their step and spill them.
            let mut x = t.x.offset(tap.shift * t.x_position);
            let mut w = t.weights.add(tap.index * t.depth * row);
            for _ in 0..t.depth {
                step::<S, MR, NV>(t, x, w, &mut sums);
                x = x.add(1);
                w = w.add(row);
            }
        }
        sums
    }
}

#[inline(always)]
unsafe fn step<S: Simd, const MR: usize, const NV: usize>(
    t: &Tile<'_>,
    x: *const f32,
    w: *const f32,
    sums: &mut [[S::Vector; NV]; MR],
) {
    // SAFETY: as for `products`.
    unsafe {
        let mut b = [S::zero(); NV];
        for (j, b) in b.iter_mut().enumerate() {
            *b = S::load(w.add(j / BLOCK * t.block + j % BLOCK * S::LANES));
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let a = S::splat(x.add(i * t.x_row));
            for j in 0..NV {
                sums[j] = S::dot(a, b[j], sums[j]);
            }
        }
    }
}
