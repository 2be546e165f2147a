//! The messages of an edge network between edges of K_n that share vertices: sums at vertices, sums over an edge's ends, products
//! around triangles.
//!
//! Arrays are `[positions, L]`, positions being edges in lexicographic order (0-1, 0-2, .., 1-2, ..) or vertices, and L any
//! product of rows and columns. Plain Rust compiled for each instruction set; sums have one fixed order and
//! no fused multiply-adds, so the bits are the same on all.

use super::number::Activation;
use crate::isa::for_each_isa;
use crate::model::{CompleteGraph, MAX_VERTICES};

/// Elements of one vector of the kernels.
const LANES: usize = 16;

type Lanes = [f32; LANES];
/// [`LANES`] columns of every edge as a symmetric matrix: edge (i, j) is at (i, j) and (j, i), the diagonal is 0.
type AdjacencyTile = [[Lanes; MAX_VERTICES]; MAX_VERTICES];

/// Some rows of edges and the columns of them that are multiplied around triangles.
#[derive(Clone, Copy, Debug)]
pub struct TriangleColumns {
    /// Elements of one row of one edge.
    pub width: usize,
    /// Columns from the first on; the others stay as they are.
    pub columns: usize,
    /// The factor of the sums.
    pub scale: f32,
}

#[inline(always)]
fn load<N: Activation>(x: &[N]) -> Lanes {
    let mut out = [0.0; LANES];
    match <&[N; LANES]>::try_from(x) {
        Ok(x) => {
            for i in 0..LANES {
                out[i] = x[i].to_f32();
            }
        }
        Err(_) => out.iter_mut().zip(x).for_each(|(out, x)| *out = x.to_f32()),
    }
    out
}

#[inline(always)]
fn store<N: Activation>(x: &mut [N], lanes: &Lanes) {
    match <&mut [N; LANES]>::try_from(&mut *x) {
        Ok(x) => {
            for i in 0..LANES {
                x[i] = N::from_f32(lanes[i]);
            }
        }
        Err(_) => x.iter_mut().zip(lanes).for_each(|(x, &lane)| *x = N::from_f32(lane)),
    }
}

#[inline(always)]
fn load_adjacency<N: Activation>(
    edges: &CompleteGraph,
    x: &[N],
    step: usize,
    first: usize,
    lanes: usize,
    tile: &mut AdjacencyTile,
) {
    for (edge, &[i, j]) in edges.ends.iter().enumerate() {
        let x = load(&x[edge * step + first..][..lanes]);
        tile[i][j] = x;
        tile[j][i] = x;
    }
}

/// Sums over k of `a[i][k] b[j + t][k]`, t < J.
#[inline(always)]
fn row_products<const J: usize>(
    n: usize,
    a: &AdjacencyTile,
    b: &AdjacencyTile,
    i: usize,
    j: usize,
) -> [Lanes; J] {
    let mut sums = [[0.0; LANES]; J];
    let a = &a[i][..n];
    let b: [&[Lanes]; J] = std::array::from_fn(|t| &b[j + t][..n]);
    for k in 0..n {
        for t in 0..J {
            for l in 0..LANES {
                sums[t][l] += a[k][l] * b[t][k][l];
            }
        }
    }
    sums
}

for_each_isa! {
    /// The sum of the edges at every vertex in f32, times `scale`. `x [E, L]`, `out [n, L]`.
    fn vertex_sums<N: Activation>(edges: &CompleteGraph, x: &[N], scale: f32, out: &mut [N]) {
        let len = x.len() / edges.len();
        for first in (0..len).step_by(LANES) {
            let lanes = LANES.min(len - first);
            for (vertex, at) in edges.at.iter().enumerate() {
                let mut sum = [0.0; LANES];
                for edge in at {
                    let x = load(&x[edge * len + first..][..lanes]);
                    for i in 0..LANES {
                        sum[i] += x[i];
                    }
                }
                sum.iter_mut().for_each(|sum| *sum *= scale);
                store(&mut out[vertex * len + first..][..lanes], &sum);
            }
        }
    }

    /// The mean over all edges. `x [E, L]`, `out [L]`.
    fn mean<N: Activation>(edges: &CompleteGraph, x: &[N], out: &mut [f32]) {
        let len = x.len() / edges.len();
        let scale = 1.0 / edges.len() as f32;
        for first in (0..len).step_by(LANES) {
            let lanes = LANES.min(len - first);
            let mut sum = [0.0; LANES];
            for edge in 0..edges.len() {
                let x = load(&x[edge * len + first..][..lanes]);
                for i in 0..LANES {
                    sum[i] += x[i];
                }
            }
            sum.iter_mut().for_each(|sum| *sum *= scale);
            store(&mut out[first..first + lanes], &sum);
        }
    }

    /// Adds to every edge the sum over its two ends, times `scale`. `x [n, L]`, `y [E, L]`. With the same scale the
    /// transpose of [`vertex_sums`].
    fn add_ends(edges: &CompleteGraph, x: &[f32], scale: f32, y: &mut [f32]) {
        let len = y.len() / edges.len();
        for (y, &[i, j]) in y.chunks_exact_mut(len).zip(&edges.ends) {
            let (a, b) = (&x[i * len..][..len], &x[j * len..][..len]);
            for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
                *y += (a + b) * scale;
            }
        }
    }

    /// Replaces the first columns of every edge (i, j) by `scale` times the sum over k of (i, k) (j, k) in f32, column by column
    /// (the product of matrices in Maron et al. 2019, Provably Powerful Graph Networks). `x [E, rows, width]`.
    fn triangles<N: Activation>(edges: &CompleteGraph, shape: TriangleColumns, x: &mut [N]) {
        const GROUP: usize = 4;
        let TriangleColumns { width, columns, scale } = shape;
        let n = edges.vertices;
        let step = x.len() / edges.len();
        let mut tile: AdjacencyTile = [[[0.0; LANES]; MAX_VERTICES]; MAX_VERTICES];
        for row in (0..step).step_by(width) {
            for first in (row..row + columns).step_by(LANES) {
                let lanes = LANES.min(row + columns - first);
                load_adjacency(edges, x, step, first, lanes, &mut tile);
                let mut assign = |edge: usize, sum: &Lanes| {
                    store(&mut x[edge * step + first..][..lanes], &sum.map(|sum| sum * scale));
                };
                let mut edge = 0;
                for i in 0..n {
                    let mut j = i + 1;
                    while j < n {
                        if j + GROUP <= n {
                            let sums = row_products::<GROUP>(n, &tile, &tile, i, j);
                            (0..GROUP).for_each(|t| assign(edge + t, &sums[t]));
                            (j, edge) = (j + GROUP, edge + GROUP);
                        } else {
                            assign(edge, &row_products::<1>(n, &tile, &tile, i, j)[0]);
                            (j, edge) = (j + 1, edge + 1);
                        }
                    }
                }
            }
        }
    }

    /// The gradient of [`triangles`] at `x`, in place of that of its output: at (i, j) `scale` times the sum over k of
    /// d(i, k) (j, k) + (i, k) d(j, k). `x` and `d` are `[E, rows, width]`.
    fn triangle_gradient(edges: &CompleteGraph, shape: TriangleColumns, x: &[f32], d: &mut [f32]) {
        let TriangleColumns { width, columns, scale } = shape;
        let n = edges.vertices;
        let step = x.len() / edges.len();
        let mut values: AdjacencyTile = [[[0.0; LANES]; MAX_VERTICES]; MAX_VERTICES];
        let mut slopes: AdjacencyTile = [[[0.0; LANES]; MAX_VERTICES]; MAX_VERTICES];
        for row in (0..step).step_by(width) {
            for first in (row..row + columns).step_by(LANES) {
                let lanes = LANES.min(row + columns - first);
                load_adjacency(edges, x, step, first, lanes, &mut values);
                load_adjacency(edges, d, step, first, lanes, &mut slopes);
                for (edge, &[i, j]) in edges.ends.iter().enumerate() {
                    let [a] = row_products::<1>(n, &slopes, &values, i, j);
                    let [b] = row_products::<1>(n, &values, &slopes, i, j);
                    let sum = std::array::from_fn(|l| (a[l] + b[l]) * scale);
                    store(&mut d[edge * step + first..][..lanes], &sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::net::number::Bf16;
    use crate::rng::{Key, Purpose};

    fn numbers(len: usize, seed: u64) -> Vec<f32> {
        let mut rng = Key::new(seed, Purpose::Evaluation).stream();
        (0..len).map(|_| rng.normal()).collect()
    }

    fn dot(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    }

    /// Two rows of 20 columns of which 18 take part: whole blocks and the rest of one.
    const SHAPE: TriangleColumns = TriangleColumns { width: 20, columns: 18, scale: 0.7 };

    #[test]
    fn sums_and_products_are_those_of_their_definitions_on_every_instruction_set() {
        for isa in Isa::available() {
            for n in [3, 6, 9, 17] {
                let edges = CompleteGraph::new(n);
                let x = numbers(edges.len() * 40, 1);
                let number = |i: usize, j: usize| {
                    edges.ends.iter().position(|&ends| ends == [i.min(j), i.max(j)]).expect("an edge")
                };
                let mut sums = vec![9.0; n * 40];
                vertex_sums(isa, &edges, &x, 0.5, &mut sums);
                let mut products = x.clone();
                triangles(isa, &edges, SHAPE, &mut products);
                for (edge, &[i, j]) in edges.ends.iter().enumerate() {
                    for at in 0..40 {
                        let expected = match at % 20 {
                            18.. => x[edge * 40 + at],
                            _ => (0..n)
                                .filter(|&k| k != i && k != j)
                                .map(|k| 0.7 * x[number(i, k) * 40 + at] * x[number(j, k) * 40 + at])
                                .sum(),
                        };
                        assert!((products[edge * 40 + at] - expected).abs() < 1e-4, "{isa:?} {n} {i}-{j}");
                    }
                }
                let at = 5;
                let expected: f32 = (0..n).filter(|&k| k != 1).map(|k| 0.5 * x[number(1, k) * 40 + at]).sum();
                assert!((sums[40 + at] - expected).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn ends_are_the_transpose_of_sums() {
        let edges = CompleteGraph::new(7);
        let (x, y) = (numbers(edges.len() * 21, 1), numbers(7 * 21, 2));
        let (mut sums, mut spread) = (vec![0.0; 7 * 21], vec![0.0; edges.len() * 21]);
        vertex_sums(Isa::detect(), &edges, &x, 0.3, &mut sums);
        add_ends(Isa::detect(), &edges, &y, 0.3, &mut spread);
        assert!((dot(&sums, &y) - dot(&x, &spread)).abs() < 1e-3);
    }

    #[test]
    fn the_triangles_gradient_is_a_finite_difference() {
        let edges = CompleteGraph::new(6);
        let len = edges.len() * 40;
        let (x, weight, direction) = (numbers(len, 1), numbers(len, 2), numbers(len, 3));
        let loss = |step: f32| {
            let mut y: Vec<f32> = x.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
            triangles(Isa::detect(), &edges, SHAPE, &mut y);
            dot(&y, &weight)
        };
        let mut gradient = weight.clone();
        triangle_gradient(Isa::detect(), &edges, SHAPE, &x, &mut gradient);
        let slope = (loss(1e-2) - loss(-1e-2)) / 2e-2;
        assert!((slope - dot(&gradient, &direction)).abs() < 0.01 * slope.abs().max(1.0), "{slope}");
    }

    #[test]
    fn bf16_rounds_the_same_sums() {
        let edges = CompleteGraph::new(5);
        let x: Vec<Bf16> = numbers(edges.len() * 40, 1).into_iter().map(Bf16::from_f32).collect();
        let wide: Vec<f32> = x.iter().map(|x| x.to_f32()).collect();
        let round = |x: &[f32]| -> Vec<Bf16> { x.iter().map(|&x| Bf16::from_f32(x)).collect() };
        let (mut a, mut b) = (x.clone(), wide.clone());
        triangles(Isa::detect(), &edges, SHAPE, &mut a);
        triangles(Isa::detect(), &edges, SHAPE, &mut b);
        assert_eq!(a, round(&b));
        let (mut a, mut b) = (vec![Bf16::from_f32(0.0); 5 * 40], vec![0.0; 5 * 40]);
        vertex_sums(Isa::detect(), &edges, &x, 1.0, &mut a);
        vertex_sums(Isa::detect(), &edges, &wide, 1.0, &mut b);
        assert_eq!(a, round(&b));
        let (mut a, mut b) = (vec![0.0; 40], vec![0.0; 40]);
        mean(Isa::detect(), &edges, &x, &mut a);
        mean(Isa::detect(), &edges, &wide, &mut b);
        assert_eq!(a, b);
        let middle = wide.iter().skip(3).step_by(40).sum::<f32>() / 10.0;
        assert!((a[3] - middle).abs() < 1e-6);
    }
}
