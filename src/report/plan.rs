//! How long a run takes on a machine, from the epochs that it has made there. Knows no clock and no files.

use super::metrics::EpochRecord;

const DAY: f64 = 86_400.0;

/// Speed of a run, start to end: self-play, training and evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSpeed {
    /// Seconds of wall clock on which the rates stand.
    pub seconds: f64,
    /// Finished games a second; None if none has ended.
    pub games: Option<f64>,
    /// Samples a second.
    pub samples: f64,
    /// Simulations a second of self-play alone.
    pub simulations: f64,
    /// Mean plies of a game; None if none has ended.
    pub game_length: Option<f64>,
    /// Shares of time in self-play, training and evaluation, each on its own. Together they are at most 1, except where training overlaps
    /// self-play.
    pub shares: [f64; 3],
}

impl RunSpeed {
    /// The rates of the later half of `records` by time: the first epochs are short, and their games are those of random weights. None
    /// without records.
    pub fn of(records: &[EpochRecord]) -> Option<Self> {
        let end = records.last()?.seconds;
        let first = records.iter().position(|record| record.seconds > end / 2.0)?;
        let start = if first == 0 { 0.0 } else { records[first - 1].seconds };
        let kept = &records[first..];
        let seconds = end - start;
        let sum = |of: fn(&EpochRecord) -> f64| kept.iter().map(of).sum::<f64>();
        let games = sum(|record| record.games as f64);
        let plies = sum(|record| record.games as f64 * record.mean_game_length.unwrap_or(0.0));
        let parts = [
            sum(|record| record.selfplay_seconds),
            sum(|record| record.train_seconds),
            sum(|record| record.eval_seconds),
        ];
        (seconds > 0.0).then(|| Self {
            seconds,
            games: (games > 0.0).then_some(games / seconds),
            samples: sum(|record| record.samples as f64) / seconds,
            simulations: sum(|record| record.simulations as f64) / parts[0].max(f64::MIN_POSITIVE),
            game_length: (games > 0.0).then_some(plies / games),
            shares: parts.map(|part| part / seconds),
        })
    }

    /// Games a day.
    pub fn games_a_day(&self) -> Option<f64> {
        self.games.map(|games| games * DAY)
    }

    /// Samples a day.
    pub fn samples_a_day(&self) -> f64 {
        self.samples * DAY
    }

    /// Hours until `games` are finished.
    pub fn hours(&self, games: f64) -> Option<f64> {
        self.games.map(|rate| games / rate / 3600.0)
    }
}

/// A number for people: three significant digits, with a word for its size.
pub fn rounded(number: f64) -> String {
    let (scaled, word) = match number {
        _ if number >= 1e9 => (number / 1e9, " billion"),
        _ if number >= 1e6 => (number / 1e6, " million"),
        _ if number >= 1e4 => (number / 1e3, " thousand"),
        _ => (number, ""),
    };
    let digits = match scaled {
        _ if scaled >= 100.0 || scaled == 0.0 => 0,
        _ if scaled >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{word}")
}

/// A duration in a unit that suits its length: `5.8 hours`, `12.0 days`.
pub fn duration(hours: f64) -> String {
    match hours {
        _ if hours < 1.0 / 60.0 => format!("{:.0} seconds", hours * 3600.0),
        _ if hours < 1.0 => format!("{:.0} minutes", hours * 60.0),
        _ if hours < 48.0 => format!("{hours:.1} hours"),
        _ => format!("{:.1} days", hours / 24.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(epoch: u64, seconds: f64, games: u64) -> EpochRecord {
        EpochRecord {
            epoch,
            seconds,
            games,
            samples: 1000,
            simulations: 64_000,
            selfplay_seconds: 4.0,
            train_seconds: 5.0,
            eval_seconds: 1.0,
            mean_game_length: (games > 0).then_some(20.0),
            ..EpochRecord::default()
        }
    }

    #[test]
    fn rates_are_those_of_the_later_half() {
        assert_eq!(RunSpeed::of(&[]), None);
        let records = [record(1, 90.0, 1), record(2, 100.0, 40), record(3, 110.0, 60)];
        let one = RunSpeed::of(&records[..1]).unwrap();
        assert_eq!((one.seconds, one.games, one.samples), (90.0, Some(1.0 / 90.0), 1000.0 / 90.0));
        // The first epoch ends after the middle of the time, so it counts.
        assert_eq!(RunSpeed::of(&records).unwrap().seconds, 110.0);
        let records: Vec<EpochRecord> = (1..=10).map(|n| record(n, 10.0 * n as f64, 30)).collect();
        let rates = RunSpeed::of(&records).unwrap();
        assert_eq!((rates.seconds, rates.games, rates.samples), (50.0, Some(3.0), 100.0));
        assert_eq!(
            (rates.simulations, rates.game_length, rates.shares),
            (16_000.0, Some(20.0), [0.4, 0.5, 0.1])
        );
        assert_eq!((rates.games_a_day(), rates.hours(10_800.0)), (Some(259_200.0), Some(1.0)));
    }

    #[test]
    fn without_a_finished_game_there_is_no_forecast_of_games() {
        let rates = RunSpeed::of(&[record(1, 10.0, 0)]).unwrap();
        assert_eq!((rates.games, rates.game_length, rates.hours(1.0)), (None, None, None));
        assert_eq!(rates.samples_a_day(), 8_640_000.0);
    }

    #[test]
    fn numbers_and_durations_are_short() {
        let numbers = [0.0, 3.456, 48.0, 999.6, 12_345.0, 4_123_456.0, 2.5e9];
        let expected = ["0", "3.46", "48.0", "1000", "12.3 thousand", "4.12 million", "2.50 billion"];
        assert_eq!(numbers.map(rounded), expected);
        let hours = [0.001, 0.25, 5.81, 47.9, 288.0];
        assert_eq!(hours.map(duration), ["4 seconds", "15 minutes", "5.8 hours", "47.9 hours", "12.0 days"]);
    }
}
