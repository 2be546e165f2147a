//! Which input positions are connected to which output positions by which tap.

use crate::model::Connectivity;

/// One product of a layer: the weights of `tap` applied at input position `position` (in the backward direction: at
/// that output position).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapLink {
    /// Which weights.
    pub tap: usize,
    /// Which position they are applied to.
    pub position: usize,
}

/// One direction of a [`TapMap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapLists {
    /// Positions that are read.
    pub sources: usize,
    /// Number of taps.
    pub taps: usize,
    /// The terms of every written position; all indices are below `sources` and `taps`. `[positions][terms]`
    pub lists: Vec<Vec<TapLink>>,
}

/// The sparse pattern of a linear map between boards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapMap {
    /// Positions of the input.
    pub inputs: usize,
    /// Positions of the output.
    pub outputs: usize,
    /// Number of taps.
    pub taps: usize,
    /// The terms of every output position.
    pub forward: TapLists,
    /// The terms of the gradient of every input position.
    pub backward: TapLists,
    /// The (input, output) positions that meet at every tap. `[taps][..]`
    pub pairs: Vec<Vec<(usize, usize)>>,
}

impl TapMap {
    fn new(
        inputs: usize,
        outputs: usize,
        taps: usize,
        links: impl Iterator<Item = (usize, usize, usize)>,
    ) -> Self {
        let mut tap_map = Self {
            inputs,
            outputs,
            taps,
            forward: TapLists { sources: inputs, taps, lists: vec![Vec::new(); outputs] },
            backward: TapLists { sources: outputs, taps, lists: vec![Vec::new(); inputs] },
            pairs: vec![Vec::new(); taps],
        };
        for (tap, input, output) in links {
            tap_map.forward.lists[output].push(TapLink { tap, position: input });
            tap_map.backward.lists[input].push(TapLink { tap, position: output });
            tap_map.pairs[tap].push((input, output));
        }
        tap_map
    }

    /// The taps of positions in rows and columns of `board`; those of a convolution off the board do not exist.
    pub fn of(connectivity: Connectivity, [height, width]: [usize; 2]) -> Self {
        match connectivity {
            Connectivity::Pointwise => Self::pointwise(height * width),
            Connectivity::Conv3x3 => Self::conv3x3(height, width),
            Connectivity::Flatten => Self::flatten(height * width),
            Connectivity::Spread => Self::spread(height * width),
        }
    }

    fn conv3x3(height: usize, width: usize) -> Self {
        let area = height * width;
        let links = (0..area).flat_map(move |output| {
            (0..9).filter_map(move |tap| {
                let row = (output / width + tap / 3).checked_sub(1).filter(|&row| row < height)?;
                let column = (output % width + tap % 3).checked_sub(1).filter(|&column| column < width)?;
                Some((tap, row * width + column, output))
            })
        });
        Self::new(area, area, 9, links)
    }

    fn pointwise(positions: usize) -> Self {
        Self::new(positions, positions, 1, (0..positions).map(|p| (0, p, p)))
    }

    fn flatten(positions: usize) -> Self {
        Self::new(positions, 1, positions, (0..positions).map(|p| (p, p, 0)))
    }

    fn spread(positions: usize) -> Self {
        Self::new(1, positions, positions, (0..positions).map(|p| (p, 0, p)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backward_direction_is_the_transposed_connectivity() {
        for connectivity in [Connectivity::Pointwise, Connectivity::Flatten, Connectivity::Spread] {
            let [of, transposed] = [connectivity, connectivity.transposed()].map(|c| TapMap::of(c, [3, 4]));
            assert_eq!(of.backward, transposed.forward, "{connectivity:?}");
        }
    }

    #[test]
    fn corners_have_four_taps_edges_six_and_the_middle_nine() {
        let g = TapMap::conv3x3(3, 4);
        assert_eq!(g.pairs.iter().map(Vec::len).sum::<usize>(), (3 * 3 - 2) * (3 * 4 - 2));
        let counts: Vec<usize> = g.forward.lists.iter().map(Vec::len).collect();
        assert_eq!(counts, [4, 6, 6, 4, 6, 9, 9, 6, 4, 6, 6, 4]);
        assert_eq!(g.forward.lists[0][0], TapLink { tap: 4, position: 0 });
        assert_eq!(g.forward.lists[5][0], TapLink { tap: 0, position: 0 });
        assert_eq!(g.backward.lists[0].last(), Some(&TapLink { tap: 0, position: 5 }));
    }
}
