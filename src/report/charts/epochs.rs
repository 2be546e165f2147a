//! The charts of a run's report: titles, sentences for the reader, and the metrics of their lines.

use super::chart::Series;
use crate::eval::opponent::Opponent;
use crate::report::metrics::{EpochLosses, EpochRecord, Strength};

/// All charts, in the order of the page. `random_outcome_error`: the fraction of the solved positions where uniformly random play
/// changes the outcome, if there are positions. `heads`: those whose losses are charted besides policy and value.
pub(super) fn epoch_charts(
    records: &[EpochRecord],
    random_outcome_error: Option<f64>,
    heads: &[String],
) -> Vec<ChartSpec> {
    let strength = strength_charts(random_outcome_error);
    let losses = loss_charts(heads);
    let all = [strength, match_charts(records), losses, speed_charts(), game_charts(), cost_charts()];
    all.into_iter().flatten().collect()
}

/// The losses.
fn loss_charts(heads: &[String]) -> Vec<ChartSpec> {
    let mut losses = ChartSpec::new(
        "Losses",
        "The policy's cross-entropy to the search's policy, the part of it that training can remove (KL), and the squared \
         error of the value; what they are measured against, the search and the games, changes with the network, so that none \
         of them has to fall while the network gets stronger.",
        vec![
            ("policy", loss(|l| l.of_policy().map(|[entropy, _]| entropy))),
            ("policy, KL", loss(|l| l.of_policy().map(|[_, divergence]| divergence))),
            ("value", loss(|l| Some(l.value))),
        ],
    );
    losses.lines.extend(heads.iter().map(|name| (name.clone(), loss_of(name.clone()))));
    vec![losses]
}

/// Errors on solved positions, compared with that of random play.
fn strength_charts(random_outcome_error: Option<f64>) -> Vec<ChartSpec> {
    let errors = ChartSpec::new(
        "Errors on solved positions, %",
        "Share of solved positions where the chosen action gives away a win or a draw (outcome), or is not the best one \
         (exact), with search and by the policy alone: lower is stronger.",
        vec![
            ("search, outcome", strength(|s| s.search_outcome_error)),
            ("policy, outcome", strength(|s| s.policy_outcome_error)),
            ("search, exact", strength(|s| s.search_exact_error)),
            ("policy, exact", strength(|s| s.policy_exact_error)),
        ],
    );
    let random = random_outcome_error.map(|share| ("random play, outcome", 100.0 * share));
    vec![ChartSpec { reference: random, ..errors }]
}

/// The index on the ladder of opponents, and the lead in points where there is one, else the score against each of them.
fn match_charts(records: &[EpochRecord]) -> Vec<ChartSpec> {
    let strengths = || records.iter().filter_map(|record| record.strength);
    // Records of earlier versions have no opponent.
    let opponent_of = |s: &Strength| s.rung.map(|rung| rung.opponent);
    let matches = strengths().filter(|s| s.match_score.is_some());
    let mut opponents: Vec<Option<Opponent>> = matches.map(|s| opponent_of(&s)).collect();
    opponents.dedup();
    let climbs = opponents.len() > 1;
    if strengths().any(|s| s.mean_score.is_some()) {
        return vec![ChartSpec::new(
            "Mean score",
            "The mean score of a game: higher is better.",
            vec![(
                "score",
                Box::new(|r: &EpochRecord| r.strength.and_then(|s| s.mean_score).map(|score| score.mean)),
            )],
        )];
    }
    let ladder = ChartSpec::new(
        "Opponents beaten",
        "Opponents beaten clearly, of which each is stronger than the one before (random play, rollouts:100, rollouts:800, then own \
         earlier networks), plus a share for the score or the lead against the present one, 0.5 where both are equal: higher is stronger.",
        vec![("opponents", Box::new(|r: &EpochRecord| r.strength.and_then(|s| s.rank()).map(|rank| -rank)))],
    );
    let against = |opponent: Option<Opponent>| -> Line {
        let score = move |record: &EpochRecord| {
            let strength = record.strength.filter(|s| opponent_of(s) == opponent)?;
            strength.match_score.map(|share| 100.0 * share)
        };
        let name = opponent.map_or("score".to_string(), |opponent| format!("against {opponent}"));
        (name, Box::new(score))
    };
    let is_weakest = opponents == [Some(Opponent::Random)];
    let score = ChartSpec {
        title: "Match score, %",
        meaning: "Points per game against each opponent, a draw being half a point: at \
                  50 % both are equally strong."
            .into(),
        lines: opponents.into_iter().map(against).collect(),
        reference: Some((if is_weakest { "random play" } else { "equal strength" }, 50.0)),
    };
    let lead = ChartSpec::new(
        "Lead in points",
        "The network's mean score per game minus that of the other seats, which its opponent has: at 0 both are equally strong.",
        vec![("points", Box::new(|r: &EpochRecord| Some(r.strength?.lead?.mean)))],
    );
    // One of several players may win few games and lead in points.
    let strength = if strengths().any(|s| s.lead.is_some()) { lead } else { score };
    if climbs { vec![ladder, strength] } else { vec![strength] }
}

/// Positions and simulations per second.
fn speed_charts() -> Vec<ChartSpec> {
    vec![
        ChartSpec::new(
            "Positions per second",
            "Plies per second of self-play in all games: how fast samples are made.",
            vec![("positions", metric(|r| r.positions_per_second))],
        ),
        ChartSpec::new(
            "Simulations per second",
            "New simulations per second of self-play in all games: the speed of search and network.",
            vec![("simulations", metric(|r| r.simulations_per_second))],
        ),
    ]
}

/// Length and outcomes of the games.
fn game_charts() -> Vec<ChartSpec> {
    vec![
        ChartSpec::new(
            "Mean game length, plies",
            "Plies of the games that ended in the epoch: more where both sides defend better, fewer where wins are found \
             sooner.",
            vec![("plies", Box::new(|r: &EpochRecord| r.mean_game_length))],
        ),
        ChartSpec::new(
            "Outcomes, % of games",
            "Share of the epoch's games that the first player won alone and of those that were drawn; others won the rest, or \
             several together.",
            vec![
                ("first player wins", percent(|r| r.first_player_win_share)),
                ("draws", percent(|r| r.draw_share)),
            ],
        ),
    ]
}

/// Times of an epoch, gradient norm and learning rate.
fn cost_charts() -> Vec<ChartSpec> {
    vec![
        ChartSpec::new(
            "Seconds an epoch",
            "Where an epoch's time goes; with train.mode = overlapped, self-play and training run at the same time.",
            vec![
                ("self-play", metric(|r| r.selfplay_seconds)),
                ("training", metric(|r| r.train_seconds)),
                ("evaluation", metric(|r| r.eval_seconds)),
            ],
        ),
        ChartSpec::new(
            "Gradient norm",
            "Norm of the gradient before clipping, mean of the epoch's updates: peaks are updates that disturb the network.",
            vec![("norm", loss(|l| Some(l.grad_norm)))],
        ),
        ChartSpec::new(
            "Learning rate",
            "Step size of the epoch's last update, as train.lr, train.lr_updates and train.lr_final set it.",
            vec![("rate", loss(|l| Some(l.lr)))],
        ),
    ]
}

/// A chart of the page.
pub(super) struct ChartSpec {
    pub title: &'static str,
    /// One sentence about what the chart shows.
    pub meaning: String,
    lines: Vec<Line>,
    /// A horizontal line for comparison: name and value.
    pub reference: Option<(&'static str, f64)>,
}

impl ChartSpec {
    /// A chart without a line for comparison.
    fn new(title: &'static str, meaning: impl Into<String>, lines: Vec<(&'static str, Pick)>) -> Self {
        let lines = lines.into_iter().map(|(name, pick)| (name.to_string(), pick)).collect();
        Self { title, meaning: meaning.into(), lines, reference: None }
    }

    /// The lines over `x`, each through the epochs that have its metric; a line without a point is omitted.
    pub fn series(&self, records: &[EpochRecord], x: fn(&EpochRecord) -> f64) -> Vec<Series> {
        let line = |(name, pick): &Line| {
            let points: Vec<(f64, f64)> =
                records.iter().filter_map(|record| pick(record).map(|y| (x(record), y))).collect();
            (!points.is_empty()).then(|| Series { name: name.clone(), points })
        };
        self.lines.iter().filter_map(line).collect()
    }
}

/// A metric of an epoch, if present.
type Pick = Box<dyn Fn(&EpochRecord) -> Option<f64>>;
/// A line of a chart: name and metric.
type Line = (String, Pick);

/// A loss, if the epoch had updates.
fn loss(pick: fn(&EpochLosses) -> Option<f64>) -> Pick {
    Box::new(move |record| record.losses.as_ref().and_then(pick))
}

/// The loss of the head called `name`, if the epoch had updates.
fn loss_of(name: String) -> Pick {
    Box::new(move |record| record.losses.as_ref()?.heads.get(&name).copied())
}

/// A fraction of the strength in per cent, if it was measured.
fn strength(pick: fn(&Strength) -> Option<f64>) -> Pick {
    Box::new(move |record| record.strength.as_ref().and_then(pick).map(|share| 100.0 * share))
}

/// A fraction in per cent, if present.
fn percent(pick: fn(&EpochRecord) -> Option<f64>) -> Pick {
    Box::new(move |record| pick(record).map(|share| 100.0 * share))
}

/// A metric that every epoch has.
fn metric(pick: fn(&EpochRecord) -> f64) -> Pick {
    Box::new(move |record| Some(pick(record)))
}
