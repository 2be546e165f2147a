//! Arrays that an object owns and overwrites: Python sees them without a copy.

use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// An array of NumPy whose memory Rust allocated. Python holds `view`, whose shape and flags it may change without harm; `array` is ours.
/// NumPy cannot resize either, since neither owns the memory.
pub struct Buffer<T> {
    array: Py<PyArrayDyn<T>>,
    view: Py<PyArrayDyn<T>>,
}

impl<T: Element + Copy + Default> Buffer<T> {
    /// Zeros of this shape.
    ///
    /// # Errors
    /// `MemoryError` if the memory is not there.
    pub fn zeros(py: Python<'_>, shape: &[usize]) -> PyResult<Self> {
        let len = shape.iter().try_fold(1_usize, |len, &size| len.checked_mul(size));
        let mut data: Vec<T> = Vec::new();
        let reserved = len.is_some_and(|len| data.try_reserve_exact(len).is_ok());
        let Some(len) = len.filter(|_| reserved) else {
            return Err(PyMemoryError::new_err(format!("no memory for an array of shape {shape:?}")));
        };
        data.resize(len, T::default());
        let flat = PyArray1::from_vec(py, data);
        Ok(Self { array: flat.reshape(shape)?.unbind(), view: flat.reshape(shape)?.unbind() })
    }

    /// What Python sees.
    pub fn view<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<T>> {
        self.view.bind(py).clone()
    }

    /// Calls `work` with the elements.
    ///
    /// # Errors
    /// `RuntimeError` where another extension module in Rust holds the array.
    pub fn write<R>(&self, py: Python<'_>, work: impl FnOnce(&mut [T]) -> R) -> PyResult<R> {
        let mut array = self.array.bind(py).try_readwrite()?;
        Ok(work(array.as_slice_mut()?))
    }
}
