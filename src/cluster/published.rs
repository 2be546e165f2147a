//! The keys of a run on the server, what the learner publishes there, and how both sides read it.
//!
//! | key | type | content |
//! |---|---|---|
//! | `RUN:state` | hash | the fields of [`PublishedRun`]; `config`; `record`; `over`: 1 once the run has reached its limit |
//! | `RUN:weights:VERSION` | string | the network's file (safetensors) of that version |
//! | `RUN:games` | stream | one entry per chunk, with the field `c` |
//! | `RUN:marks` | hash | incarnation: number of its last chunk that is in a checkpoint |
//! | `RUN:resend` | hash | incarnation: a number that changes with each request to send its chunks again |
//! | `RUN:workers` | hash | incarnation: the worker's [`super::status::WorkerStatus`] as JSON |
//! | `RUN:slots:VERSION` | hash | strict order: partition: its slots at the start; `finished`: games before it |
//! | `RUN:polls` | string | strict order: the version, and how many of its polls are taken |
//! | `RUN:lease:VERSION:PARTITION` | string | strict order: the incarnation that plays the partition, for some seconds |
//! | `RUN:refused` | hash | strict order: incarnation: 1 if a game of it was refused |
//! | `RUN:evaluation` | hash | the fields of [`super::evaluation::Offer`], during an evaluation |
//! | `RUN:parts` | stream | the tasks of the evaluation, claimed by the consumer group `workers` |
//! | `RUN:results:EVALUATION` | hash | task: its result |

use super::received::StreamId;
use super::server::{Connection, Failure, bytes_of, list_of, number_of};
use super::{Incarnation, PROTOCOL};
use crate::config::MAX_BYTES;
use redis::{Value, cmd, pipe};
use sha2::{Digest, Sha256};

/// The field of a stream's entry that holds the chunk.
pub const CHUNK_FIELD: &str = "c";
/// The field of the state that says whether the run has reached its limit, and its value if so.
pub const OVER: (&str, &str) = ("over", "1");
/// Versions of the weights on the server: a worker may be fetching one when the next is published.
const KEPT_VERSIONS: u64 = 3;
/// Older versions that each publication removes. More than one, since an earlier removal may have failed.
const REMOVED_VERSIONS: u64 = 16;

/// The keys of a run.
#[derive(Clone, Debug)]
pub struct Keys {
    run: String,
    /// The hash of [`PublishedRun`].
    pub state: String,
    /// The stream of chunks.
    pub games: String,
    /// The hash of marks.
    pub marks: String,
    /// The hash of requests to send again.
    pub resend: String,
    /// The hash of workers' statuses, for display.
    pub workers: String,
    /// In strict order: the number of polls that are taken.
    pub polls: String,
    /// In strict order: the hash of processes whose games were refused.
    pub refused: String,
    /// The hash of the evaluation in progress.
    pub evaluation: String,
    /// The stream of the evaluation's tasks; the key is `RUN:parts`.
    pub tasks: String,
}

impl Keys {
    /// The keys of the run of this name.
    pub fn new(run: &str) -> Self {
        let key = |name: &str| format!("{run}:{name}");
        Self {
            run: run.to_string(),
            state: key("state"),
            games: key("games"),
            marks: key("marks"),
            resend: key("resend"),
            workers: key("workers"),
            polls: key("polls"),
            refused: key("refused"),
            evaluation: key("evaluation"),
            tasks: key("parts"),
        }
    }

    /// The hash of the game slots at the start of an epoch.
    pub fn slots(&self, version: u64) -> String {
        format!("{}:slots:{version}", self.run)
    }

    /// The key of the lease of a partition.
    pub fn lease(&self, version: u64, partition: usize) -> String {
        format!("{}:lease:{version}:{partition}", self.run)
    }

    /// The hash of the results of the evaluation with this number.
    pub fn results(&self, evaluation: u64) -> String {
        format!("{}:results:{evaluation:016x}", self.run)
    }

    /// The key of a version of the weights.
    pub fn weights(&self, version: u64) -> String {
        format!("{}:weights:{version}", self.run)
    }

    /// The keys of the versions that a new `version` replaces.
    pub fn of_old_versions(&self, version: u64) -> Vec<String> {
        let last = (version + 1).saturating_sub(KEPT_VERSIONS);
        let old = last.saturating_sub(REMOVED_VERSIONS)..last;
        old.flat_map(|old| [self.weights(old), self.slots(old)]).collect()
    }
}

/// The state of a run that the learner publishes for its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRun {
    /// The version of all formats that are sent.
    pub protocol: u32,
    /// The run's identity.
    pub run: u64,
    /// The stream's generation: changes when the server has lost data.
    pub generation: u64,
    /// Digest of the configuration and the game; see [`super::digest()`].
    pub digest: [u8; 32],
    /// The newest version of the weights.
    pub version: u64,
    /// SHA-256 of the weights file.
    pub sha256: [u8; 32],
    /// Upper bound on the bytes that one worker has sent and no mark covers.
    pub window: u64,
}

impl PublishedRun {
    const FIELDS: [&'static str; 7] =
        ["protocol", "run", "generation", "digest", "version", "sha256", "window"];

    /// The fields with their values, for HSET.
    pub fn fields(&self) -> [(&'static str, String); 7] {
        let Self { protocol, run, generation, digest, version, sha256, window } = self;
        let values = [
            protocol.to_string(),
            format!("{run:016x}"),
            format!("{generation:016x}"),
            hex(digest),
            version.to_string(),
            hex(sha256),
            window.to_string(),
        ];
        let mut values = values.into_iter();
        Self::FIELDS.map(|name| (name, values.next().unwrap_or_default()))
    }

    /// The state of the run. None if it has no field `protocol`, for example after the server lost data.
    ///
    /// # Errors
    /// Those of the server; [`Failure::Final`] for another protocol, or another field that is missing or invalid.
    pub fn read(link: &mut Connection, keys: &Keys) -> Result<Option<Self>, Failure> {
        Self::of_reply(link.command(cmd("HMGET").arg(&keys.state).arg(&Self::FIELDS))?)
    }

    fn of_reply(reply: Value) -> Result<Option<Self>, Failure> {
        let values: Vec<Option<Vec<u8>>> =
            list_of(reply).unwrap_or_default().into_iter().map(bytes_of).collect();
        if values.first().is_none_or(Option::is_none) {
            return Ok(None);
        }
        Self::parse(&values).map(Some).map_err(Failure::Final)
    }

    /// Parses the values of the fields, in the order of [`PublishedRun::fields`].
    ///
    /// # Errors
    /// The first invalid field, or another protocol.
    pub fn parse(values: &[Option<Vec<u8>>]) -> Result<Self, String> {
        let text = |i: usize| {
            let bytes = values.get(i).and_then(Option::as_deref).unwrap_or_default();
            std::str::from_utf8(bytes).unwrap_or_default()
        };
        let wrong = |i: usize| {
            let expected = match Self::FIELDS[i] {
                "run" | "generation" => "a hexadecimal number of 64 bits",
                "digest" | "sha256" => "64 hexadecimal digits",
                _ => "a number of 64 bits",
            };
            format!("field {} of the run's state is {:?}, expected {expected}", Self::FIELDS[i], text(i))
        };
        let number = |i: usize| text(i).parse::<u64>().map_err(|_| wrong(i));
        let key = |i: usize| u64::from_str_radix(text(i), 16).map_err(|_| wrong(i));
        let protocol = number(0)?;
        if protocol != u64::from(PROTOCOL) {
            return Err(format!(
                "the run's learner uses protocol {protocol}, expected {PROTOCOL}: learner and workers need the same vecaz"
            ));
        }
        Ok(Self {
            protocol: PROTOCOL,
            run: key(1)?,
            generation: key(2)?,
            digest: from_hex(text(3)).ok_or_else(|| wrong(3))?,
            version: number(4)?,
            sha256: from_hex(text(5)).ok_or_else(|| wrong(5))?,
            window: number(6)?,
        })
    }
}

/// The number of polls of `version` that are taken, from the text of `RUN:polls`; None for another version or an invalid text.
pub fn taken_polls(text: &[u8], version: u64) -> Option<u64> {
    let (of, taken) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    (of.parse() == Ok(version)).then(|| taken.parse().ok())?
}

/// The published values that a worker in free order reads, in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// The state of the run.
    pub state: PublishedRun,
    /// The number of the worker's last chunk that is in a checkpoint.
    pub mark: u64,
    /// The number of requests to send its chunks again.
    pub resend: u64,
    /// True once the run has reached its limit.
    pub is_over: bool,
}

impl WorkerView {
    /// Reads the values for the worker of this `incarnation`; None where the run has no state.
    ///
    /// # Errors
    /// As [`PublishedRun::read`].
    pub fn read(
        link: &mut Connection,
        keys: &Keys,
        incarnation: Incarnation,
    ) -> Result<Option<Self>, Failure> {
        let mut all = pipe();
        all.atomic().cmd("HMGET").arg(&keys.state).arg(&PublishedRun::FIELDS);
        all.cmd("HGET").arg(&keys.marks).arg(incarnation.field());
        all.cmd("HGET").arg(&keys.resend).arg(incarnation.field());
        all.cmd("HGET").arg(&keys.state).arg(OVER.0);
        let mut replies = link.pipeline(&all)?.into_iter();
        let mut next = || replies.next().unwrap_or(Value::Nil);
        let Some(state) = PublishedRun::of_reply(next())? else { return Ok(None) };
        let [mark, resend] = [next(), next()].map(|reply| number_of(reply).unwrap_or(0));
        Ok(Some(Self { state, mark, resend, is_over: is_over(next()) }))
    }
}

/// Whether the value of the field [`OVER`] says that the run has reached its limit.
pub fn is_over(value: Value) -> bool {
    bytes_of(value).is_some_and(|value| value == OVER.1.as_bytes())
}

/// The configuration of the run, as TOML; None where it has none.
///
/// # Errors
/// Those of the server; [`Failure::Final`] for a text that is too long or not UTF-8.
pub fn read_config(link: &mut Connection, keys: &Keys) -> Result<Option<String>, Failure> {
    let length = link.command(cmd("HSTRLEN").arg(&keys.state).arg("config"))?;
    let length = number_of(length).unwrap_or(0);
    if length > MAX_BYTES {
        return Err(Failure::Final(format!(
            "the run's configuration has {length} bytes, expected at most {MAX_BYTES}"
        )));
    }
    let text = bytes_of(link.command(cmd("HGET").arg(&keys.state).arg("config"))?);
    text.map(|text| {
        String::from_utf8(text).map_err(|_| {
            Failure::Final("the run's configuration is not UTF-8, expected TOML in UTF-8".into())
        })
    })
    .transpose()
}

/// The weights file of `version`, of at most `max` bytes. None where newer versions have replaced it.
///
/// # Errors
/// Those of the server; [`Failure::Final`] for a file that is too long or has another checksum.
pub fn read_weights(
    link: &mut Connection,
    keys: &Keys,
    (version, checksum): (u64, [u8; 32]),
    max: u64,
) -> Result<Option<Vec<u8>>, Failure> {
    let key = keys.weights(version);
    let length = number_of(link.command(cmd("STRLEN").arg(&key))?).unwrap_or(0);
    if length > max {
        return Err(Failure::Final(format!(
            "weights of version {version} have {length} bytes, expected at most {max}"
        )));
    }
    let Some(bytes) = bytes_of(link.command(cmd("GET").arg(&key))?) else { return Ok(None) };
    match sha256(&bytes) == checksum {
        true => Ok(Some(bytes)),
        false => Err(Failure::Final(format!(
            "weights of version {version} have SHA-256 {}, expected {}",
            hex(&sha256(&bytes)),
            hex(&checksum)
        ))),
    }
}

/// A field of `RUN:slots:VERSION`, the start of an epoch in strict order, of at most `max` bytes. None where newer versions have
/// replaced it.
///
/// # Errors
/// Those of the server; [`Failure::Final`] for a field that is too long.
pub fn read_epoch_slots(
    link: &mut Connection,
    keys: &Keys,
    version: u64,
    field: &str,
    max: u64,
) -> Result<Option<Vec<u8>>, Failure> {
    let key = keys.slots(version);
    let length = number_of(link.command(cmd("HSTRLEN").arg(&key).arg(field))?).unwrap_or(0);
    if length > max {
        return Err(Failure::Final(format!(
            "field {field} of the slots of version {version} has {length} bytes, expected at most {max}"
        )));
    }
    Ok(bytes_of(link.command(cmd("HGET").arg(&key).arg(field))?))
}

/// The entries of a reply, with their chunks. An entry without the field of the chunk has an empty one.
pub fn entries_of(reply: Value) -> Vec<(StreamId, Vec<u8>)> {
    let entry = |value: Value| {
        let [id, fields]: [Value; 2] = list_of(value)?.try_into().ok()?;
        let id = StreamId::parse(&String::from_utf8(bytes_of(id)?).ok()?)?;
        let mut fields = list_of(fields)?.into_iter();
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            if bytes_of(name)? == CHUNK_FIELD.as_bytes() {
                return Some((id, bytes_of(value)?));
            }
        }
        Some((id, Vec::new()))
    };
    list_of(reply).unwrap_or_default().into_iter().filter_map(entry).collect()
}

/// The SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// `bytes` as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 with these hexadecimal digits; None for any other text.
pub fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> PublishedRun {
        PublishedRun {
            protocol: PROTOCOL,
            run: 7,
            generation: u64::MAX,
            digest: [0xa5; 32],
            version: 12,
            sha256: sha256(b"weights"),
            window: 1 << 20,
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let values = state().fields().map(|(_, value)| Some(value.into_bytes()));
        assert_eq!(PublishedRun::parse(&values), Ok(state()));
    }

    #[test]
    fn a_lost_state_is_none_even_if_a_window_was_published_after_the_loss() {
        let reply = |fields: [Value; 7]| PublishedRun::of_reply(Value::Array(fields.into()));
        let mut fields = [const { Value::Nil }; 7];
        assert_eq!(reply(fields.clone()), Ok(None));
        fields[6] = Value::BulkString(b"4096".to_vec());
        assert_eq!(reply(fields), Ok(None));
        let written = state().fields().map(|(_, value)| Value::BulkString(value.into_bytes()));
        assert_eq!(reply(written), Ok(Some(state())));
    }

    #[test]
    fn a_state_of_another_protocol_and_wrong_fields_are_refused() {
        let refused = |field: usize, value: Option<&str>| {
            let mut values = state().fields().map(|(_, value)| Some(value.into_bytes()));
            values[field] = value.map(|text| text.as_bytes().to_vec());
            PublishedRun::parse(&values).expect_err("refused")
        };
        assert!(refused(0, Some("2")).contains("uses protocol 2, expected 1"));
        let found = "of the run's state is";
        assert_eq!(
            refused(1, Some("xyz")),
            format!("field run {found} \"xyz\", expected a hexadecimal number of 64 bits")
        );
        assert_eq!(
            refused(3, Some("00")),
            format!("field digest {found} \"00\", expected 64 hexadecimal digits")
        );
        assert_eq!(refused(4, None), format!("field version {found} \"\", expected a number of 64 bits"));
        assert!(refused(5, Some(&"é".repeat(32))).contains("field sha256"));
    }

    #[test]
    fn some_versions_are_kept() {
        let keys = Keys::new("r");
        assert!(keys.of_old_versions(2).is_empty());
        assert_eq!(keys.of_old_versions(3), ["r:weights:0", "r:slots:0"]);
        assert_eq!(keys.of_old_versions(40).len(), 2 * REMOVED_VERSIONS as usize);
    }
}
