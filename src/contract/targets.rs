//! The law of a game's own targets of training.

use super::law::{Law, holds};
use super::points::images_of_points;
use super::trail::Trail;
use super::walk::{some_symmetries, walk};
use crate::game::{Game, MAX_TARGET_LEN, ObsShape, Sizes, Target, TargetShape, Turn};

/// Names of what every sample has, and of its heads.
const RESERVED: [&str; 4] = ["policy", "value", "values", "outcome"];
/// Plies between two positions whose images are checked.
const IMAGE_PLIES: usize = 7;
/// Tolerance of a number of an image, which may be summed in another order.
const ROUNDING: f32 = 1e-6;

/// Targets have names of their own, and for each decision of a finished game every number is written, in [-1, 1]. The same holds for the
/// images under symmetries, of which training makes its batches. A target at the points of the board moves with them; the image of another
/// vector only the game knows.
pub(super) fn targets_are_complete<G: Game>(game: &G, trail: &Trail) -> Law {
    let (sizes, targets) = (game.sizes(), game.targets());
    check_names(&targets)?;
    if targets.is_empty() {
        return Ok(());
    }
    walk(game, trail, |last, rng| {
        if !last.is_over() {
            return Ok(());
        }
        let decisions = last.before.iter().enumerate();
        for (plies, position) in decisions {
            let Turn::Player(player) = game.turn(position) else { continue };
            let symmetries = match plies.is_multiple_of(IMAGE_PLIES) {
                true => some_symmetries(sizes.num_symmetries, rng),
                false => Vec::new(),
            };
            for (number, target) in targets.iter().enumerate() {
                let of = format!("target {} of the position after {plies} plies", target.name);
                let len = target_len(target, sizes.obs);
                let found = written(game, number, len, [position, &last.state], player, &of)?;
                for &symmetry in &symmetries {
                    let of = format!("{of}, symmetry {symmetry}");
                    let states = [position, &last.state].map(|state| game.transform(state, symmetry));
                    let player = game.transform_player(player, symmetry);
                    let image = written(game, number, len, states.each_ref(), player, &of)?;
                    if target.shape == TargetShape::Points {
                        check_image(game, &sizes, symmetry, &found, &image)
                            .map_err(|what| format!("{of}: {what}"))?;
                    }
                }
            }
        }
        Ok(())
    })
}

/// Checks what names and shapes of targets must be.
fn check_names(targets: &[Target]) -> Law {
    for (i, Target { name, shape, .. }) in targets.iter().enumerate() {
        let reserved = RESERVED.join(", ");
        holds!(
            !RESERVED.contains(&name.as_str()),
            "a target is called {name}; expected a name of its own, none of {reserved}"
        );
        let is_in_lists = !name.is_empty() && name.trim() == name && !name.contains(',');
        holds!(
            is_in_lists,
            "a target is called {name:?}; expected a text without commas and without blanks at its ends, \
             since the names in net.auxiliary are separated by commas"
        );
        holds!(targets[..i].iter().all(|other| other.name != *name), "two targets are called {name}");
        let fits = match *shape {
            TargetShape::Points => true,
            TargetShape::Vector(len) => (1..=MAX_TARGET_LEN).contains(&len),
        };
        holds!(fits, "the target {name} is {shape:?}, expected 1 to {MAX_TARGET_LEN} numbers");
    }
    Ok(())
}

/// Elements of a target.
fn target_len(target: &Target, ObsShape { height, width, .. }: ObsShape) -> usize {
    match target.shape {
        TargetShape::Points => height * width,
        TargetShape::Vector(len) => len,
    }
}

/// Target `number`, which `of` describes, of a position and the end of its game, seen by `player`. `[len]`
fn written<G: Game>(
    game: &G,
    number: usize,
    len: usize,
    [position, end]: [&G::State; 2],
    player: u8,
    of: &str,
) -> Result<Vec<f32>, String> {
    let mut out = vec![f32::NAN; len];
    game.write_target(number, position, end, player, &mut out);
    match out.iter().position(|x| !(-1.0..=1.0).contains(x)) {
        Some(at) if out[at].is_nan() => {
            Err(format!("{of}: entry {at} is not written or not a number, expected a number in [-1, 1]"))
        }
        Some(at) => Err(format!("{of}: entry {at} is {}, expected a number in [-1, 1]", out[at])),
        None => Ok(out),
    }
}

/// Checks that the numbers of an image are those of the points that the symmetry moves there. Where no actions show how points move,
/// the image must have the same numbers at some points.
fn check_image<G: Game>(game: &G, sizes: &Sizes, symmetry: u64, found: &[f32], image: &[f32]) -> Law {
    let is_close = |a: f32, b: f32| (a - b).abs() <= ROUNDING;
    let Some(actions) = sizes.point_actions else {
        let [found, image] = [found, image].map(|numbers| {
            let mut sorted = numbers.to_vec();
            sorted.sort_by(f32::total_cmp);
            sorted
        });
        let are_same = found.iter().zip(&image).all(|(&a, &b)| is_close(a, b));
        holds!(are_same, "the image has other numbers, in order {image:?}, expected {found:?}");
        return Ok(());
    };
    for (point, &to) in images_of_points(game, sizes, actions, symmetry)?.iter().enumerate() {
        let (got, expected) = (image[to], found[point]);
        holds!(is_close(got, expected), "point {to}, the image of {point}, has {got}, expected {expected}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Head, SAMPLE_TARGETS};

    #[test]
    fn reserved_names_are_those_of_the_heads_that_all_networks_may_have() {
        let mut names: Vec<&str> = SAMPLE_TARGETS.iter().copied().chain([Head::VALUE]).collect();
        let mut reserved = RESERVED.to_vec();
        names.sort_unstable();
        reserved.sort_unstable();
        assert_eq!(reserved, names);
    }
}
