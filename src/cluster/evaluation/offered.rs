//! The learner's side of an evaluation with workers. After a failure of the connection the learner measures the rest itself.

use super::offer::Offer;
use super::result_chunk::open;
use crate::cluster::chunk::{ChunkLimits, ChunkReader};
use crate::cluster::published::Keys;
use crate::cluster::server::{Connection, Failure, Server, bytes_of, number_of};
use crate::error::Result;
use crate::report::workers::WorkerCounts;
use crate::run::strength::EvalResult;
use crate::run::workers::{CheckPart, SharedEvaluation};
use redis::{cmd, pipe};
use std::collections::BTreeSet;

/// The learner's name in the consumer group.
const CONSUMER: &str = "learner";

/// An evaluation that was offered to workers.
pub struct OfferedEvaluation<'a> {
    server: &'a Server,
    keys: Keys,
    /// None where the server is unreachable.
    link: Option<Connection>,
    offer: Offer,
    digest: [u8; 32],
    limits: ChunkLimits,
    chunks: ChunkReader,
    /// Tasks without a result.
    missing: BTreeSet<usize>,
    counts: &'a mut WorkerCounts,
}

impl<'a> OfferedEvaluation<'a> {
    /// Offers an evaluation of a network with these `weights`.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] if there is no memory for reading results.
    pub fn new(
        server: &'a Server,
        offer: Offer,
        weights: &[u8],
        (digest, limits): ([u8; 32], ChunkLimits),
        counts: &'a mut WorkerCounts,
    ) -> Result<Self> {
        let (keys, missing) = (Keys::new(server.address().run()), (0..offer.tasks).collect());
        let chunks = ChunkReader::new()?;
        let mut offered = Self { server, keys, link: None, offer, digest, limits, chunks, missing, counts };
        match server.connect() {
            Ok(link) => {
                offered.link = Some(link);
                offered.attempt(|link, offer, keys| offer.publish(link, keys, weights));
            }
            Err(failure) => offered.warn(failure.text()),
        }
        Ok(offered)
    }

    fn warn(&self, what: &str) {
        tracing::warn!("{}: {what}; the learner evaluates alone", self.server.address());
    }

    /// Runs a command on the connection. The first failure closes the connection; then the result is None.
    fn attempt<T>(
        &mut self,
        command: impl FnOnce(&mut Connection, &Offer, &Keys) -> std::result::Result<T, Failure>,
    ) -> Option<T> {
        match command(self.link.as_mut()?, &self.offer, &self.keys) {
            Ok(value) => Some(value),
            Err(failure) => {
                self.link = None;
                self.warn(failure.text());
                None
            }
        }
    }

    /// The chunks of the results that the server has, by task: None for a chunk that is longer than it may be.
    fn fetch(&mut self) -> Vec<(usize, Option<Vec<u8>>)> {
        let (missing, max) = (self.missing.clone(), self.limits.bytes() as u64);
        let found = self.attempt(|link, offer, keys| {
            let (results, mut all) = (keys.results(offer.id), pipe());
            for task in &missing {
                all.cmd("HSTRLEN").arg(&results).arg(task);
            }
            let lengths = link.pipeline(&all)?.into_iter().map(|length| number_of(length).unwrap_or(0));
            let there = missing.iter().zip(lengths).filter(|(_, length)| *length > 0);
            let mut found = Vec::new();
            for (task, length) in there {
                let chunk = match length <= max {
                    true => bytes_of(link.command(cmd("HGET").arg(&results).arg(task))?),
                    false => None,
                };
                found.push((*task, chunk));
            }
            Ok(found)
        });
        found.unwrap_or_default()
    }
}

impl SharedEvaluation for OfferedEvaluation<'_> {
    fn claim(&mut self) -> Option<usize> {
        let claim = self.attempt(|link, offer, keys| {
            let claim = offer.claim(link, keys, CONSUMER)?;
            // Workers take over what others have held for long, but not a part of this process, which would be the last to fail.
            claim.iter().try_for_each(|claim| offer.acknowledge(link, keys, claim))?;
            Ok(claim)
        });
        claim?.map(|claim| claim.task)
    }

    fn is_alone(&self) -> bool {
        self.link.is_none()
    }

    fn results(&mut self, check: CheckPart<'_>) -> Vec<(usize, EvalResult)> {
        let mut results = Vec::new();
        for (task, chunk) in self.fetch() {
            self.missing.remove(&task);
            let too_long = || format!("too long, expected at most {} bytes", self.limits.bytes());
            let measured = chunk.ok_or_else(too_long).and_then(|bytes| {
                let bounds = (&self.digest, &self.limits);
                let measured = open(&mut self.chunks, &bytes, bounds, &self.offer, task)?;
                check(task, &measured).map(|()| measured)
            });
            match measured {
                Ok(measured) => {
                    self.counts.evaluated += 1;
                    results.push((task, measured));
                }
                Err(what) => {
                    self.counts.refused += 1;
                    let server = self.server.address();
                    tracing::warn!("{server}: a result of task {task} of the evaluation is refused: {what}");
                }
            }
        }
        results
    }
}

impl Drop for OfferedEvaluation<'_> {
    fn drop(&mut self) {
        // A failure leaves keys that the next evaluation replaces, and results that expire.
        self.attempt(|link, offer, keys| offer.withdraw(link, keys));
    }
}
