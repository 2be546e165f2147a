//! Choice of the action to play from a finished search.

use crate::rng::RngStream;
use crate::search::root::RootSummary;

/// How an action is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionChoice {
    /// Sampled from the policy target: early plies of self-play.
    Drawn,
    /// The best one.
    Best,
}

/// Chooses the action to play and returns its index in the legal list.
pub fn choose(summary: &RootSummary, choice: ActionChoice, rng: &mut RngStream) -> usize {
    match choice {
        ActionChoice::Drawn => rng.weighted(&summary.policy),
        ActionChoice::Best => summary.best,
    }
}

/// Combines the searches of a game's D determinisations: averages policies and values, sums visits. All have the same legal
/// list.
pub fn sum_determinisations(parts: &[RootSummary], out: &mut RootSummary) {
    out.clone_from(&parts[0]);
    for part in &parts[1..] {
        for (sum, x) in out.policy.iter_mut().zip(&part.policy) {
            *sum += x;
        }
        for (sum, x) in out.value.iter_mut().zip(&part.value).chain(out.prior.iter_mut().zip(&part.prior)) {
            *sum += x;
        }
        for (i, sum) in out.visits.iter_mut().enumerate() {
            let (n, m) = (*sum as f32, part.visits[i] as f32);
            if n + m > 0.0 {
                out.q[i] = (out.q[i] * n + part.q[i] * m) / (n + m);
            }
            *sum += part.visits[i];
            out.new_visits[i] += part.new_visits[i];
        }
    }
    let share = 1.0 / parts.len() as f32;
    out.policy.iter_mut().for_each(|x| *x *= share);
    out.value.iter_mut().chain(&mut out.prior).for_each(|x| *x *= share);
    out.proven &= parts.iter().all(|p| p.proven);
    out.best = crate::search::root::argmax(&out.policy);
}
