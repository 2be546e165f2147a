//! Chunks: finished games as the bytes that a worker sends.
//!
//! A chunk is a header of [`HEADER_BYTES`] bytes and a body. The header, little-endian and without padding: magic `VZCK`, protocol u32,
//! digest of the configuration `[32]`, incarnation u64, sequence u64, weights version u64, games u32, samples u32, bytes of the body
//! before compression u32, bytes of the body u32, the worker's name `[32]` in UTF-8 filled with zeros, CRC-32C u32 of header (this
//! field as 0) and body, and a u32 that is 0. The body is one zstd frame of [`GameRecord`]s by postcard, one after the other.
//!
//! Everything in a chunk is checked: sizes and counts against [`ChunkLimits`] before memory is allocated, games by replay.

use super::{Incarnation, PROTOCOL};
use crate::backend::AnyGame;
use crate::error::{Error, Result};
use crate::play::PlayPlan;
use crate::play::{FinishedGame, GameRecord};
use bytemuck::{Pod, Zeroable};
use zstd::bulk::{Compressor, Decompressor};

/// Bytes of games, before compression, at which a chunk is full and is sent.
pub const FULL_CHUNK: usize = 256 << 10;
/// Upper bound on the bytes of a single game or poll in a chunk. The server's own bound on a value is 512 MiB.
pub const MAX_ITEM_BYTES: usize = 64 << 20;
const MAGIC: [u8; 4] = *b"VZCK";
/// The fastest level of zstd: policies are nearly random bits, which a higher level does not make smaller.
const COMPRESSION: i32 = 1;

/// Bytes of a header.
pub const HEADER_BYTES: usize = size_of::<ChunkHeader>();

/// The header of a chunk, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ChunkHeader {
    magic: [u8; 4],
    protocol: u32,
    /// Digest of the configuration and the game; see [`super::digest()`].
    pub digest: [u8; 32],
    /// The process that played the games.
    pub incarnation: u64,
    /// The chunk's number among those of its incarnation, from 1.
    pub sequence: u64,
    /// The version of the weights with which the games were finished.
    pub version: u64,
    /// Games in the body.
    pub games: u32,
    /// Samples of these games.
    pub samples: u32,
    /// Bytes of the body before compression.
    raw_bytes: u32,
    body_bytes: u32,
    name: [u8; 32],
    crc32c: u32,
    zero: u32,
}

impl ChunkHeader {
    /// The worker's name, for display.
    pub fn name(&self) -> String {
        let text = String::from_utf8_lossy(&self.name);
        text.trim_end_matches('\0').chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }

    /// The checksum of this header and `body`.
    fn checksum(&self, body: &[u8]) -> u32 {
        let header = Self { crc32c: 0, ..*self };
        crc32c::crc32c_append(crc32c::crc32c(bytemuck::bytes_of(&header)), body)
    }
}

/// Upper bounds on a chunk's sizes for one game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Bytes of the body before compression: [`FULL_CHUNK`] and the game that crosses it.
    pub raw_bytes: usize,
    /// Bytes of the body.
    pub body_bytes: usize,
}

impl ChunkLimits {
    /// The bounds for `game`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a single game may be larger than 64 MiB.
    pub fn of(game: &dyn AnyGame) -> Result<Self> {
        Self::with(game, GameRecord::max_bytes(game), "a game")
    }

    /// The bounds of chunks that have up to `max` bytes of `what` in addition to [`FULL_CHUNK`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] if that is more than 64 MiB.
    pub fn with(game: &dyn AnyGame, max: usize, what: &str) -> Result<Self> {
        if max > MAX_ITEM_BYTES {
            return Err(Error::unsupported(
                format!("workers for {}", game.name()),
                format!(
                    "{what} of it may need {} MiB on the wire, expected at most {} MiB",
                    max.div_ceil(1 << 20),
                    MAX_ITEM_BYTES >> 20
                ),
            ));
        }
        let raw_bytes = FULL_CHUNK + max;
        Ok(Self { raw_bytes, body_bytes: zstd::zstd_safe::compress_bound(raw_bytes) })
    }

    /// Bytes of the largest chunk.
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.body_bytes
    }
}

/// The fields that all chunks of a worker have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The worker's name.
    pub name: String,
    /// The worker's process.
    pub incarnation: Incarnation,
    /// Digest of the configuration and the game.
    pub digest: [u8; 32],
}

/// The header's fields about one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The chunk's number.
    pub sequence: u64,
    /// The version of the weights.
    pub version: u64,
    /// Games in the body.
    pub games: u32,
    /// Samples of these games.
    pub samples: u32,
}

/// Compresses bodies into chunks.
pub struct Sealer {
    origin: Origin,
    compressor: Compressor<'static>,
}

impl Sealer {
    /// A sealer for chunks of `origin`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is no memory for the compressor.
    pub fn new(origin: Origin) -> Result<Self> {
        let compressor =
            Compressor::new(COMPRESSION).map_err(|e| Error::unsupported("compression", e.to_string()))?;
        Ok(Self { origin, compressor })
    }

    /// The chunk whose body is `raw` before compression.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if compression fails.
    pub fn seal(&mut self, raw: &[u8], contents: Contents) -> Result<Vec<u8>> {
        let body =
            self.compressor.compress(raw).map_err(|e| Error::unsupported("compression", e.to_string()))?;
        let Origin { name, incarnation, digest } = &self.origin;
        let Contents { sequence, version, games, samples } = contents;
        let mut header = ChunkHeader {
            magic: MAGIC,
            protocol: PROTOCOL,
            digest: *digest,
            incarnation: incarnation.0,
            sequence,
            version,
            games,
            samples,
            raw_bytes: raw.len() as u32,
            body_bytes: body.len() as u32,
            name: name_bytes(name),
            crc32c: 0,
            zero: 0,
        };
        header.crc32c = header.checksum(&body);
        Ok([bytemuck::bytes_of(&header), &body].concat())
    }
}

/// Collects games until they fill a chunk.
pub struct ChunkWriter {
    sealer: Sealer,
    limits: ChunkLimits,
    sequence: u64,
    games: u32,
    samples: u32,
    raw: Vec<u8>,
}

impl ChunkWriter {
    /// A writer of chunks of `origin`, the first of which has number 1.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is no memory for the compressor.
    pub fn new(origin: Origin, limits: ChunkLimits) -> Result<Self> {
        let sealer = Sealer::new(origin)?;
        Ok(Self { sealer, limits, sequence: 0, games: 0, samples: 0, raw: Vec::new() })
    }

    /// Adds a game with its samples.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a game larger than the rules allow.
    pub fn push(&mut self, finished: &FinishedGame) -> Result<()> {
        let record = GameRecord::of(finished);
        let wrong = |e: String| Error::unsupported("sending a game", e);
        self.raw =
            postcard::to_extend(&record, std::mem::take(&mut self.raw)).map_err(|e| wrong(e.to_string()))?;
        self.games += 1;
        self.samples += finished.samples.len() as u32;
        match self.raw.len() > self.limits.raw_bytes {
            true => {
                Err(wrong(format!("{} bytes, expected at most {}", self.raw.len(), self.limits.raw_bytes)))
            }
            false => Ok(()),
        }
    }

    /// True if there is no game.
    pub fn is_empty(&self) -> bool {
        self.games == 0
    }

    /// True if the games fill a chunk.
    pub fn is_full(&self) -> bool {
        self.raw.len() >= FULL_CHUNK
    }

    /// The chunk of the games so far, finished with the weights of `version`, and its number. The next chunk is empty.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if compression fails.
    pub fn finish(&mut self, version: u64) -> Result<(u64, Vec<u8>)> {
        self.sequence += 1;
        let contents = Contents {
            sequence: self.sequence,
            version,
            games: std::mem::take(&mut self.games),
            samples: std::mem::take(&mut self.samples),
        };
        let chunk = self.sealer.seal(&self.raw, contents)?;
        self.raw.clear();
        Ok((self.sequence, chunk))
    }
}

/// The first 32 bytes of a name, cut between two characters.
fn name_bytes(name: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut length = name.len().min(bytes.len());
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// The reason why a chunk is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are not those that were sent: their number or their checksum is wrong.
    Damaged(String),
    /// The chunk has another version of this format.
    Protocol(u32),
    /// The chunk is for another game or configuration.
    Configuration,
    /// The bytes are those that were sent, but the games break the rules.
    Games(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged(what) => write!(f, "damaged: {what}"),
            Self::Protocol(found) => write!(f, "protocol {found}, expected {PROTOCOL}"),
            Self::Configuration => {
                write!(f, "digest of another game or configuration, expected that of this run")
            }
            Self::Games(what) => write!(f, "{what}"),
        }
    }
}

/// A chunk whose header and checksum are checked; its games are not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The header.
    pub header: ChunkHeader,
    body: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// The chunk in `bytes`, of this configuration.
    ///
    /// # Errors
    /// All refusals except [`Refusal::Games`].
    pub fn parse(bytes: &'a [u8], digest: &[u8; 32], limits: &ChunkLimits) -> Result<Self, Refusal> {
        let damaged = |what: String| Err(Refusal::Damaged(what));
        let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
            return damaged(format!(
                "{} bytes, expected at least the {HEADER_BYTES} of a header",
                bytes.len()
            ));
        };
        let header: ChunkHeader = bytemuck::pod_read_unaligned(header);
        if header.magic != MAGIC {
            return damaged("the first bytes differ, expected VZCK".into());
        }
        if header.protocol != PROTOCOL {
            return Err(Refusal::Protocol(header.protocol));
        }
        if body.len() != header.body_bytes as usize || body.len() > limits.body_bytes {
            return damaged(format!(
                "a body of {} bytes, expected {} by the header and at most {}",
                body.len(),
                header.body_bytes,
                limits.body_bytes
            ));
        }
        if header.raw_bytes as usize > limits.raw_bytes {
            return damaged(format!(
                "a body of {} bytes before compression by the header, expected at most {}",
                header.raw_bytes, limits.raw_bytes
            ));
        }
        let checksum = header.checksum(body);
        if checksum != header.crc32c {
            return damaged(format!("checksum {checksum:08x}, expected {:08x} by the header", header.crc32c));
        }
        match header.digest == *digest {
            true => Ok(Self { header, body }),
            false => Err(Refusal::Configuration),
        }
    }
}

/// Reads the games of chunks. Its buffers are reused for the next chunk.
pub struct ChunkReader {
    decompressor: Decompressor<'static>,
    raw: Vec<u8>,
}

impl ChunkReader {
    /// A reader with empty buffers.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is no memory for the decompressor.
    pub fn new() -> Result<Self> {
        let decompressor =
            Decompressor::new().map_err(|e| Error::unsupported("decompression", e.to_string()))?;
        Ok(Self { decompressor, raw: Vec::new() })
    }

    /// The games of a chunk, replayed. One game that breaks the rules refuses all of them.
    ///
    /// # Errors
    /// [`Refusal::Games`].
    pub fn games(
        &mut self,
        chunk: &Chunk<'_>,
        game: &dyn AnyGame,
        plan: &PlayPlan,
    ) -> Result<Vec<FinishedGame>, Refusal> {
        self.read(chunk, game, plan).map_err(Refusal::Games)
    }

    /// The body of a chunk before compression.
    ///
    /// # Errors
    /// The fault of the compressed body.
    pub fn body(&mut self, chunk: &Chunk<'_>) -> Result<&[u8], String> {
        let expected = chunk.header.raw_bytes as usize;
        self.raw.resize(expected, 0); // at most the limit, by `Chunk::parse`
        match self.decompressor.decompress_to_buffer(chunk.body, &mut self.raw[..]) {
            Ok(size) if size == expected => Ok(&self.raw),
            Ok(size) => Err(format!("the body decompresses to {size} bytes, expected {expected}")),
            Err(e) => Err(format!("cannot decompress the body: {e}")),
        }
    }

    fn read(
        &mut self,
        chunk: &Chunk<'_>,
        game: &dyn AnyGame,
        plan: &PlayPlan,
    ) -> Result<Vec<FinishedGame>, String> {
        let header = &chunk.header;
        let sender = Incarnation(header.incarnation);
        let (mut rest, mut games, mut samples) = (self.body(chunk)?, Vec::new(), 0);
        while !rest.is_empty() {
            let (record, after) = postcard::take_from_bytes::<GameRecord>(rest)
                .map_err(|e| format!("cannot decode game {} as a record: {e}", games.len()))?;
            if !sender.has_slot(record.slot) {
                return Err(format!(
                    "game {} is of slot {}, expected a slot of its sender",
                    games.len(),
                    record.slot
                ));
            }
            let finished = record.replay(game, plan)?;
            samples += finished.samples.len();
            games.push(finished);
            rest = after;
        }
        match (games.len(), samples) == (header.games as usize, header.samples as usize) {
            true => Ok(games),
            false => Err(format!(
                "{} games with {samples} samples, expected {} with {} by the header",
                games.len(),
                header.games,
                header.samples
            )),
        }
    }
}
