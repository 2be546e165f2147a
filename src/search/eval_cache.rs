//! The evaluation cache: a fixed-size hash table from a position to the priors of its legal edges and its values, shared by all
//! rows and threads. It takes no lock, and allocates only when it is made.
//!
//! An entry is a sequence of 64-bit words: a tag, the whole key (the game's canonical state), the values in seats relative to
//! the observer, the priors. The tag is a sequence lock: it is odd while an entry is being written, so a torn entry is never
//! read. It also holds the generation of the weights, so new weights invalidate all entries at once. The table is
//! direct-mapped: a key has one slot, and a new evaluation replaces the old one. Search results are the same with and without
//! the cache, since the network's output for a position does not depend on the batch.

use crate::isa::prefetch;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A direct-mapped, lock-free table of evaluations; see the module's head.
pub struct EvalCache {
    words: Vec<AtomicU64>,
    entries: usize,
    key_words: usize,
    value_words: usize,
    stride: usize,
    players: usize,
    generation: AtomicU64,
}

/// The sizes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryShape {
    /// Bytes of a state.
    pub state_size: usize,
    /// P.
    pub players: usize,
    /// The largest number of legal actions of a position.
    pub max_legal: usize,
}

impl EntryShape {
    fn words(&self) -> (usize, usize, usize) {
        (self.state_size.div_ceil(8), self.players.div_ceil(2), self.max_legal.div_ceil(2))
    }

    /// Bytes of one entry.
    pub fn bytes(&self) -> usize {
        let (key, values, priors) = self.words();
        8 * (1 + key + values + priors)
    }
}

/// The hash of a key.
#[inline(always)]
pub fn hash(key: &[u64]) -> u64 {
    let folded = key.iter().fold(0x9E37_79B9_7F4A_7C15_u64, |h, &word| {
        let x = (h ^ word).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^ (x >> 29)
    });
    let x = folded.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 32)
}

impl EvalCache {
    /// An empty table of `entries` entries.
    pub fn new(entries: usize, shape: EntryShape) -> Self {
        let (key_words, value_words, prior_words) = shape.words();
        let stride = 1 + key_words + value_words + prior_words;
        Self {
            words: (0..entries * stride).map(|_| AtomicU64::new(0)).collect(),
            entries,
            key_words,
            value_words,
            stride,
            players: shape.players,
            generation: AtomicU64::new(1),
        }
    }

    /// Invalidates all entries, for new weights. No search may be running.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Index of the first word of the entry of `hash`.
    #[inline(always)]
    fn first_word(&self, hash: u64) -> usize {
        let entry = ((u128::from(hash) * self.entries as u128) >> 64) as usize;
        entry * self.stride
    }

    #[inline(always)]
    fn entry(&self, hash: u64) -> &[AtomicU64] {
        &self.words[self.first_word(hash)..][..self.stride]
    }

    /// Prefetches the first four cache lines of the entry of `hash`.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        let first = self.first_word(hash);
        for word in (0..self.stride).step_by(8).take(4) {
            prefetch(&self.words, first + word);
        }
    }

    /// Looks up a key and returns true if it is present. Writes `values [P]`, relative to the observer, and `priors [legal
    /// edges]`; their content is unspecified if the result is false.
    #[inline(always)]
    pub fn get(&self, hash: u64, key: &[u64], values: &mut [f32], priors: &mut [f32]) -> bool {
        let entry = self.entry(hash);
        let tag = entry[0].load(Ordering::Acquire);
        if tag >> 32 != self.generation.load(Ordering::Relaxed) || tag & 1 == 1 {
            return false;
        }
        let (stored, rest) = entry[1..].split_at(self.key_words);
        if stored.iter().zip(key).any(|(a, &b)| a.load(Ordering::Relaxed) != b) {
            return false;
        }
        let (stored_values, stored_priors) = rest.split_at(self.value_words);
        unpack(stored_values, values);
        unpack(stored_priors, priors);
        fence(Ordering::Acquire);
        entry[0].load(Ordering::Relaxed) == tag
    }

    /// Stores an evaluation, replacing the entry in its slot. Does nothing while another thread writes the same slot.
    #[inline(always)]
    pub fn insert(&self, hash: u64, key: &[u64], values: &[f32], priors: &[f32]) {
        let entry = self.entry(hash);
        let tag = entry[0].load(Ordering::Relaxed);
        let count = tag & 0xFFFF_FFFE;
        let writing = count | 1;
        let locked = tag & 1 == 0
            && entry[0].compare_exchange(tag, writing, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !locked {
            return;
        }
        fence(Ordering::Release);
        let (stored, rest) = entry[1..].split_at(self.key_words);
        for (a, &b) in stored.iter().zip(key) {
            a.store(b, Ordering::Relaxed);
        }
        let (stored_values, stored_priors) = rest.split_at(self.value_words);
        pack(stored_values, &values[..self.players]);
        pack(stored_priors, priors);
        let generation = self.generation.load(Ordering::Relaxed) << 32;
        entry[0].store(generation | ((count + 2) & 0xFFFF_FFFE), Ordering::Release);
    }
}

// Two f32 in a word, an odd last one alone. The length of the chunks is a constant: a division at run time cost 1 % of a search.

#[inline(always)]
fn pack(words: &[AtomicU64], numbers: &[f32]) {
    let (pairs, last) = numbers.as_chunks::<2>();
    let bits = |x: f32| u64::from(x.to_bits());
    for (word, &[low, high]) in words.iter().zip(pairs) {
        word.store(bits(low) | bits(high) << 32, Ordering::Relaxed);
    }
    if let (&[last], Some(word)) = (last, words.get(pairs.len())) {
        word.store(bits(last), Ordering::Relaxed);
    }
}

#[inline(always)]
fn unpack(words: &[AtomicU64], numbers: &mut [f32]) {
    let (pairs, last) = numbers.as_chunks_mut::<2>();
    for (word, [low, high]) in words.iter().zip(&mut *pairs) {
        let bits = word.load(Ordering::Relaxed);
        (*low, *high) = (f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32));
    }
    if let ([last], Some(word)) = (last, words.get(pairs.len())) {
        *last = f32::from_bits(word.load(Ordering::Relaxed) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: EntryShape = EntryShape { state_size: 12, players: 3, max_legal: 5 };

    #[test]
    fn an_entry_is_found_until_the_cache_is_cleared() {
        let cache = EvalCache::new(97, SHAPE);
        let key = [7, 9];
        let h = hash(&key);
        let (mut values, mut priors) = ([0.0; 3], [0.0; 4]);
        assert!(!cache.get(h, &key, &mut values, &mut priors));
        cache.insert(h, &key, &[0.1, 0.2, 0.3], &[0.4, 0.3, 0.2, 0.1]);
        assert!(cache.get(h, &key, &mut values, &mut priors));
        assert_eq!((values, priors), ([0.1, 0.2, 0.3], [0.4, 0.3, 0.2, 0.1]));
        assert!(!cache.get(h, &[7, 8], &mut values, &mut priors), "the whole key is compared");
        cache.clear();
        assert!(!cache.get(h, &key, &mut values, &mut priors));
    }

    #[test]
    fn readers_never_see_a_torn_entry() {
        let cache = EvalCache::new(1, SHAPE);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..200_000u64 {
                    let x = (i % 1000) as f32;
                    cache.insert(5, &[i % 1000, 1], &[x; 3], &[x; 5]);
                }
                done.store(true, Ordering::Relaxed);
            });
            let mut found = 0u64;
            while !done.load(Ordering::Relaxed) || found == 0 {
                for i in 0..1000u64 {
                    let (mut values, mut priors) = ([0.0; 3], [0.0; 5]);
                    if cache.get(5, &[i, 1], &mut values, &mut priors) {
                        found += 1;
                        assert!(values.iter().chain(&priors).all(|&x| x == i as f32));
                    }
                }
            }
        });
    }
}
