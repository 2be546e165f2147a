//! The complete graph K_n: its edges in lexicographic order, 0-1, 0-2, .., 1-2, ..

use crate::error::{Error, Result};
use crate::game::ObsShape;

/// The maximum number of vertices that an edge network may have.
pub const MAX_VERTICES: usize = 23;

/// The edges of K_n in lexicographic order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteGraph {
    /// n: vertices.
    pub vertices: usize,
    /// The ends (i, j), i < j, of every edge. `[n (n - 1) / 2][2]`
    pub ends: Vec<[usize; 2]>,
    /// The edges at every vertex, ascending. `[n][n - 1]`
    pub(crate) at: Vec<Vec<usize>>,
}

impl CompleteGraph {
    /// The edges of K_n.
    pub fn new(vertices: usize) -> Self {
        let ends: Vec<[usize; 2]> =
            (0..vertices).flat_map(|i| (i + 1..vertices).map(move |j| [i, j])).collect();
        let at = |v: usize| (0..ends.len()).filter(|&e| ends[e].contains(&v)).collect();
        let at = (0..vertices).map(at).collect();
        Self { vertices, ends, at }
    }

    /// The K_n whose edges are the rows of an observation `[C, n (n - 1) / 2, 1]`, with an action for each of them.
    ///
    /// # Errors
    /// [`Error::Config`] where observation and actions are not the edges of K_n, 3 <= n <= [`MAX_VERTICES`].
    pub fn of_observation(obs: ObsShape, num_actions: usize) -> Result<Self> {
        let vertices = (3..=MAX_VERTICES).find(|n| n * (n - 1) / 2 == obs.height);
        match vertices {
            Some(vertices) if obs.width == 1 && num_actions == obs.height => Ok(Self::new(vertices)),
            _ => {
                let graph = format!("a complete graph of 3 to {MAX_VERTICES} vertices");
                let expected =
                    format!("resnet or mlp, since the actions of this game are not the edges of {graph}");
                Err(Error::config("net.arch", "edge", expected))
            }
        }
    }

    /// Edges.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True for the graph without edges.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// 1 / (n - 1): turns the sum over a vertex's edges into their mean.
    pub fn vertex_scale(&self) -> f32 {
        1.0 / (self.vertices - 1) as f32
    }

    /// 1 / sqrt(n - 2): keeps the variance of a sum over the n - 2 triangles at an edge equal to that of one term.
    pub fn triangle_scale(&self) -> f32 {
        1.0 / ((self.vertices - 2) as f32).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_found_by_their_number_and_nothing_else_is() {
        let shape = |height, width| ObsShape { channels: 4, height, width };
        let edges = CompleteGraph::of_observation(shape(15, 1), 15).expect("K_6");
        assert_eq!((edges.vertices, edges.len(), edges.ends[5]), (6, 15, [1, 2]));
        assert_eq!(edges.at[2], [1, 5, 9, 10, 11]);
        for (height, width, actions) in [(14, 1, 14), (15, 1, 16), (5, 3, 15), (1, 1, 1), (276, 1, 276)] {
            assert!(
                CompleteGraph::of_observation(shape(height, width), actions).is_err(),
                "{height}x{width}"
            );
        }
        let error = CompleteGraph::of_observation(shape(276, 1), 276).expect_err("K_24").to_string();
        assert!(error.ends_with("not the edges of a complete graph of 3 to 23 vertices"), "{error}");
    }
}
