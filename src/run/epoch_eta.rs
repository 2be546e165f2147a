//! How far an epoch's self-play is: from the plies of the games in progress and the mean length of finished games. The number of
//! samples so far says little about it, since a game gives its samples when it ends.

use crate::play::GameSlot;

/// Games in progress are taken to be at least this much longer than they are.
const LONGER: f64 = 1.25;

/// The games of an epoch so far.
#[derive(Clone, Copy, Debug)]
pub struct EpochEta {
    /// Samples that the epoch needs.
    target: f64,
    /// Plies of the games in progress at the start.
    plies_before: f64,
    /// Mean length of the games of the epoch before; None in the first epoch.
    length_before: Option<f64>,
}

/// Sums over the games that ended in an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Their number.
    pub games: f64,
    /// Their plies.
    pub plies: f64,
    /// Their samples.
    pub samples: f64,
}

impl EpochEta {
    /// The start of an epoch of `target` samples with these games in progress.
    pub fn new<'a>(
        target: u64,
        slots: impl Iterator<Item = &'a GameSlot>,
        length_before: Option<f64>,
    ) -> Self {
        let plies_before = slots.map(|slot| slot.actions.len() as f64).sum();
        Self { target: target as f64, plies_before, length_before }
    }

    /// The fraction of the epoch's plies that is played; 0 while no finished game shows how long games are.
    pub fn fraction<'a>(&self, slots: impl Iterator<Item = &'a GameSlot>, ended: Ended) -> f64 {
        let length = if ended.games > 0.0 { Some(ended.plies / ended.games) } else { self.length_before };
        let Some(length) = length.filter(|length| *length > 0.0) else { return 0.0 };
        let games: Vec<InProgress> = slots.map(InProgress::of).collect();
        let searched = games.iter().map(|game| game.plies - game.opening).sum::<f64>();
        let waiting = games.iter().map(|game| game.samples).sum::<f64>();
        // Samples for each ply: fewer than 1 with dice and openings.
        let density = match searched > 0.0 && waiting > 0.0 {
            true => waiting / searched,
            false => ended.samples / ended.plies.max(1.0),
        };
        let missing = self.target - ended.samples;
        if missing <= 0.0 || density <= 0.0 {
            return if missing <= 0.0 { 1.0 } else { 0.0 };
        }
        let played = games.iter().map(|game| game.plies).sum::<f64>() + ended.plies - self.plies_before;
        let left = plies_left(&games, length, density, missing) * games.len() as f64;
        // Near the end the samples of the games that have ended are the better estimate; it is never too high.
        (played / (played + left)).max(ended.samples / self.target).clamp(0.0, 1.0)
    }
}

/// A game in progress.
struct InProgress {
    plies: f64,
    opening: f64,
    samples: f64,
}

impl InProgress {
    fn of(slot: &GameSlot) -> Self {
        let plies = slot.actions.len() as f64;
        Self { plies, opening: f64::from(slot.opening), samples: slot.samples.len() as f64 }
    }

    /// The samples of this game and of those after it in its slot that end within `plies` plies of now.
    fn samples_within(&self, plies: f64, length: f64, density: f64) -> f64 {
        let left = length.max(LONGER * self.plies) - self.plies;
        if plies < left {
            return 0.0;
        }
        self.samples + density * (left + ((plies - left) / length).floor() * length)
    }
}

/// Plies of each slot until `missing` samples are there.
fn plies_left(games: &[InProgress], length: f64, density: f64, missing: f64) -> f64 {
    let within = |plies| games.iter().map(|game| game.samples_within(plies, length, density)).sum::<f64>();
    let longest = games.iter().map(|game| LONGER * game.plies).fold(length, f64::max);
    let (mut low, mut high) = (0.0, 2.0 * longest + missing / density / games.len().max(1) as f64);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if within(middle) < missing { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::Sample;

    fn slot(opening: u32, plies: usize) -> GameSlot {
        let samples = vec![Sample::default(); plies - opening as usize];
        GameSlot { actions: vec![0; plies], opening, samples, ..GameSlot::default() }
    }

    /// Plays slots whose games all have 100 plies, and compares the fraction with that of the plies to the end of the epoch.
    #[test]
    fn the_fraction_is_that_of_the_plies_even_before_most_games_end() {
        let start: Vec<usize> = (0..50).map(|i| 2 * i).collect();
        let at = |ply: usize| -> (Vec<GameSlot>, Ended) {
            let mut ended = Ended { games: 0.0, plies: 0.0, samples: 0.0 };
            let slots = start.iter().map(|&first| {
                let now = first + ply;
                for game in 0..now / 100 {
                    ended.games += 1.0;
                    ended.plies += 100.0;
                    ended.samples += if game == 0 { (100 - first) as f64 } else { 100.0 };
                }
                if now < 100 { slot(first as u32, now) } else { slot(0, now % 100) }
            });
            (slots.collect(), ended)
        };
        let end = (1..).find(|&ply| at(ply).1.samples >= 2000.0).expect("an end");
        let eta = EpochEta::new(2000, at(0).0.iter(), None);
        assert_eq!(eta.fraction(at(1).0.iter(), at(1).1), 0.0, "no game has ended");
        for ply in (5..end).step_by(5) {
            let (slots, ended) = at(ply);
            let (found, expected) = (eta.fraction(slots.iter(), ended), ply as f64 / end as f64);
            let by_samples = ended.samples / 2000.0;
            assert!((found - expected).abs() < 0.12, "{ply} of {end}: {found}, by samples {by_samples}");
        }
        let (slots, ended) = at(end);
        assert_eq!(eta.fraction(slots.iter(), ended), 1.0);
    }

    #[test]
    fn the_epoch_before_is_a_basis() {
        let slots = [slot(0, 30), slot(0, 10)];
        let none = Ended { games: 0.0, plies: 0.0, samples: 0.0 };
        let eta = EpochEta { target: 80.0, plies_before: 0.0, length_before: Some(60.0) };
        // The games end after 30 and 50 plies and then have 60 samples each.
        let fraction = eta.fraction(slots.iter(), none);
        assert!((fraction - 40.0 / 140.0).abs() < 0.02, "{fraction}");
    }
}
