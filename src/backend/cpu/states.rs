//! The states of all nodes, stored without their type, which only the game's code has.

use crate::isa::prefetch_at;
use bytemuck::Pod;

/// One state of the game for every node. `[B, T]`
pub(super) struct States {
    /// The states without gaps, and zeros after the last one. States are aligned to at most 8 bytes.
    words: Vec<u64>,
    /// Bytes of a state.
    size: usize,
    /// B T.
    count: usize,
}

impl States {
    /// `count` copies of `state`.
    pub fn new<S: Pod>(state: &S, count: usize) -> Self {
        let size = size_of::<S>();
        let mut states = Self { words: vec![0; (count * size).div_ceil(8)], size, count };
        states.typed_mut::<S>().fill(*state);
        states
    }

    /// All states.
    ///
    /// # Panics
    /// If S is not the type of [`Self::new`].
    #[inline(always)]
    pub fn typed<S: Pod>(&self) -> &[S] {
        bytemuck::cast_slice(&bytemuck::cast_slice::<u64, u8>(&self.words)[..self.count * size_of::<S>()])
    }

    /// All states, mutable.
    ///
    /// # Panics
    /// As [`Self::typed`].
    #[inline(always)]
    pub fn typed_mut<S: Pod>(&mut self) -> &mut [S] {
        let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut self.words);
        bytemuck::cast_slice_mut(&mut bytes[..self.count * size_of::<S>()])
    }

    /// State number `index`. Cheaper than [`Self::typed`], which checks alignment and size of the whole array.
    ///
    /// # Panics
    /// If S is not the type of [`Self::new`], or out of range.
    #[inline(always)]
    pub fn get<S: Pod>(&self, index: usize) -> &S {
        let size = size_of::<S>();
        bytemuck::from_bytes(&bytemuck::cast_slice::<u64, u8>(&self.words)[index * size..(index + 1) * size])
    }

    /// Sets state number `index`.
    ///
    /// # Panics
    /// As [`Self::get`].
    #[inline(always)]
    pub fn set<S: Pod>(&mut self, index: usize, state: &S) {
        let size = size_of::<S>();
        let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut self.words);
        bytes[index * size..(index + 1) * size].copy_from_slice(bytemuck::bytes_of(state));
    }

    /// Bytes of a state.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes of `count` states from number `first`.
    pub fn bytes(&self, first: usize, count: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[first * self.size..(first + count) * self.size]
    }

    /// Writes whole states from number `first` on.
    pub fn write(&mut self, first: usize, bytes: &[u8]) {
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        all[first * self.size..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Prefetches the first cache line of state number `index`, which may be out of range.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        prefetch_at(self.words.as_ptr().cast::<u8>().wrapping_add(index * self.size));
    }
}
