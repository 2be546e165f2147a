//! An evaluation in parts, which the learner and any worker measure: what is on the server, and how a part is claimed and sent.
//!
//! The learner writes the weights, then [`Offer`] and the stream of parts in one transaction, and deletes them when it has all results.
//! Parts are claimed by a consumer group; one that is claimed by a worker that dies is claimed again, by another worker after some time or by
//! the learner when nothing else is left. A part that is measured twice gives the same result, so the first one is kept.

pub mod evaluator;
pub mod shared;

use super::chunk::{Chunk, ChunkLimits, ChunkReader, Contents, Sealer};
use super::published::{CHUNK_FIELD, Keys, entries_of, from_hex, hex};
use super::received::StreamId;
use super::server::{Connection, Failure, bytes_of, list_of};
use crate::batch::AnyGame;
use crate::error::{Error, Result};
use crate::run::strength::EvalResult;
use redis::{Value, cmd, pipe};
use std::time::Duration;

/// The consumer group of learner and workers.
const GROUP: &str = "workers";
/// A part whose result has not come for so long is claimed by another worker.
const TAKEN_OVER: Duration = Duration::from_secs(30);
/// How long results of an evaluation that is over stay at most, in seconds.
const KEPT_SECONDS: u64 = 3600;
/// The most parts that a worker believes in.
const MOST_PARTS: usize = 1 << 20;

/// An evaluation that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its number, drawn at random.
    pub id: u64,
    /// The version of the weights.
    pub version: u64,
    /// SHA-256 of their file.
    pub sha256: [u8; 32],
    /// The number of parts.
    pub parts: usize,
}

impl Offer {
    const FIELDS: [&'static str; 4] = ["id", "version", "sha256", "parts"];

    /// Publishes weights and parts.
    fn publish(&self, link: &mut Connection, keys: &Keys, weights: &[u8]) -> Result<(), Failure> {
        link.command(cmd("SET").arg(keys.weights(self.version)).arg(weights))?;
        let mut all = pipe();
        all.atomic().cmd("DEL").arg(&keys.evaluation).arg(&keys.parts);
        all.cmd("XGROUP").arg("CREATE").arg(&keys.parts).arg(GROUP).arg(0).arg("MKSTREAM");
        for part in 0..self.parts {
            let entry = format!("{:016x} {part}", self.id);
            all.cmd("XADD").arg(&keys.parts).arg("*").arg(CHUNK_FIELD).arg(entry);
        }
        let values = [
            format!("{:016x}", self.id),
            self.version.to_string(),
            hex(&self.sha256),
            self.parts.to_string(),
        ];
        for (name, value) in Self::FIELDS.iter().zip(values) {
            all.cmd("HSET").arg(&keys.evaluation).arg(name).arg(value);
        }
        link.pipeline(&all).map(drop)
    }

    /// The evaluation that goes on; None where there is none.
    fn read(link: &mut Connection, keys: &Keys) -> Result<Option<Self>, Failure> {
        let reply = link.command(cmd("HMGET").arg(&keys.evaluation).arg(&Self::FIELDS))?;
        let texts = list_of(reply).unwrap_or_default().into_iter().map(|value| {
            let bytes = bytes_of(value).unwrap_or_default();
            String::from_utf8(bytes).unwrap_or_default()
        });
        Ok(Self::parse(&texts.collect::<Vec<_>>()))
    }

    fn parse(texts: &[String]) -> Option<Self> {
        let [id, version, sha256, parts] = texts else { return None };
        let parts = parts.parse().ok().filter(|parts| *parts <= MOST_PARTS)?;
        let id = u64::from_str_radix(id, 16).ok()?;
        Some(Self { id, version: version.parse().ok()?, sha256: from_hex(sha256)?, parts })
    }

    /// Deletes it with its parts and results.
    fn withdraw(&self, link: &mut Connection, keys: &Keys) -> Result<(), Failure> {
        let mut delete = cmd("DEL");
        delete.arg(&keys.evaluation).arg(&keys.parts).arg(keys.results(self.id));
        link.command(&delete).map(drop)
    }

    /// Claims the next part that is free; None where there is none.
    fn claim(&self, link: &mut Connection, keys: &Keys, consumer: &str) -> Result<Option<Claim>, Failure> {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP")
            .arg(GROUP)
            .arg(consumer)
            .arg("COUNT")
            .arg(1)
            .arg("STREAMS")
            .arg(&keys.parts)
            .arg(">");
        // [[key, entries]], or nil where nothing is left.
        let streams = list_of(link.command(&read)?).unwrap_or_default();
        let entries = streams.into_iter().filter_map(list_of).filter_map(|mut stream| stream.pop());
        Ok(entries.flat_map(entries_of).find_map(|entry| self.claim_of(entry)))
    }

    /// Claims a part that another process has had for too long; None where there is none.
    fn take_over(
        &self,
        link: &mut Connection,
        keys: &Keys,
        consumer: &str,
    ) -> Result<Option<Claim>, Failure> {
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(&keys.parts).arg(GROUP).arg(consumer).arg(TAKEN_OVER.as_millis() as u64).arg(0);
        let reply = link.command(claim.arg("COUNT").arg(1))?;
        // [next, entries, ..]
        let entries = list_of(reply).unwrap_or_default().into_iter().nth(1).unwrap_or(Value::Nil);
        Ok(entries_of(entries).into_iter().find_map(|entry| self.claim_of(entry)))
    }

    /// The claim of an entry; None for one of another evaluation.
    fn claim_of(&self, (entry, text): (StreamId, Vec<u8>)) -> Option<Claim> {
        let text = String::from_utf8(text).ok()?;
        let (id, part) = text.split_once(' ')?;
        let part = part.parse().ok().filter(|part| *part < self.parts)?;
        (u64::from_str_radix(id, 16) == Ok(self.id)).then_some(Claim { part, entry })
    }

    /// Sends what was measured of a part, unless it is there already.
    fn send(&self, link: &mut Connection, keys: &Keys, claim: &Claim, chunk: &[u8]) -> Result<(), Failure> {
        let (mut all, results) = (pipe(), keys.results(self.id));
        all.atomic().cmd("HSETNX").arg(&results).arg(claim.part).arg(chunk);
        all.cmd("EXPIRE").arg(&results).arg(KEPT_SECONDS);
        all.cmd("XACK").arg(&keys.parts).arg(GROUP).arg(claim.entry.to_string());
        link.pipeline(&all).map(drop)
    }
}

/// A part that this process is to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    part: usize,
    entry: StreamId,
}

/// The bounds of the chunk of a part, of which so many bytes are measured.
///
/// # Errors
/// [`Error::Unsupported`] if that is more than a chunk may have.
pub fn limits(game: &dyn AnyGame, most_bytes: usize) -> Result<ChunkLimits> {
    ChunkLimits::with(game, most_bytes, "a part of an evaluation")
}

/// The chunk of a part.
///
/// # Errors
/// [`Error::Unsupported`] if compression fails.
pub fn seal(sealer: &mut Sealer, offer: &Offer, part: usize, measured: &EvalResult) -> Result<Vec<u8>> {
    let raw = postcard::to_stdvec(&(offer.id, part as u64, measured));
    let raw = raw.map_err(|e| Error::unsupported("sending a part of an evaluation", e.to_string()))?;
    sealer.seal(&raw, Contents { sequence: 1 + part as u64, version: offer.version, games: 0, samples: 0 })
}

/// What was measured of a part of `offer`, by its chunk; not checked against the rules.
///
/// # Errors
/// What is wrong with it.
pub fn open(
    reader: &mut ChunkReader,
    bytes: &[u8],
    (digest, limits): (&[u8; 32], &ChunkLimits),
    offer: &Offer,
    part: usize,
) -> std::result::Result<EvalResult, String> {
    let chunk = Chunk::parse(bytes, digest, limits).map_err(|refusal| refusal.to_string())?;
    let named = |what: String| format!("of {}: {what}", chunk.header.name());
    let body = reader.body(&chunk).map_err(named)?;
    let ((id, number, measured), rest) = postcard::take_from_bytes::<(u64, u64, EvalResult)>(body)
        .map_err(|e| named(format!("its body is no part: {e}")))?;
    match rest.is_empty() && (id, number) == (offer.id, part as u64) {
        true => Ok(measured),
        false => Err(named(format!("its body is part {number} of another evaluation, or longer"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_as_written_and_others_are_none() {
        let offer = Offer { id: 0xfeed, version: 3, sha256: [7; 32], parts: 12 };
        let texts = ["feed".to_string(), "3".into(), hex(&[7; 32]), "12".into()];
        assert_eq!(Offer::parse(&texts), Some(offer.clone()));
        for (field, wrong) in [(0, "x"), (1, "-1"), (2, "07"), (3, "9999999")] {
            let mut texts = texts.clone();
            texts[field] = wrong.into();
            assert_eq!(Offer::parse(&texts), None, "{wrong}");
        }
        let claim = |text: &str| offer.claim_of((StreamId(1, 2), text.into())).map(|claim| claim.part);
        let claims = ["feed 11", "feed 12", "fed 11", "feed", "feed x"].map(claim);
        assert_eq!(claims, [Some(11), None, None, None, None]);
    }
}
