//! A whole game analysed: what each decision lost.

use super::analysis::shown;
use super::call::{Call, Reply};
use super::feed::Feed;
use super::refusal::{Refusal, Served};
use super::site::Site;
use super::tables::Seated;
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::engine::{PositionBatch, Settings};
use crate::game::Turn;
use crate::run::memory::check_search;
use crate::search::root::{RootSummary, RowKey};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

/// Simulations of a position.
const SIMULATIONS: RangeInclusive<u32> = 1..=20_000;
/// Simulations of a position if the client names none.
const DEFAULT_SIMULATIONS: u32 = 200;
/// Positions that are searched at once.
const POSITIONS: usize = 32;
/// Simulations of all positions that are searched at once, at most; their trees exist at the same time.
const SIMULATIONS_AT_ONCE: usize = 1 << 16;
/// The loss from which a move is listed among the mistakes.
const MISTAKE: f32 = 0.1;
/// Mistakes that are listed.
const LISTED: usize = 20;

/// A game to review.
struct Review {
    game: Arc<dyn AnyGame>,
    play: Playthrough,
    network: String,
    simulations: u32,
}

/// The decisions of a review so far.
struct Findings {
    total: usize,
    done: usize,
    /// Player, ply and loss of each decision whose value is known.
    losses: Vec<(u8, usize, f32)>,
}

/// Streams a review: `ply` for each decision, then `done`; `failed` instead of both.
///
/// # Errors
/// 404 for an unknown table.
pub fn stream(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let review = Review::read(site, &seated, call);
    let site = site.clone();
    Feed::start(move |feed| review?.run(&site, feed))
}

impl Review {
    fn read(site: &Site, seated: &Seated, call: &Call) -> Served<Self> {
        let simulations = call.number("simulations")?.unwrap_or(DEFAULT_SIMULATIONS);
        if !SIMULATIONS.contains(&simulations) {
            let (min, max) = (SIMULATIONS.start(), SIMULATIONS.end());
            let what = format!("simulations: got {simulations}, expected a whole number from {min} to {max}");
            return Err(Refusal::bad(what));
        }
        let table = seated.lock();
        table.viewer(call.claim()?)?;
        if table.has_secrets() {
            return Err(Refusal::forbidden("a game with hidden hands is reviewed when it is over"));
        }
        let (game, play) = (table.game().clone(), table.playthrough().clone());
        let network = call.query("network").map_or_else(|| site.catalogue.network_at(&table), str::to_string);
        Ok(Self { game, play, network, simulations })
    }

    fn run(&self, site: &Arc<Site>, feed: &Feed) -> Served<()> {
        let start = Instant::now();
        let _slot = site.engines.search_slot()?;
        let parts = site.catalogue.parts(&self.network, self.game.as_ref())?;
        let turns = self.play.turns();
        let decisions: Vec<usize> =
            (0..turns.len()).filter(|&ply| matches!(turns[ply], Turn::Player(_))).collect();
        let max_at_once = (SIMULATIONS_AT_ONCE / self.simulations as usize).clamp(1, POSITIONS);
        let mut settings = parts.settings;
        settings.params.simulations = self.simulations;
        let at_once = max_at_once.min(decisions.len()).max(1);
        check_search(parts.game.as_ref(), settings, at_once)?;
        let mut batch = PositionBatch::new(parts.game.as_ref(), parts.network.as_ref(), settings, at_once)?;
        batch.stop_by(&feed.stop);
        let mut findings = Findings { total: decisions.len(), done: 0, losses: Vec::new() };
        // A move that no simulation tried is judged by the search of the next position.
        let mut previous: Option<(Playthrough, RootSummary)> = None;
        for plies in decisions.chunks(at_once) {
            if feed.stop.cause().is_some() {
                return Ok(());
            }
            let plays: Vec<Playthrough> = plies.iter().map(|&ply| self.play.after(ply)).collect();
            let found = self.search(&mut batch, settings, &plays)?;
            for (play, root) in plays.into_iter().zip(found) {
                if let Some((before, searched)) = previous.take() {
                    feed.send("ply", &self.judge(&before, &searched, Some((&play, &root)), &mut findings));
                }
                previous = Some((play, root));
            }
        }
        if let Some((before, searched)) = previous {
            feed.send("ply", &self.judge(&before, &searched, None, &mut findings));
        }
        feed.send("done", &findings.summary(self.game.sizes().num_players, start));
        Ok(())
    }

    fn search(
        &self,
        batch: &mut PositionBatch,
        settings: Settings,
        plays: &[Playthrough],
    ) -> Served<Vec<RootSummary>> {
        let key = |play: &Playthrough| {
            let ply = play.actions().len() as u64;
            RowKey { seed: settings.seed, ply, ..RowKey::default() }
        };
        let keys: Vec<RowKey> = plays.iter().map(key).collect();
        Ok(batch.search(&plays.iter().collect::<Vec<_>>(), &keys)?)
    }

    /// The decision that was made in the position of `play`, whose search found `root`; `next` is the next decision and its search. A move that
    /// neither of them tried has no value, and no loss.
    fn judge(
        &self,
        play: &Playthrough,
        root: &RootSummary,
        next: Option<(&Playthrough, &RootSummary)>,
        findings: &mut Findings,
    ) -> Value {
        let ply = play.actions().len();
        let action = self.play.actions()[ply];
        let named = |action: u16, value: Option<f32>| {
            json!({
                "action": action,
                "name": self.game.action_name(play.state(), action),
                "spot": self.game.spot(play.state(), action),
                "value": value,
            })
        };
        let best = root.q[root.best];
        let played = root.actions.iter().position(|&other| other == action);
        let searched = played.filter(|&edge| root.visits[edge] > 0).map(|edge| root.q[edge]);
        let value =
            searched.or_else(|| self.value_after(ply, root.player, next)).map(|value| value.min(best));
        let shown = |value: f32| shown(self.game.as_ref(), value);
        let (best, value) = (shown(best), value.map(shown));
        let loss = value.map(|value| best - value);
        findings.done += 1;
        findings.losses.extend(loss.map(|loss| (root.player, ply, loss)));
        json!({
            "ply": ply,
            "player": root.player,
            "value": root.value.iter().map(|&value| shown(value)).collect::<Vec<_>>(),
            "best": named(root.actions[root.best], Some(best)),
            "played": named(action, value),
            "loss": loss,
            "done": findings.done,
            "total": findings.total,
        })
    }
}

impl Review {
    /// The value for `player` after the ply number `ply`; None if chance decided then, since its outcome would be part of the value,
    /// unless that is the deal of a new round.
    fn value_after(&self, ply: usize, player: u8, next: Option<(&Playthrough, &RootSummary)>) -> Option<f32> {
        let after = self.play.after(ply + 1);
        match (after.turn(), next) {
            (Turn::Over, _) => Some(self.game.stage_returns(after.state())[usize::from(player)]),
            (Turn::Chance, _) if self.game.is_horizon(after.state()) => {
                Some(self.game.stage_returns(after.state())[usize::from(player)])
            }
            (Turn::Player(_), Some((play, root))) if play.actions().len() == ply + 1 => {
                Some(root.value[usize::from(player)])
            }
            _ => None,
        }
    }
}

impl Findings {
    fn summary(&self, players: usize, start: Instant) -> Value {
        let mean = |player: u8| {
            let own = self.losses.iter().filter(|(other, _, _)| *other == player);
            let (sum, count) = own.fold((0.0, 0), |(sum, count), (_, _, loss)| (sum + loss, count + 1));
            (count > 0).then(|| sum / count as f32)
        };
        let mut mistakes: Vec<&(u8, usize, f32)> =
            self.losses.iter().filter(|(_, _, loss)| *loss >= MISTAKE).collect();
        mistakes.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.1.cmp(&b.1)));
        let mistakes = mistakes.iter().take(LISTED);
        json!({
            "plies": self.done,
            "seconds": start.elapsed().as_secs_f64(),
            "mean_loss": (0..players as u8).map(mean).collect::<Vec<_>>(),
            "mistakes": mistakes
                .map(|(player, ply, loss)| json!({ "player": player, "ply": ply, "loss": loss }))
                .collect::<Vec<_>>(),
        })
    }
}
