//! Arrays that an object owns and overwrites: Python sees them without a copy.

use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// An array of NumPy whose memory Rust allocated. Python holds `view` and, as its base, the flat array that it was made of. It may change the
/// shape, dtype and flags of both without harm, since Rust writes through `array`, which Python never gets. NumPy cannot resize any of the
/// three: none owns the memory.
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

    /// The elements, to be overwritten.
    ///
    /// # Errors
    /// None: the array is contiguous and aligned.
    pub fn elements<'a>(&'a mut self, py: Python<'a>) -> PyResult<&'a mut [T]> {
        // SAFETY: the array is that of `zeros`, with its dtype, shape and memory: nothing else has a reference to it. It is borrowed mutably, so
        // that Rust makes no other slice of this memory meanwhile. Python's views of it are only for the calls between two writes.
        Ok(unsafe { self.array.bind(py).as_slice_mut() }?)
    }
}
