//! Signs that a run learns nothing, in its metrics. They are the same for a resumed run as for an uninterrupted one.

use super::metrics::{EpochLosses, EpochRecord};
use crate::config::{Algorithm, Config};

/// Judged epochs in a row after which a sign is reported.
const EPOCHS: usize = 3;
/// Entropy of the policy targets, relative to that of uniform play, from which on the search prefers no action.
const UNIFORM: f64 = 0.97;
/// A value loss, relative to that of a constant prediction, is falling if it is at most this part of the lowest one before.
const FALLING: f64 = 0.95;
/// Least variance of the value targets of which a network can be expected to explain a part: results that differ by 0.01.
const MIN_VARIANCE: f64 = 1e-4;

/// A sign that the network learns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The policy targets are nearly those of uniform play over the legal actions.
    UniformTargets,
    /// The value loss is not below that of predicting the mean of the value targets, and does not fall towards it.
    ConstantValues,
}

/// A sign in consecutive epochs, three at least.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// The sign.
    pub sign: Sign,
    /// The first of the epochs.
    pub first: u64,
    /// The last of them.
    pub last: u64,
    /// Their number, without epochs that are not judged.
    pub count: usize,
    /// The losses of the last of them.
    pub losses: EpochLosses,
}

/// An epoch by which learning can be judged.
struct Judged<'a> {
    epoch: u64,
    losses: &'a EpochLosses,
    /// The lowest value error of the judged epochs before.
    lowest: Option<f64>,
}

/// The warnings of a run with this configuration and these records, oldest first.
pub fn warnings(config: &Config, records: &[EpochRecord]) -> Vec<Warning> {
    let judged = judged(config, records);
    let signs = [Sign::UniformTargets, Sign::ConstantValues];
    let mut all: Vec<Warning> = signs.into_iter().flat_map(|sign| sign.series(&judged)).collect();
    all.retain(|warning| warning.count >= EPOCHS);
    all.sort_by_key(|warning| warning.first);
    all
}

/// The warnings that the last of `records` gives rise to. One that goes on is not among them.
pub fn new_warnings(config: &Config, records: &[EpochRecord]) -> Vec<Warning> {
    let last = records.last().map(|record| record.epoch);
    let is_new = |warning: &Warning| warning.count == EPOCHS && Some(warning.last) == last;
    warnings(config, records).into_iter().filter(is_new).collect()
}

/// The epochs by which learning can be judged: those with updates that no time limit has cut, after the warm-up. Before that, a network that
/// will learn looks the same. Without a learning rate there is no warm-up.
fn judged<'a>(config: &Config, records: &'a [EpochRecord]) -> Vec<Judged<'a>> {
    let is_warm = |record: &EpochRecord, losses: &EpochLosses| {
        losses.lr == 0.0 || record.updates >= config.train.warmup_updates.min(config.train.lr_updates)
    };
    let whole = records.iter().filter(|record| !record.cut);
    let with_losses = whole.filter_map(|record| Some((record, record.losses.as_ref()?)));
    let warm = with_losses.filter(|(record, losses)| is_warm(record, losses));
    let mut lowest = None;
    let with_lowest = warm.map(|(record, losses)| {
        let so_far = value_error(losses).into_iter().chain(lowest).reduce(f64::min);
        Judged { epoch: record.epoch, losses, lowest: std::mem::replace(&mut lowest, so_far) }
    });
    with_lowest.collect()
}

impl Sign {
    /// Whether the epoch shows the sign.
    fn is_in(self, judged: &Judged<'_>) -> bool {
        match self {
            Self::UniformTargets => target_entropy(judged.losses).is_some_and(|entropy| entropy >= UNIFORM),
            Self::ConstantValues => value_error(judged.losses).is_some_and(|error| {
                error >= 1.0 && judged.lowest.is_none_or(|lowest| error > FALLING * lowest)
            }),
        }
    }

    /// All longest series of epochs with the sign.
    fn series(self, judged: &[Judged<'_>]) -> Vec<Warning> {
        let series = judged.chunk_by(|a, b| self.is_in(a) == self.is_in(b));
        let with_sign = series.filter(|series| self.is_in(&series[0]));
        let warning = |series: &[Judged<'_>]| {
            let (first, last) = (&series[0], &series[series.len() - 1]);
            Warning {
                sign: self,
                first: first.epoch,
                last: last.epoch,
                count: series.len(),
                losses: last.losses.clone(),
            }
        };
        with_sign.map(warning).collect()
    }
}

/// The entropy of the policy targets relative to that of uniform play; None where the targets leave nothing to learn.
fn target_entropy(losses: &EpochLosses) -> Option<f64> {
    let uniform = losses.policy_uniform.filter(|&entropy| entropy > 0.0)?;
    Some((losses.policy - losses.policy_kl) / uniform)
}

/// The value loss relative to that of predicting the mean; None where the targets hardly differ.
fn value_error(losses: &EpochLosses) -> Option<f64> {
    let constant = losses.value_constant.filter(|&variance| variance >= MIN_VARIANCE)?;
    Some(losses.value / constant)
}

impl Warning {
    /// A sentence without a full stop: what was seen in which epochs, and the keys of `config` to change.
    pub fn sentence(&self, config: &Config) -> String {
        let (first, last, search) = (self.first, self.last, &config.search);
        match self.sign {
            Sign::UniformTargets => format!(
                "the search teaches the policy nothing: in epochs {first} to {last} its targets were close to uniform play ({:.1} % of the \
                 entropy); raise search.simulations (now {}) or {}",
                100.0 * target_entropy(&self.losses).unwrap_or_default(),
                search.simulations,
                match search.algorithm {
                    Algorithm::Puct => format!("lower search.c_init (now {})", search.c_init),
                    Algorithm::Gumbel | Algorithm::Afterstate =>
                        format!("search.c_scale (now {})", search.c_scale),
                }
            ),
            Sign::ConstantValues => format!(
                "the network learns nothing about results: in epochs {first} to {last} the value loss ({:.4}) was not below that of \
                 always predicting the mean result ({:.4}); change train.lr (now {})",
                self.losses.value,
                self.losses.value_constant.unwrap_or_default(),
                config.train.lr
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    /// The losses of an epoch whose targets have `entropy` relative to uniform play, and whose value loss is `error` times the variance.
    fn losses(entropy: f64, error: f64) -> EpochLosses {
        EpochLosses {
            policy: 2.0 * entropy + 0.1,
            policy_kl: 0.1,
            policy_uniform: Some(2.0),
            value: 0.5 * error,
            value_constant: Some(0.5),
            lr: 0.002,
            ..EpochLosses::default()
        }
    }

    fn records(of_epochs: &[Option<EpochLosses>]) -> Vec<EpochRecord> {
        let record = |(epoch, losses): (u64, &Option<EpochLosses>)| EpochRecord {
            epoch,
            updates: 20 * epoch,
            losses: losses.clone(),
            ..EpochRecord::default()
        };
        (1..).zip(of_epochs).map(record).collect()
    }

    /// A configuration whose warm-up is over with the first epoch: it ends with the schedule.
    fn config(algorithm: &str) -> Config {
        let layers = Layers::default()
            .set("train.warmup_updates=1000")
            .and_then(|layers| layers.set("train.lr_updates=20"));
        let layers = layers.and_then(|layers| layers.set(&format!("search.algorithm='{algorithm}'")));
        layers.and_then(Layers::resolve).expect("valid")
    }

    fn warnings_of(records: &[EpochRecord]) -> Vec<Warning> {
        warnings(&config("gumbel"), records)
    }

    /// The epochs after which each sign is reported.
    fn reported(records: &[EpochRecord]) -> Vec<(u64, Sign)> {
        let after = |n: usize| {
            new_warnings(&config("gumbel"), &records[..n])
                .into_iter()
                .map(move |warning| (n as u64, warning.sign))
        };
        (1..=records.len()).flat_map(after).collect()
    }

    #[test]
    fn a_sign_is_reported_after_three_epochs_and_again_after_it_was_gone() {
        let (near, far) = (Some(losses(0.98, 0.9)), Some(losses(0.9, 0.9)));
        let of = |signs: &str| -> Vec<_> {
            signs.chars().map(|c| if c == 'n' { near.clone() } else { far.clone() }).collect()
        };
        let after = |signs: &str| reported(&records(&of(signs))).iter().map(|(n, _)| *n).collect::<Vec<_>>();
        assert_eq!(after("nnffnnf"), [0; 0]);
        assert_eq!(after("nnnnnnn"), [3]);
        assert_eq!(after("fnnnnfnnfnnnn"), [4, 12]);
        let all = warnings_of(&records(&of("fnnnnfnnfnnnn")));
        let epochs: Vec<_> = all.iter().map(|warning| (warning.first, warning.last)).collect();
        assert_eq!(epochs, [(2, 5), (10, 13)]);
    }

    #[test]
    fn each_sign_has_its_bound() {
        let signs = |entropy, error| {
            let judged = Judged { epoch: 1, losses: &losses(entropy, error), lowest: None };
            [Sign::UniformTargets, Sign::ConstantValues].map(|sign| sign.is_in(&judged))
        };
        assert_eq!(signs(0.971, 0.999), [true, false]);
        assert_eq!(signs(0.969, 1.001), [false, true]);
        assert_eq!(signs(1.0, 3.0), [true, true]);
        let both = records(&vec![Some(losses(1.0, 1.0)); 4]);
        assert_eq!(reported(&both), [(3, Sign::UniformTargets), (3, Sign::ConstantValues)]);
    }

    #[test]
    fn what_cannot_be_judged_gives_no_warning() {
        let forced = EpochLosses { policy_uniform: Some(0.0), ..losses(0.0, 0.5) };
        let afterstate = EpochLosses { policy_uniform: None, ..losses(1.0, 0.5) };
        let all_alike = EpochLosses { value: 1e-5, value_constant: Some(0.0), ..losses(0.5, 0.0) };
        let of_an_old_run = EpochLosses { policy_uniform: None, value_constant: None, ..losses(1.0, 2.0) };
        for losses in [forced, afterstate, all_alike, of_an_old_run] {
            assert_eq!(warnings_of(&records(&vec![Some(losses); 5])), [], "silent");
        }
        // Epochs without updates are skipped, a cut one as well.
        let near = Some(losses(0.98, 1.5));
        let mut skipped = records(&[None, near.clone(), None, near.clone(), near]);
        assert_eq!(reported(&skipped), [(5, Sign::UniformTargets), (5, Sign::ConstantValues)]);
        skipped[4].cut = true;
        assert_eq!(reported(&skipped), []);
    }

    #[test]
    fn a_value_loss_that_falls_is_no_sign() {
        let of = |errors: &[f64]| {
            let all: Vec<_> = errors.iter().map(|&error| Some(losses(0.5, error))).collect();
            reported(&records(&all))
        };
        assert_eq!(of(&[6.9, 1.4, 1.2, 1.1, 1.04, 1.0, 0.99]), []);
        assert_eq!(of(&[6.9, 1.02, 1.05, 1.01, 1.03]), [(5, Sign::ConstantValues)]);
        assert_eq!(of(&[41.0, 19.0, 26.0, 22.0, 30.0]), [(5, Sign::ConstantValues)], "it rises and falls");
    }

    #[test]
    fn the_warm_up_is_not_judged_unless_the_rate_is_0() {
        let near = losses(0.98, 1.5);
        let mut early = records(&vec![Some(near.clone()); 5]);
        early.iter_mut().for_each(|record| record.updates = 6 * record.epoch);
        assert_eq!(reported(&early), [], "the fourth epoch is the first one of 20 updates or more");
        early.iter_mut().for_each(|record| record.losses = Some(EpochLosses { lr: 0.0, ..near.clone() }));
        assert_eq!(reported(&early), [(3, Sign::UniformTargets), (3, Sign::ConstantValues)]);
    }

    #[test]
    fn the_sentence_names_the_keys_of_the_search() {
        let all = warnings_of(&records(&vec![Some(losses(0.981, 1.01)); 3]));
        let sentences =
            |algorithm| all.iter().map(|w| w.sentence(&config(algorithm))).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(sentences("puct"), @"
        the search teaches the policy nothing: in epochs 1 to 3 its targets were close to uniform play (98.1 % of the entropy); raise search.simulations (now 64) or lower search.c_init (now 1.25)
        the network learns nothing about results: in epochs 1 to 3 the value loss (0.5050) was not below that of always predicting the mean result (0.5000); change train.lr (now 0.002)
        ");
        assert!(sentences("gumbel").contains("or search.c_scale (now 1)"), "{}", sentences("gumbel"));
    }
}
