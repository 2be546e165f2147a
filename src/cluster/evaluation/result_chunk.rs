//! The chunk in which a worker sends the result of a task.

use super::offer::Offer;
use crate::backend::AnyGame;
use crate::cluster::chunk::{Chunk, ChunkLimits, ChunkReader, Contents, MAX_ITEM_BYTES, Sealer};
use crate::error::{Error, Result};
use crate::run::evaluation::MAX_PART_BYTES;
use crate::run::strength::EvalResult;

const _: () = assert!(MAX_PART_BYTES <= MAX_ITEM_BYTES);

/// The bounds of the chunk of a task whose result has up to `max_bytes` bytes.
///
/// # Errors
/// [`Error::Unsupported`] if that is more than a chunk may have.
pub fn limits(game: &dyn AnyGame, max_bytes: usize) -> Result<ChunkLimits> {
    ChunkLimits::with(game, max_bytes, "a task of an evaluation")
}

/// The chunk of a task's result.
///
/// # Errors
/// [`Error::Unsupported`] if compression fails.
pub fn seal(sealer: &mut Sealer, offer: &Offer, task: usize, measured: &EvalResult) -> Result<Vec<u8>> {
    let raw = postcard::to_stdvec(&(offer.id, task as u64, measured));
    let raw = raw.map_err(|e| Error::unsupported("sending a task of an evaluation", e.to_string()))?;
    sealer.seal(&raw, Contents { sequence: 1 + task as u64, version: offer.version, games: 0, samples: 0 })
}

/// The result of a task of `offer`, read from its chunk; not checked against the rules.
///
/// # Errors
/// The fault of the chunk, after the worker's name where the header can be read.
pub fn open(
    reader: &mut ChunkReader,
    bytes: &[u8],
    (digest, limits): (&[u8; 32], &ChunkLimits),
    offer: &Offer,
    task: usize,
) -> std::result::Result<EvalResult, String> {
    let chunk = Chunk::parse(bytes, digest, limits).map_err(|refusal| refusal.to_string())?;
    let named = |what: String| format!("of {}: {what}", chunk.header.name());
    let body = reader.body(&chunk).map_err(named)?;
    let ((id, number, measured), rest) = postcard::take_from_bytes::<(u64, u64, EvalResult)>(body)
        .map_err(|e| named(format!("cannot decode the body as a task: {e}")))?;
    if !rest.is_empty() {
        return Err(named(format!("{} bytes after the task, expected none", rest.len())));
    }
    match (id, number) == (offer.id, task as u64) {
        true => Ok(measured),
        false => Err(named(format!(
            "task {number} of evaluation {id:016x}, expected task {task} of evaluation {:016x}",
            offer.id
        ))),
    }
}
