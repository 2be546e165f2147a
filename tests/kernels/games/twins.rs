//! `common.cuh`, `math.cuh` and `rng.cuh` against their Rust twins, equal to the bit.

use crate::host_compiler::{self, Effort};
use libloading::{Library, Symbol};
use std::sync::LazyLock;
use vecaz::device::source::FILES;
use vecaz::device::{GpuCode, Program};
use vecaz::game::board;
use vecaz::math;
use vecaz::rng::{self, Key, Purpose};

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let program = Program {
        game: "twins".into(),
        source: "#include \"rng.cuh\"".into(),
        headers: FILES.iter().map(|&(name, text)| (name.into(), text.into())).collect(),
        defines: Vec::new(),
        code: GpuCode::Portable,
    };
    host_compiler::library(&program, include_str!("twins.cpp"), Effort::Much)
        .unwrap_or_else(|what| panic!("{what}"))
});

/// The function called `name`.
///
/// # Safety
/// `F` must be its type in twins.cpp.
unsafe fn function<F>(name: &str) -> Symbol<'static, F> {
    // SAFETY: by this function's own condition.
    unsafe { LIBRARY.get(name) }.unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn same(what: &str, input: impl std::fmt::Debug, kernel: f32, rust: f32) {
    assert_eq!(kernel.to_bits(), rust.to_bits(), "{what} of {input:?}: kernel {kernel}, Rust {rust}");
}

/// Numbers of every size and sign, denormals and infinities among them; no NaN.
fn floats() -> Vec<f32> {
    let everywhere = (0..=u32::MAX).step_by(4_099).map(f32::from_bits);
    let mut rng = Key::new(3, Purpose::Evaluation).stream();
    let usual = (0..200_000).map(move |_| (rng.uniform() - 0.5) * 180.0);
    let edges = [0.0, -0.0, 1.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, -87.3, 88.3];
    everywhere.chain(usual).chain(edges).filter(|x| !x.is_nan()).collect()
}

type OfOne = unsafe extern "C" fn(*const f32, *mut f32, i32);

fn compare_of_one(name: &str, rust: impl Fn(f32) -> f32) {
    let x = floats();
    let mut out = vec![0.0; x.len()];
    // SAFETY: the type is that of twins.cpp; both arrays hold as many numbers as it is told.
    unsafe { function::<OfOne>(name)(x.as_ptr(), out.as_mut_ptr(), x.len() as i32) };
    x.iter().zip(&out).for_each(|(&x, &kernel)| same(name, x, kernel, rust(x)));
}

#[test]
fn exp_and_ln_are_those_of_rust() {
    compare_of_one("twin_exp", math::exp);
    compare_of_one("twin_ln", math::ln);
}

#[test]
fn pow_is_that_of_rust() {
    type OfTwo = unsafe extern "C" fn(*const f32, *const f32, *mut f32, i32);
    let mut rng = Key::new(4, Purpose::Evaluation).stream();
    let x: Vec<f32> = (0..300_000).map(|_| math::exp(rng.normal() * 10.0)).collect();
    let y: Vec<f32> = x.iter().map(|_| rng.normal() * 2.0).collect();
    let mut out = vec![0.0; x.len()];
    // SAFETY: the type is that of twins.cpp; the arrays hold as many numbers as it is told.
    unsafe { function::<OfTwo>("twin_pow")(x.as_ptr(), y.as_ptr(), out.as_mut_ptr(), x.len() as i32) };
    for ((&x, &y), &kernel) in x.iter().zip(&y).zip(&out) {
        same("pow", (x, y), kernel, math::pow(x, y));
    }
}

#[test]
fn sums_over_edges_are_those_of_rust() {
    type Reduce = unsafe extern "C" fn(*const f32, i32) -> f32;
    type ReduceEight = unsafe extern "C" fn(*const f32) -> f32;
    type InPlace = unsafe extern "C" fn(*mut f32, i32);
    let mut rng = Key::new(5, Purpose::Evaluation).stream();
    for n in (1..300).chain([1_000, 4_672]) {
        let x: Vec<f32> = (0..n).map(|_| rng.normal() * 4.0).collect();
        // SAFETY: the types are those of twins.cpp, and no function is told of more numbers than there are.
        let (sum, soft) = unsafe {
            let mut soft = x.clone();
            function::<InPlace>("twin_softmax")(soft.as_mut_ptr(), n);
            (function::<Reduce>("twin_sum")(x.as_ptr(), n), soft)
        };
        same("sum", &x, sum, math::sum(x.iter().copied()));
        let mut expected = x.clone();
        math::softmax(&mut expected);
        soft.iter().zip(&expected).for_each(|(&kernel, &rust)| same("softmax", &x, kernel, rust));
        if let Some(eight) = x.first_chunk::<8>() {
            // SAFETY: as above; both read eight numbers.
            let (fold, largest) = unsafe {
                let fold = function::<ReduceEight>("twin_fold")(eight.as_ptr());
                (fold, function::<ReduceEight>("twin_largest")(eight.as_ptr()))
            };
            same("fold", eight, fold, math::fold(*eight));
            same("largest", eight, largest, math::largest(*eight));
        }
    }
}

const PURPOSES: [Purpose; 12] = [
    Purpose::RootNoise,
    Purpose::Gumbel,
    Purpose::Act,
    Purpose::Chance,
    Purpose::SearchChance,
    Purpose::Determinise,
    Purpose::Opening,
    Purpose::Weights,
    Purpose::Batch,
    Purpose::Symmetry,
    Purpose::Evaluation,
    Purpose::Rollout,
];

/// Kinds of draws in one round.
const KINDS: usize = 9;

/// One round of every kind of draw, as `twin_draws` makes it.
fn draws(stream: &mut rng::RngStream, round: usize, bound: u64, alpha: f32) -> [u64; KINDS] {
    let mut out = [
        stream.next_u64(),
        u64::from(stream.uniform().to_bits()),
        u64::from(stream.uniform_positive().to_bits()),
        stream.below(bound as usize) as u64,
        u64::from(stream.gumbel().to_bits()),
        u64::from(stream.normal().to_bits()),
        u64::from(stream.gamma(alpha).to_bits()),
        0,
        0,
    ];
    let mut weights = [0.0f32; 5];
    stream.dirichlet(alpha, &mut weights);
    out[7] = weights.iter().fold(0u64, |bits, w| bits.rotate_left(13) ^ u64::from(w.to_bits()));
    weights[round % 5] = 0.0;
    out[8] = stream.weighted(&weights) as u64;
    out
}

#[test]
fn draws_are_those_of_rust() {
    type Draws = unsafe extern "C" fn(u64, u64, *const u64, i32, u64, f32, i32, *mut u64);
    const ROUNDS: usize = 200;
    let mut meta = Key::new(6, Purpose::Evaluation).stream();
    for number in 0..60 {
        let purpose = PURPOSES[number % PURPOSES.len()];
        let seed = meta.next_u64() >> (number % 60);
        let counters: Vec<u64> = (0..number % 6).map(|_| meta.next_u64() >> (8 * (number % 8))).collect();
        let bound = 1 + meta.next_u64() % [1, 7, 362, 1 << 40][number % 4];
        let alpha = [0.03, 0.3, 1.0, 2.5, 10.0][number % 5];
        let mut out = vec![0; ROUNDS * KINDS];
        // SAFETY: the type is that of twins.cpp; `out` holds what ROUNDS rounds write.
        unsafe {
            let (list, length) = (counters.as_ptr(), counters.len() as i32);
            function::<Draws>("twin_draws")(
                seed,
                purpose as u64,
                list,
                length,
                bound,
                alpha,
                ROUNDS as i32,
                out.as_mut_ptr(),
            );
        }
        let key = counters.iter().fold(Key::new(seed, purpose), |key, &counter| key.with(counter));
        let mut stream = key.stream();
        for (round, kernel) in out.chunks_exact(KINDS).enumerate() {
            let rust = draws(&mut stream, round, bound, alpha);
            assert_eq!(
                kernel, rust,
                "{purpose:?} {seed} {counters:?} bound {bound} alpha {alpha} round {round}"
            );
        }
    }
}

#[test]
fn tables_are_those_of_rust() {
    let table = rng::table::<500>(5);
    // SAFETY: the type is that of twins.cpp.
    let entry = unsafe { function::<unsafe extern "C" fn(u64, u64) -> u64>("twin_table_entry") };
    for (i, &rust) in table.iter().enumerate() {
        // SAFETY: the function takes two numbers and touches no memory.
        assert_eq!(unsafe { entry(5, i as u64) }, rust, "entry {i}");
    }
}

#[test]
fn bit_operations_are_those_of_rust() {
    let mut rng = Key::new(7, Purpose::Evaluation).stream();
    for number in 0..2_000 {
        let x = (rng.next_u64() >> (number % 64)).max(1);
        let by = 1 + rng.below(63) as i32;
        let mut bits = [0; 64];
        let n = board::write_bits(x, 7, &mut bits);
        let rust = [
            u64::from(x.count_ones()),
            u64::from((x as u32).count_ones()),
            u64::from(x.trailing_zeros()),
            u64::from(x.leading_zeros()),
            x.reverse_bits(),
            x.swap_bytes(),
            x.rotate_left(by as u32),
            ((u128::from(x) * u128::from(!x)) >> 64) as u64,
            bits[..n].iter().fold(0, |hash: u64, &p| hash.wrapping_mul(131).wrapping_add(u64::from(p))),
        ];
        let mut kernel = [0; 9];
        // SAFETY: the type is that of twins.cpp, which writes nine numbers.
        unsafe {
            function::<unsafe extern "C" fn(u64, i32, *mut u64)>("twin_bits")(x, by, kernel.as_mut_ptr())
        };
        assert_eq!(kernel, rust, "{x:#x} by {by}");
    }
}
