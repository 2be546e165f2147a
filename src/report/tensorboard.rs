//! TensorBoard event files: scalars, one event per epoch.
//!
//! The format is TensorFlow's: records of `length u64 | masked CRC-32C of it u32 | data | masked CRC-32C of it u32`, all
//! little-endian (`tensorflow/core/lib/io/record_writer.h`). The data is a protocol buffer `Event`
//! (`tensorflow/core/util/event.proto`: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7).

use super::metrics::EpochRecord;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The beginning of the names of event files.
pub const PREFIX: &str = "events.out.tfevents.";

/// An event file, open for writing. Each start of a run writes a new file; TensorBoard reads them in order of their names. A file
/// without epochs is removed on drop.
#[derive(Debug)]
pub struct EventWriter {
    file: File,
    path: PathBuf,
    /// Number of epochs written.
    epochs: u64,
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        if self.epochs == 0 {
            let _ = std::fs::remove_file(&self.path); // it has no data
        }
    }
}

impl EventWriter {
    /// Creates a new event file in `dir`, which is created if missing. Invalidates the events of earlier files with a step above
    /// `last_epoch` (0 for a new run), since their epochs will be repeated.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(dir: &Path, last_epoch: u64) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(|e| Error::io("creating", dir, e))?;
        let time = match latest(dir)? {
            // The clock may have been set back.
            Some(latest) => since_1970().max(latest.saturating_add(Duration::from_nanos(1))),
            None => since_1970(),
        };
        let name = format!("{PREFIX}{:010}.{:09}{SUFFIX}", time.as_secs(), time.subsec_nanos());
        let path = dir.join(name);
        let file = File::create_new(&path).map_err(|e| Error::io("creating", &path, e))?;
        let mut writer = Self { file, path, epochs: 0 };
        writer.write_event(0, |event| event.bytes(3, b"brain.Event:2"))?;
        let started = ProtoMessage::default().varint(1, 1); // SessionLog.status = START
        writer.write_event(last_epoch + 1, |event| event.bytes(7, &started.0))?;
        Ok(writer)
    }

    /// Writes all metrics of `record` as one event.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn append(&mut self, record: &EpochRecord) -> Result<()> {
        let summary = record.scalars().iter().fold(ProtoMessage::default(), |summary, (tag, value)| {
            let value = ProtoMessage::default().bytes(1, tag.as_bytes()).float(2, *value as f32);
            summary.bytes(1, &value.0)
        });
        self.write_event(record.epoch, |event| event.bytes(5, &summary.0))?;
        self.epochs += 1;
        Ok(())
    }

    fn write_event(&mut self, step: u64, fill: impl FnOnce(ProtoMessage) -> ProtoMessage) -> Result<()> {
        let event = fill(ProtoMessage::default().double(1, since_1970().as_secs_f64()).varint(2, step));
        let write = self.file.write_all(&frame(&event.0));
        write.map_err(|e| Error::io("writing", &self.path, e))
    }
}

/// The end of the names of event files.
const SUFFIX: &str = ".vecaz";

/// The latest time in the names of the event files in `dir`.
fn latest(dir: &Path) -> Result<Option<Duration>> {
    let entries = std::fs::read_dir(dir).map_err(|e| Error::io("reading", dir, e))?;
    let time = |name: &str| {
        let (seconds, nanos) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('.')?;
        Some(Duration::new(seconds.parse().ok()?, nanos.parse().ok().filter(|&n| n < 1_000_000_000)?))
    };
    Ok(entries.filter_map(|entry| time(entry.ok()?.file_name().to_str()?)).max())
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A record around `data`.
fn frame(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let checks = [masked_crc(&length).to_le_bytes(), masked_crc(data).to_le_bytes()];
    [&length, checks[0].as_slice(), data, &checks[1]].concat()
}

/// Masked CRC-32C, so that a CRC of data that contains CRCs stays reliable (`tensorflow/core/lib/hash/crc32c.h`).
fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A protocol buffer under construction.
#[derive(Default)]
struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    fn raw_varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    fn key(self, field: u64, wire_type: u64) -> Self {
        self.raw_varint(field << 3 | wire_type)
    }

    fn varint(self, field: u64, value: u64) -> Self {
        self.key(field, 0).raw_varint(value)
    }

    fn double(self, field: u64, value: f64) -> Self {
        let mut message = self.key(field, 1);
        message.0.extend(value.to_le_bytes());
        message
    }

    fn bytes(self, field: u64, value: &[u8]) -> Self {
        let mut message = self.key(field, 2).raw_varint(value.len() as u64);
        message.0.extend(value);
        message
    }

    fn float(self, field: u64, value: f32) -> Self {
        let mut message = self.key(field, 5);
        message.0.extend(value.to_le_bytes());
        message
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::sample_records;
    use super::*;
    use std::collections::BTreeMap;

    /// The content of a field: a varint as a number, all other types as bytes.
    #[derive(Debug, PartialEq)]
    enum Content<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    fn take<'a>(bytes: &mut &'a [u8], n: usize) -> &'a [u8] {
        let (head, tail) = bytes.split_at(n);
        *bytes = tail;
        head
    }

    fn take_varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = take(bytes, 1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn fields(mut bytes: &[u8]) -> Vec<(u64, Content<'_>)> {
        let mut fields = vec![];
        while !bytes.is_empty() {
            let key = take_varint(&mut bytes);
            let content = match key & 7 {
                0 => Content::Number(take_varint(&mut bytes)),
                1 => Content::Bytes(take(&mut bytes, 8)),
                2 => {
                    let length = take_varint(&mut bytes) as usize;
                    Content::Bytes(take(&mut bytes, length))
                }
                5 => Content::Bytes(take(&mut bytes, 4)),
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, content));
        }
        fields
    }

    /// Splits a file into records and checks both checksums of each.
    fn events(mut file: &[u8]) -> Vec<&[u8]> {
        let mut events = vec![];
        while !file.is_empty() {
            let length = take(&mut file, 8);
            assert_eq!(take(&mut file, 4), masked_crc(length).to_le_bytes());
            let data = take(&mut file, u64::from_le_bytes(length.try_into().expect("8 bytes")) as usize);
            assert_eq!(take(&mut file, 4), masked_crc(data).to_le_bytes());
            events.push(data);
        }
        events
    }

    fn bytes<'a>(content: &Content<'a>) -> &'a [u8] {
        match content {
            Content::Bytes(bytes) => bytes,
            Content::Number(number) => panic!("{number} is not bytes"),
        }
    }

    fn read_scalars(summary: &[u8]) -> BTreeMap<String, f32> {
        let scalar = |(field, value): (u64, Content<'_>)| {
            assert_eq!(field, 1);
            let parts = fields(bytes(&value));
            let tag = String::from_utf8(bytes(&parts[0].1).to_vec()).expect("UTF-8");
            (tag, f32::from_le_bytes(bytes(&parts[1].1).try_into().expect("4 bytes")))
        };
        fields(summary).into_iter().map(scalar).collect()
    }

    #[test]
    fn events_round_trip() {
        let dir = tempfile::tempdir().expect("a folder");
        let records = sample_records(3);
        let mut writer = EventWriter::create(&dir.path().join("events"), 200).expect("created");
        records.iter().for_each(|record| writer.append(record).expect("written"));
        let file = std::fs::read(&writer.path).expect("read");
        let events = events(&file);
        assert_eq!(events.len(), 2 + records.len());
        assert_eq!(fields(events[0])[2], (3, Content::Bytes(b"brain.Event:2")));
        let start = fields(events[1]);
        assert_eq!(start[1..], [(2, Content::Number(201)), (7, Content::Bytes(&[8, 1]))]);
        for (event, record) in events[2..].iter().zip(&records) {
            let fields = fields(event);
            let seconds = f64::from_le_bytes(bytes(&fields[0].1).try_into().expect("8 bytes"));
            assert!(fields[0].0 == 1 && seconds > 1e9);
            assert_eq!(fields[1], (2, Content::Number(record.epoch)));
            let expected: BTreeMap<String, f32> =
                record.scalars().iter().map(|(tag, value)| (tag.to_string(), *value as f32)).collect();
            assert_eq!((fields[2].0, read_scalars(bytes(&fields[2].1))), (5, expected));
        }
    }

    /// TensorBoard reads event files in order of their names, and an event that starts a resumed run discards those that were
    /// read before it with the same or a later step: a file named earlier than its predecessors would lose their epochs.
    #[test]
    fn a_file_is_named_after_all_earlier_ones_also_if_the_clock_was_set_back() {
        let dir = tempfile::tempdir().expect("a folder");
        let ahead = dir.path().join("events.out.tfevents.7999999999.999999999.vecaz");
        std::fs::write(&ahead, b"").expect("written");
        let mut before = ahead;
        for _ in 0..3 {
            let mut writer = EventWriter::create(dir.path(), 0).expect("created");
            writer.append(&sample_records(1)[0]).expect("written");
            let path = writer.path.clone();
            assert!(path.file_name() > before.file_name(), "{} after {}", path.display(), before.display());
            before = path;
        }
    }

    /// A run that is resumed at its limit, or ends in its first epoch, leaves no file.
    #[test]
    fn a_file_without_epochs_is_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        drop(EventWriter::create(dir.path(), 3).expect("created"));
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 0);
        let mut writer = EventWriter::create(dir.path(), 3).expect("created");
        writer.append(&sample_records(1)[0]).expect("written");
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1);
    }

    /// The check value of CRC-32C (RFC 3720, appendix B.4: 32 bytes of zeros), masked by hand.
    #[test]
    fn the_checksum_is_the_masked_castagnoli_one() {
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(masked_crc(&[0; 32]), 0x0fd7_fffa);
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        std::fs::write(&file, b"").expect("written");
        let message = EventWriter::create(&file.join("events"), 0).expect_err("refused").to_string();
        assert!(message.starts_with("creating "), "{message}");
    }
}
