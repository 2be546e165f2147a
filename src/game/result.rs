//! The result of a finished game in words.

/// The winner or winners by the `returns` of all players, named by `name_of`; the return in a game for one player. Where the game is not
/// `zero_sum`, players may win and lose together.
pub fn result_text(returns: &[f32], zero_sum: bool, name_of: impl Fn(u8) -> String) -> String {
    if let [only] = returns {
        return format!("a return of {only:+.3}");
    }
    let best = returns.iter().copied().fold(f32::MIN, f32::max);
    let first: Vec<u8> =
        (0..).zip(returns).filter(|(_, value)| **value == best).map(|(player, _)| player).collect();
    match first.as_slice() {
        [player] => format!("{} wins", name_of(*player)),
        all if all.len() < returns.len() => {
            let names: Vec<String> = all.iter().map(|&player| name_of(player)).collect();
            format!("{} share the win", names.join(" and "))
        }
        _ if zero_sum => "a draw".into(),
        _ => match best > 0.0 {
            true => "all players win".into(),
            false => "all players lose".into(),
        },
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
    }
}
