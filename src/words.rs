//! Numbers with their nouns, in sentences for people.

use std::fmt::Display;

/// `number` with `noun`, which is in the singular after 1 only: "1 game", "2 games".
pub fn count(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// `number` for people, rounded to two decimals: the difference of two f32 shows the error of both.
pub fn two_decimals(number: f32) -> f64 {
    (f64::from(number) * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_the_only_singular() {
        let minutes = [0.0, 0.5, 1.0, 1.5].map(|minutes: f64| count(minutes, "minute"));
        assert_eq!(minutes, ["0 minutes", "0.5 minutes", "1 minute", "1.5 minutes"]);
        assert_eq!([count(1, "worker"), count(21, "worker")], ["1 worker", "21 workers"]);
    }

    #[test]
    fn numbers_show_no_error_of_f32() {
        let shown = [12.0 - 12.1, 75.5, 7.0, 0.125].map(|number: f32| two_decimals(number).to_string());
        assert_eq!(shown, ["-0.1", "75.5", "7", "0.13"]);
    }
}
