//! The replay buffer in files. A file has a segment of the samples that a run has ever added, so that a checkpoint writes the new samples
//! and not the whole buffer again. A new segment takes in the ones before it that are not longer, so there are few, and a sample is
//! written again only when its segment doubles.

use super::{Replay, TargetList};
use crate::batch::ErasedRules;
use crate::error::{Error, Result};
use crate::files::{read_whole, write_atomic};
use crate::play::{is_policy, is_value};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Upper bound on the samples of a run.
const MAX_SAMPLES: u64 = 1 << 53;

/// Samples by the order in which they were added: from number `first` to before number `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    /// The first sample.
    pub first: u64,
    /// The sample after the last one.
    pub end: u64,
}

impl Segment {
    /// The name of its file.
    pub fn file_name(self) -> String {
        format!("replay-{:012}-{:012}.safetensors", self.first, self.end)
    }

    /// The segment whose file has this name; None for other files.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let (first, end) = name.strip_prefix("replay-")?.strip_suffix(".safetensors")?.split_once('-')?;
        let segment = Self { first: first.parse().ok()?, end: end.parse().ok()? };
        let is_possible = segment.first < segment.end && segment.end < MAX_SAMPLES;
        (is_possible && segment.file_name() == name).then_some(segment)
    }

    fn len(self) -> u64 {
        self.end - self.first
    }
}

impl Replay {
    /// The samples in the buffer, by the order in which they were added.
    fn window(&self) -> Segment {
        Segment { first: self.added - self.len() as u64, end: self.added }
    }

    /// The segments that hold the buffer, in order, given those of an earlier moment, which stay where they can. It follows from the
    /// numbers alone. The first one may begin with samples that are no longer in the buffer. None goes on beyond the last row of the
    /// buffer, so the rows of each are together.
    pub fn segments(&self, before: &[Segment]) -> Vec<Segment> {
        let (window, capacity) = (self.window(), self.capacity as u64);
        let mut segments: Vec<Segment> = before.iter().copied().filter(|s| s.end > window.first).collect();
        let mut first = segments.last().map_or(window.first, |last| last.end);
        while first < window.end {
            // The sample in row 0.
            let start = first / capacity * capacity;
            let end = window.end.min(start + capacity);
            let mut new = Segment { first, end };
            let kept_from = |last: &Segment| last.first.max(window.first);
            let is_taken_in =
                |last: &Segment, new: Segment| last.len() <= new.len() && kept_from(last) >= start;
            while let Some(last) = segments.pop_if(|last| is_taken_in(last, new)) {
                new.first = kept_from(&last);
            }
            segments.push(new);
            first = end;
        }
        segments
    }

    /// Saves one of [`Replay::segments`] as one safetensors file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, segment: Segment, path: &Path) -> Result<()> {
        let (first_row, r) = ((segment.first % self.capacity as u64) as usize, segment.len() as usize);
        let (s, e, p) = (self.state_size, self.sizes.max_legal, self.sizes.num_players);
        let first = segment.first.to_le_bytes();
        let rows = |width: usize| first_row * width..(first_row + r) * width;
        let mut views: Vec<(&str, Dtype, Vec<usize>, &[u8])> = vec![
            ("actions", Dtype::U16, vec![r, e], bytemuck::cast_slice(&self.actions[rows(e)])),
            ("first", Dtype::U64, vec![1], &first),
            ("num_legal", Dtype::U16, vec![r], bytemuck::cast_slice(&self.num_legal[rows(1)])),
            ("players", Dtype::U8, vec![r], &self.players[rows(1)]),
            ("policy", Dtype::F32, vec![r, e], bytemuck::cast_slice(&self.policy[rows(e)])),
            ("states", Dtype::U8, vec![r, s], &self.states[rows(s)]),
            ("values", Dtype::F32, vec![r, p], bytemuck::cast_slice(&self.values[rows(p)])),
        ];
        if self.end_size() > 0 {
            views.push(("ends", Dtype::U8, vec![r, s], &self.ends[rows(s)]));
        }
        let mut tensors = Vec::with_capacity(views.len());
        for (name, dtype, shape, bytes) in views {
            let view =
                TensorView::new(dtype, shape, bytes).map_err(|e| Error::format(path, e.to_string()))?;
            tensors.push((name, view));
        }
        let bytes = serialize(tensors, None::<HashMap<String, String>>)
            .map_err(|e| Error::format(path, e.to_string()))?;
        write_atomic(path, &bytes)
    }

    /// Loads a buffer of R = `capacity` samples from the files of its segments, in order, which [`Replay::save`] wrote.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] if a file is truncated, of another format, or of another game, or if samples are missing between
    /// two files; [`Error::Mismatch`] if the files have fewer samples than the buffer.
    pub fn load(
        game: &dyn ErasedRules,
        capacity: usize,
        targets: TargetList,
        files: &[(Segment, PathBuf)],
    ) -> Result<Self> {
        let mut replay = Self::with_targets(game, capacity, targets);
        let (Some((first, first_path)), Some((last, _))) = (files.first(), files.last()) else {
            return Ok(replay);
        };
        let begin = last.end.saturating_sub(capacity as u64);
        if first.first > begin {
            return Err(Error::mismatch(
                format_args!("the first sample of {}", first_path.display()),
                first.first,
                format_args!("at most {begin}, the first one of a buffer of {capacity}"),
            ));
        }
        replay.added = begin;
        replay.resize((last.end - begin) as usize);
        for (segment, path) in files {
            let Segment { first, end } = *segment;
            if first > replay.added || end > last.end {
                let what =
                    format!("has samples {first} to {end}, expected from {} to {}", replay.added, last.end);
                return Err(Error::format(path, what));
            }
            replay.read(game, *segment, path)?;
        }
        Ok(replay)
    }

    /// Adds the samples of a file that come next; their rows exist.
    fn read(&mut self, game: &dyn ErasedRules, segment: Segment, path: &Path) -> Result<()> {
        let bytes = read_whole(path).map_err(|e| Error::io("reading", path, e))?;
        let file = SafeTensors::deserialize(&bytes)
            .map_err(|e| Error::format(path, format!("not a whole replay file ({e})")))?;
        let array = |name: &str| {
            file.tensor(name).map_err(|e| Error::format(path, format!("replay array {name}: {e}")))
        };
        if array("first")?.data() != segment.first.to_le_bytes() {
            return Err(Error::format(path, "its first sample is not that of its name"));
        }
        let (s, e, p) = (self.state_size, self.sizes.max_legal, self.sizes.num_players);
        let ends = (self.end_size() > 0).then_some(("ends", s, &mut self.ends[..]));
        // With the bytes of a row.
        let arrays: [(&str, usize, &mut [u8]); 6] = [
            ("players", 1, &mut self.players),
            ("states", s, &mut self.states),
            ("num_legal", 2, bytemuck::cast_slice_mut(&mut self.num_legal)),
            ("actions", 2 * e, bytemuck::cast_slice_mut(&mut self.actions)),
            ("policy", 4 * e, bytemuck::cast_slice_mut(&mut self.policy)),
            ("values", 4 * p, bytemuck::cast_slice_mut(&mut self.values)),
        ];
        let numbers = self.added.max(segment.first)..segment.end;
        for (name, width, rows) in arrays.into_iter().chain(ends) {
            let tensor = array(name)?;
            if tensor.data().len() as u64 != segment.len().saturating_mul(width as u64) {
                let what = format!(
                    "replay array {name} has shape {:?}, expected {} samples of {width} bytes",
                    tensor.shape(),
                    segment.len()
                );
                return Err(Error::format(path, what));
            }
            for number in numbers.clone() {
                let (from, to) =
                    ((number - segment.first) as usize, (number % self.capacity as u64) as usize);
                rows[to * width..][..width].copy_from_slice(&tensor.data()[from * width..][..width]);
            }
        }
        let is_wrong = |number: &u64| !self.is_valid_row(game, (number % self.capacity as u64) as usize);
        if let Some(number) = numbers.into_par_iter().find_first(is_wrong) {
            return Err(Error::format(
                path,
                format!("sample {number} is not a valid sample of {}", game.name()),
            ));
        }
        self.added = self.added.max(segment.end);
        Ok(())
    }

    fn is_valid_row(&self, game: &dyn ErasedRules, at: usize) -> bool {
        let (e, p) = (self.sizes.max_legal, self.sizes.num_players);
        let n = usize::from(self.num_legal[at]);
        let is_action = |&action: &u16| usize::from(action) < self.sizes.num_actions;
        n <= e
            && self.actions[at * e..][..n].iter().all(is_action)
            && is_policy(&self.policy[at * e..][..n])
            && self.values[at * p..][..p].iter().copied().all(is_value)
            && game.is_valid(self.state_at(&self.states, at))
            && (self.ends.is_empty() || game.is_valid(self.state_at(&self.ends, at)))
            && usize::from(self.players[at]) < game.num_seated(self.state_at(&self.states, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::Sample;
    use crate::registry::any_game;

    /// Adds `count` samples, each with its number in its target of the policy.
    fn push(replay: &mut Replay, game: &dyn ErasedRules, count: u64) {
        for _ in 0..count {
            let number = replay.added();
            let actions = vec![(number % 9) as u16, (number / 9 % 9) as u16];
            let values = vec![(number % 100) as f32 / 100.0, 0.0];
            replay.push(
                &Sample { state: game.init(), player: 0, actions, policy: vec![0.25, 0.75], values },
                &[],
            );
        }
    }

    /// The files of a buffer in `folder`, those of `before` taken over, the others written. Returns also the number of samples written.
    fn save(replay: &Replay, before: &[Segment], folder: &Path) -> (Vec<(Segment, PathBuf)>, u64) {
        let mut written = 0;
        let files = replay.segments(before).into_iter().map(|segment| {
            let path = folder.join(segment.file_name());
            if !before.contains(&segment) {
                replay.save(segment, &path).expect("saved");
                written += segment.len();
            }
            (segment, path)
        });
        (files.collect(), written)
    }

    #[test]
    fn a_buffer_is_that_of_its_segments_after_every_epoch() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let folder = tempfile::tempdir().expect("a folder");
        // The second capacity is that of a run that was resumed with another one.
        for (mut capacity, resumed) in
            [(1, 1), (7, 7), (100, 100), (1000, 1000), (100, 37), (1000, 12), (1000, 1234)]
        {
            let mut replay = Replay::new(game.as_ref(), capacity);
            let (mut segments, mut written) = (Vec::new(), 0);
            for epoch in 0..300 {
                if epoch == 99 {
                    let files = save(&replay, &segments, folder.path()).0;
                    let loaded = Replay::load(game.as_ref(), resumed, TargetList::default(), &files);
                    (replay, capacity) = (loaded.expect("loaded"), resumed);
                }
                push(&mut replay, game.as_ref(), [5, 0, 12, 9, 10][epoch % 5]);
                let (files, more) = save(&replay, &segments, folder.path());
                written += more;
                segments = files.iter().map(|(segment, _)| *segment).collect();
                let loaded = Replay::load(game.as_ref(), capacity, TargetList::default(), &files);
                let loaded = loaded.expect("loaded");
                assert_eq!(loaded.added(), replay.added());
                let [found, expected] = [loaded.arrays(), replay.arrays()];
                assert!(found.actions == expected.actions && found.values == expected.values, "{epoch}");
                assert!(found.states == expected.states && found.policy == expected.policy, "{epoch}");
            }
            assert!(segments.len() <= 16, "{segments:?}");
            let (added, whole) = (replay.added(), 300 * capacity as u64);
            assert!(written < 8 * added && (capacity < 1000 || written < whole / 10), "{written} of {added}");
        }
    }

    #[test]
    fn segments_that_are_longer_than_the_new_one_stay() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let mut replay = Replay::new(game.as_ref(), 30);
        let of = |pairs: &[(u64, u64)]| -> Vec<Segment> {
            pairs.iter().map(|&(first, end)| Segment { first, end }).collect()
        };
        let mut segments: Vec<Segment> = Vec::new();
        for (count, expected) in [
            (16, vec![(0, 16)]),
            (4, vec![(0, 16), (16, 20)]),
            (2, vec![(0, 16), (16, 20), (20, 22)]),
            (2, vec![(0, 16), (16, 24)]),
            (0, vec![(0, 16), (16, 24)]),
            (9, vec![(0, 16), (16, 24), (24, 30), (30, 33)]),
            (4, vec![(0, 16), (16, 24), (24, 30), (30, 37)]),
            (7, vec![(0, 16), (16, 24), (24, 30), (30, 44)]),
            (40, vec![(54, 60), (60, 84)]),
        ] {
            push(&mut replay, game.as_ref(), count);
            segments = replay.segments(&segments);
            assert_eq!(segments, of(&expected));
        }
        // Samples 0 to 4 are no longer in the buffer when the segments are joined.
        let mut replay = Replay::new(game.as_ref(), 30);
        push(&mut replay, game.as_ref(), 10);
        let segments = replay.segments(&[]);
        push(&mut replay, game.as_ref(), 25);
        assert_eq!(replay.segments(&segments), of(&[(5, 30), (30, 35)]));
    }

    #[test]
    fn missing_samples_and_files_under_another_name_are_refused() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let folder = tempfile::tempdir().expect("a folder");
        let mut replay = Replay::new(game.as_ref(), 30);
        push(&mut replay, game.as_ref(), 16);
        let first = save(&replay, &[], folder.path()).0;
        push(&mut replay, game.as_ref(), 4);
        let both = save(&replay, &[first[0].0], folder.path()).0;
        let refused = |files: &[(Segment, PathBuf)], capacity| {
            let loaded = Replay::load(game.as_ref(), capacity, TargetList::default(), files);
            loaded.err().expect("refused").to_string()
        };
        assert!(refused(&both[1..], 30).contains("found 16, expected at most 0, the first one of a buffer"));
        let apart = [both[0].clone(), (Segment { first: 17, end: 20 }, both[1].1.clone())];
        assert!(refused(&apart, 30).contains("has samples 17 to 20, expected from 16 to 20"));
        let again = [both[0].clone(), both[1].clone(), both[0].clone()];
        assert!(refused(&again, 30).contains("has samples 16 to 20, expected from 16 to 16"));
        let renamed = [(Segment { first: 0, end: 4 }, both[1].1.clone())];
        assert!(refused(&renamed, 30).contains("its first sample is not that of its name"));
        let longer = [(Segment { first: 0, end: 17 }, both[0].1.clone())];
        assert!(refused(&longer, 30).contains("expected 17 samples of 1 bytes"));
        let smaller = Replay::load(game.as_ref(), 10, TargetList::default(), &both).expect("loaded");
        assert_eq!((smaller.len(), smaller.added()), (10, 20));
    }

    #[test]
    fn names_of_files_are_those_of_their_segments_alone() {
        let segment = Segment { first: 3, end: 1_234_567_890_123 };
        assert_eq!(segment.file_name(), "replay-000000000003-1234567890123.safetensors");
        assert_eq!(Segment::of_file_name(&segment.file_name()), Some(segment));
        let endless = Segment { first: 3, end: u64::MAX }.file_name();
        for name in [
            &endless,
            "replay-3-5.safetensors",
            "replay-000000000005-000000000005.safetensors",
            "replay.safetensors",
        ] {
            assert_eq!(Segment::of_file_name(name), None, "{name}");
        }
    }
}
