//! The law of actions at the points of a board.

use super::law::{Law, holds};
use super::trail::Trail;
use super::walk::{observe, some_symmetries, walk};
use crate::game::{Game, ObsShape, PointActions, Sizes};
use std::collections::HashMap;

/// A symmetry moves an action and what an observation shows at its point alike. Channels may be exchanged, such as those of two borders, in the
/// same way in all positions.
pub(super) fn actions_are_at_their_points<G: Game>(game: &G, trail: &Trail) -> Law {
    let sizes = game.sizes();
    let Some(actions) = sizes.point_actions else { return Ok(()) };
    let ObsShape { height, width, .. } = sizes.obs;
    let points = height * width;
    holds!(
        (1..=sizes.num_actions).contains(&(actions.planes * points)),
        "point_actions has {} actions at each of {points} points, num_actions is {}",
        actions.planes,
        sizes.num_actions
    );
    let mut images: HashMap<(u64, u8), ChannelImages> = HashMap::new();
    walk(game, trail, |position, rng| {
        for symmetry in some_symmetries(sizes.num_symmetries, rng) {
            let to = images_of_points(game, &sizes, actions, symmetry)?;
            let image = game.transform(&position.state, symmetry);
            for player in 0..sizes.num_players as u8 {
                let seen = observe(game, &position.state, player);
                let of_image = observe(game, &image, game.transform_player(player, symmetry));
                let planes = |all: &[f32]| all.chunks_exact(points).map(<[f32]>::to_vec).collect::<Vec<_>>();
                let channels = images
                    .entry((symmetry, player))
                    .or_insert_with(|| ChannelImages::new(sizes.obs.channels));
                channels.keep_moved(&planes(&seen), &planes(&of_image), &to);
                if let Some(channel) = channels.without_image() {
                    return Err(format!(
                        "channel {channel} of what player {player} sees: symmetry {symmetry} moves no channel's points as it \
                         moves their actions, here and in the positions before"
                    ));
                }
            }
        }
        Ok(())
    })
}

/// The channels of an image that had the moved points of each channel in every position so far. `[channels][some]`
struct ChannelImages(Vec<Vec<usize>>);

impl ChannelImages {
    fn new(channels: usize) -> Self {
        Self(vec![(0..channels).collect(); channels])
    }

    /// Drops those that have not in this position: the planes `seen` and those of its image, whose points are moved to `to`.
    fn keep_moved(&mut self, seen: &[Vec<f32>], of_image: &[Vec<f32>], to: &[usize]) {
        for (plane, images) in seen.iter().zip(&mut self.0) {
            images.retain(|&image| plane.iter().zip(to).all(|(cell, &to)| of_image[image][to] == *cell));
        }
    }

    /// A channel that has no image of its own, if each image is that of one channel (a bipartite matching by augmenting paths).
    fn without_image(&self) -> Option<usize> {
        let mut channel_of = vec![None; self.0.len()];
        (0..self.0.len())
            .find(|&channel| !self.assign(channel, &mut channel_of, &mut vec![false; self.0.len()]))
    }

    /// Gives `channel` an image, and others of theirs in exchange. `channel_of`, `tried`: `[images]`
    fn assign(&self, channel: usize, channel_of: &mut [Option<usize>], tried: &mut [bool]) -> bool {
        self.0[channel].iter().any(|&image| {
            if std::mem::replace(&mut tried[image], true) {
                return false;
            }
            let is_free = channel_of[image].is_none_or(|other| self.assign(other, channel_of, tried));
            if is_free {
                channel_of[image] = Some(channel);
            }
            is_free
        })
    }
}

/// The point to which a symmetry moves the actions of each point. `[points]`
pub(super) fn images_of_points<G: Game>(
    game: &G,
    sizes: &Sizes,
    PointActions { planes, order }: PointActions,
    symmetry: u64,
) -> Result<Vec<usize>, String> {
    let board = [sizes.obs.height, sizes.obs.width];
    let image = |point: usize| {
        let first = order.number(point, board) * planes;
        let mut numbers = (first..first + planes)
            .map(|action| usize::from(game.transform_action(action as u16, symmetry)) / planes);
        let number = numbers.next().unwrap_or_default();
        holds!(
            number < board[0] * board[1] && numbers.all(|other| other == number),
            "symmetry {symmetry} does not move the actions of point {point} to one point"
        );
        Ok(order.point(number, board))
    };
    (0..board[0] * board[1]).map(image).collect()
}
