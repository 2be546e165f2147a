//! An evaluation on the server: how it is published and withdrawn, and how its tasks are claimed and their results sent.

use crate::cluster::published::{CHUNK_FIELD, Keys, entries_of, from_hex, hex};
use crate::cluster::received::StreamId;
use crate::cluster::server::{Connection, Failure, bytes_of, list_of};
use crate::eval::opponent::Opponent;
use crate::run::strength::MatchSetup;
use redis::{Value, cmd, pipe};
use std::time::Duration;

/// The consumer group that learner and workers share.
const GROUP: &str = "workers";
/// Time without a result after which another worker claims a task.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(30);
/// Seconds after the last result until the server deletes the results of an evaluation.
const RESULT_TTL: u64 = 3600;
/// Upper bound on the tasks of an evaluation; a worker ignores an offer with more.
const MAX_TASKS: usize = 1 << 20;
/// Upper bound on the games of a match, that of `eval.match_games`.
const MAX_GAMES: usize = 1_000_000;

/// An evaluation in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The evaluation's number, drawn at random.
    pub id: u64,
    /// The version of the weights.
    pub version: u64,
    /// SHA-256 of the weights file.
    pub sha256: [u8; 32],
    /// The number of tasks.
    pub tasks: usize,
    /// The match; None for solved positions.
    pub setup: Option<MatchSetup>,
}

impl Offer {
    /// Fields of the hash `RUN:evaluation`; `parts` holds the number of tasks, `match` the match as JSON.
    const FIELDS: [&'static str; 5] = ["id", "version", "sha256", "parts", "match"];

    /// Publishes weights and tasks.
    pub(super) fn publish(&self, link: &mut Connection, keys: &Keys, weights: &[u8]) -> Result<(), Failure> {
        link.command(cmd("SET").arg(keys.weights(self.version)).arg(weights))?;
        let mut all = pipe();
        all.atomic().cmd("DEL").arg(&keys.evaluation).arg(&keys.tasks);
        all.cmd("XGROUP").arg("CREATE").arg(&keys.tasks).arg(GROUP).arg(0).arg("MKSTREAM");
        for task in 0..self.tasks {
            let entry = format!("{:016x} {task}", self.id);
            all.cmd("XADD").arg(&keys.tasks).arg("*").arg(CHUNK_FIELD).arg(entry);
        }
        let values = [
            format!("{:016x}", self.id),
            self.version.to_string(),
            hex(&self.sha256),
            self.tasks.to_string(),
            serde_json::to_string(&self.setup).unwrap_or_default(),
        ];
        for (name, value) in Self::FIELDS.iter().zip(values) {
            all.cmd("HSET").arg(&keys.evaluation).arg(name).arg(value);
        }
        link.pipeline(&all).map(drop)
    }

    /// The evaluation in progress; None where there is none.
    pub(super) fn read(link: &mut Connection, keys: &Keys) -> Result<Option<Self>, Failure> {
        let reply = link.command(cmd("HMGET").arg(&keys.evaluation).arg(&Self::FIELDS))?;
        let texts = list_of(reply).unwrap_or_default().into_iter().map(|value| {
            let bytes = bytes_of(value).unwrap_or_default();
            String::from_utf8(bytes).unwrap_or_default()
        });
        Ok(Self::parse(&texts.collect::<Vec<_>>()))
    }

    pub(super) fn parse(texts: &[String]) -> Option<Self> {
        let [id, version, sha256, tasks, setup] = texts else { return None };
        let tasks = tasks.parse().ok().filter(|tasks| *tasks <= MAX_TASKS)?;
        let id = u64::from_str_radix(id, 16).ok()?;
        let setup: Option<MatchSetup> = serde_json::from_str(setup).ok()?;
        let is_measured_alone = |setup: &MatchSetup| matches!(setup.rung.opponent, Opponent::Epoch(_));
        if setup.is_some_and(|setup| is_measured_alone(&setup) || setup.games > MAX_GAMES) {
            return None;
        }
        Some(Self { id, version: version.parse().ok()?, sha256: from_hex(sha256)?, tasks, setup })
    }

    /// Deletes the evaluation with its tasks and results.
    pub(super) fn withdraw(&self, link: &mut Connection, keys: &Keys) -> Result<(), Failure> {
        let mut delete = cmd("DEL");
        delete.arg(&keys.evaluation).arg(&keys.tasks).arg(keys.results(self.id));
        link.command(&delete).map(drop)
    }

    /// Claims the next free task; None where there is none.
    pub(super) fn claim(
        &self,
        link: &mut Connection,
        keys: &Keys,
        consumer: &str,
    ) -> Result<Option<Claim>, Failure> {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP")
            .arg(GROUP)
            .arg(consumer)
            .arg("COUNT")
            .arg(1)
            .arg("STREAMS")
            .arg(&keys.tasks)
            .arg(">");
        // The reply is [[key, entries]], or nil where nothing is left.
        let streams = list_of(link.command(&read)?).unwrap_or_default();
        let entries = streams.into_iter().filter_map(list_of).filter_map(|mut stream| stream.pop());
        Ok(entries.flat_map(entries_of).find_map(|entry| self.claim_of(entry)))
    }

    /// Claims a task that another process has held for [`CLAIM_TIMEOUT`]; None where there is none.
    pub(super) fn reclaim(
        &self,
        link: &mut Connection,
        keys: &Keys,
        consumer: &str,
    ) -> Result<Option<Claim>, Failure> {
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(&keys.tasks).arg(GROUP).arg(consumer).arg(CLAIM_TIMEOUT.as_millis() as u64).arg(0);
        let reply = link.command(claim.arg("COUNT").arg(1))?;
        // The reply is [next, entries, ..].
        let entries = list_of(reply).unwrap_or_default().into_iter().nth(1).unwrap_or(Value::Nil);
        Ok(entries_of(entries).into_iter().find_map(|entry| self.claim_of(entry)))
    }

    /// The claim of an entry; None for one of another evaluation.
    pub(super) fn claim_of(&self, (entry, text): (StreamId, Vec<u8>)) -> Option<Claim> {
        let text = String::from_utf8(text).ok()?;
        let (id, task) = text.split_once(' ')?;
        let task = task.parse().ok().filter(|task| *task < self.tasks)?;
        (u64::from_str_radix(id, 16) == Ok(self.id)).then_some(Claim { task, entry })
    }

    /// Ends the claim of a task without a result.
    pub(super) fn acknowledge(
        &self,
        link: &mut Connection,
        keys: &Keys,
        claim: &Claim,
    ) -> Result<(), Failure> {
        let mut acknowledge = cmd("XACK");
        link.command(acknowledge.arg(&keys.tasks).arg(GROUP).arg(claim.entry.to_string())).map(drop)
    }

    /// Sends the result of a task, unless the server has one.
    pub(super) fn send(
        &self,
        link: &mut Connection,
        keys: &Keys,
        claim: &Claim,
        chunk: &[u8],
    ) -> Result<(), Failure> {
        let (mut all, results) = (pipe(), keys.results(self.id));
        all.atomic().cmd("HSETNX").arg(&results).arg(claim.task).arg(chunk);
        all.cmd("EXPIRE").arg(&results).arg(RESULT_TTL);
        all.cmd("XACK").arg(&keys.tasks).arg(GROUP).arg(claim.entry.to_string());
        link.pipeline(&all).map(drop)
    }
}

/// A task that this process has claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) task: usize,
    pub(super) entry: StreamId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::opponent::Rung;

    #[test]
    fn an_offer_is_read_as_written_and_others_are_none() {
        let rung = Rung { number: 1, opponent: Opponent::Rollouts(100) };
        let setup = Some(MatchSetup { rung, games: 24 });
        let offer = Offer { id: 0xfeed, version: 3, sha256: [7; 32], tasks: 12, setup };
        let json = r#"{"rung":{"number":1,"opponent":"rollouts:100"},"games":24}"#;
        let texts = ["feed".to_string(), "3".into(), hex(&[7; 32]), "12".into(), json.into()];
        assert_eq!(Offer::parse(&texts), Some(offer.clone()));
        let of_positions = [&texts[..4], &["null".to_string()]].concat();
        assert_eq!(Offer::parse(&of_positions), Some(Offer { setup: None, ..offer.clone() }));
        let own = json.replace("rollouts:100", "epoch 3");
        for (field, wrong) in [(0, "x"), (1, "-1"), (2, "07"), (3, "9999999"), (4, ""), (4, &own)] {
            let mut texts = texts.clone();
            texts[field] = wrong.into();
            assert_eq!(Offer::parse(&texts), None, "{wrong}");
        }
        let claim = |text: &str| offer.claim_of((StreamId(1, 2), text.into())).map(|claim| claim.task);
        let claims = ["feed 11", "feed 12", "fed 11", "feed", "feed x"].map(claim);
        assert_eq!(claims, [Some(11), None, None, None, None]);
    }
}
