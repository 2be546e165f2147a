//! The law of actions at the points of a board.

use super::law::{Law, holds};
use super::trail::Trail;
use super::walk::{observe, some_symmetries, walk};
use crate::game::{Game, ObsShape, PointActions, Sizes};

/// A symmetry moves an action and what an observation shows at its point alike. Two channels may be exchanged, such as those of two borders.
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
    walk(game, trail, |position, rng| {
        for symmetry in some_symmetries(sizes.num_symmetries, rng) {
            let to = images_of_points(game, &sizes, actions, symmetry)?;
            let image = game.transform(&position.state, symmetry);
            for player in 0..sizes.num_players as u8 {
                let seen = observe(game, &position.state, player);
                let of_image = observe(game, &image, game.transform_player(player, symmetry));
                for (channel, plane) in seen.chunks_exact(points).enumerate() {
                    let is_moved =
                        |image: &[f32]| plane.iter().zip(&to).all(|(cell, &to)| image[to] == *cell);
                    holds!(
                        of_image.chunks_exact(points).any(is_moved),
                        "channel {channel} of what player {player} sees: symmetry {symmetry} moves no channel's points as it \
                         moves their actions"
                    );
                }
            }
        }
        Ok(())
    })
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
