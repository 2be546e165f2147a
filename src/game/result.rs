//! The result of a finished game in words.

/// The players with the highest of the `returns` of all; where all have the same, all of them if it is a win, which it cannot be in a
/// `zero_sum` game, and else none. A game for one player has no winner.
pub fn winners(returns: &[f32], zero_sum: bool) -> Vec<u8> {
    let best = best(returns);
    let first: Vec<u8> =
        (0..).zip(returns).filter(|(_, value)| **value == best).map(|(player, _)| player).collect();
    let all_win = returns.len() > 1 && !zero_sum && best > 0.0;
    if first.len() < returns.len() || all_win { first } else { Vec::new() }
}

fn best(returns: &[f32]) -> f32 {
    returns.iter().copied().fold(f32::MIN, f32::max)
}

/// The winner or winners by the `returns` of all players, named by `name_of`; the return in a game for one player. Where the game is not
/// `zero_sum`, players may win and lose together.
pub fn result_text(returns: &[f32], zero_sum: bool, name_of: impl Fn(u8) -> String) -> String {
    if let [only] = returns {
        return format!("a return of {only:+.3}");
    }
    match winners(returns, zero_sum).as_slice() {
        [] if zero_sum || best(returns) == 0.0 => "a draw".into(),
        [] => "all players lose".into(),
        [player] => format!("{} wins", name_of(*player)),
        all if all.len() == returns.len() => "all players win".into(),
        some => {
            let names: Vec<String> = some.iter().map(|&player| name_of(player)).collect();
            format!("{} share the win", names.join(" and "))
        }
    }
}

/// `values` with 0 in place of -0, which is what a draw is for the second player.
pub fn without_minus_zero(values: Vec<f32>) -> Vec<f32> {
    values.into_iter().map(|value| value + 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_name_who_wins() {
        let text =
            |returns: &[f32], zero_sum| result_text(returns, zero_sum, |player| format!("player {player}"));
        assert_eq!(text(&[-1.0, 1.0], true), "player 1 wins");
        assert_eq!(text(&[0.0, 0.0], true), "a draw");
        assert_eq!(text(&[0.5, -1.0, 0.5], true), "player 0 and player 2 share the win");
        assert_eq!(text(&[0.25], false), "a return of +0.250");
        assert_eq!(
            [text(&[1.0, 1.0], false), text(&[-1.0, -1.0], false)],
            ["all players win", "all players lose"]
        );
        assert_eq!(text(&[0.0, -0.0], false), "a draw");
    }

    #[test]
    fn winners_are_those_whom_the_result_names() {
        assert_eq!(winners(&[0.4, 0.35, -0.35, -0.4], true), [0]);
        assert_eq!(winners(&[0.5, -1.0, 0.5], true), [0, 2]);
        assert_eq!(winners(&[1.0, 1.0], false), [0, 1]);
        for (nobody, zero_sum) in [([0.0_f32, 0.0], true), ([0.0, 0.0], false), ([-0.4, -0.4], false)] {
            assert!(winners(&nobody, zero_sum).is_empty(), "{nobody:?}");
        }
        assert!(winners(&[0.25], false).is_empty());
    }
}
