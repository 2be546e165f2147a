//! The arrays that every step overwrites, in one allocation: one look at who holds them for all three.

use numpy::{PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PySlice;
use std::ops::Range;

/// Bytes to which each array is aligned.
const ALIGNMENT: usize = 64;
const WORD: usize = size_of::<u64>();

/// Rewards `[N, P]`, ends of games `[N]` and players to move `[N]`. Python sees them without a copy.
pub struct StepBuffer {
    memory: Py<PyArray1<u64>>,
    rewards: Range<usize>,
    terminated: Range<usize>,
    players: Range<usize>,
    /// What Python sees.
    pub views: StepViews,
}

/// What Python sees of a [`StepBuffer`].
pub struct StepViews {
    /// `[N, P]`
    pub rewards: Py<PyArrayDyn<f32>>,
    /// `[N]`
    pub terminated: Py<PyArrayDyn<bool>>,
    /// `[N]`
    pub players: Py<PyArrayDyn<i8>>,
}

impl StepBuffer {
    /// Zeros for `n` environments of a game for `p` players.
    ///
    /// # Errors
    /// Those of NumPy.
    pub fn zeros(py: Python<'_>, n: usize, p: usize) -> PyResult<Self> {
        let after = |end: usize, len: usize| {
            let start = end.next_multiple_of(ALIGNMENT);
            start..start + len
        };
        let rewards = after(0, n * p * size_of::<f32>());
        let terminated = after(rewards.end, n);
        let players = after(terminated.end, n);
        let memory = PyArray1::from_vec(py, vec![0; players.end.div_ceil(WORD)]);
        let bytes = memory.call_method1("view", ("u1",))?;
        let view = |range: &Range<usize>, dtype: &str| {
            let part = bytes.get_item(PySlice::new(py, range.start as isize, range.end as isize, 1))?;
            part.call_method1("view", (dtype,))
        };
        let views = StepViews {
            rewards: view(&rewards, "f4")?.call_method1("reshape", (n, p))?.cast_into()?.unbind(),
            terminated: view(&terminated, "?")?.cast_into()?.unbind(),
            players: view(&players, "i1")?.cast_into()?.unbind(),
        };
        Ok(Self { memory: memory.unbind(), rewards, terminated, players, views })
    }

    /// Calls `work` with the rewards `[N, P]` and `ended [N]`, and copies `ended`, then the players that `players_of` the result are, to
    /// what Python sees.
    ///
    /// # Errors
    /// `RuntimeError` where another extension module in Rust holds the arrays.
    pub fn write<R>(
        &self,
        py: Python<'_>,
        ended: &mut [bool],
        work: impl FnOnce(&mut [f32], &mut [bool], &mut dyn FnMut(&[i8])) -> R,
    ) -> PyResult<R> {
        let mut memory = self.memory.bind(py).try_readwrite()?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(memory.as_slice_mut()?);
        let (first, rest) = bytes.split_at_mut(self.terminated.start);
        let (second, third) = rest.split_at_mut(self.players.start - self.terminated.start);
        let players: &mut [i8] = bytemuck::cast_slice_mut(&mut third[..self.players.len()]);
        let rewards = bytemuck::cast_slice_mut(&mut first[self.rewards.clone()]);
        let out = work(rewards, ended, &mut |found| players.copy_from_slice(found));
        second.iter_mut().zip(ended.iter()).for_each(|(to, &ended)| *to = u8::from(ended));
        Ok(out)
    }
}
