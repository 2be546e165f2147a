//! Arrays that come from Python, checked and copied: a thread of Python may change its arrays while vecaz works.

use crate::errors::wrong;
use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The kinds of numbers that an array may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers of any size.
    Integers,
    /// Floats of any size.
    Floats,
    /// Bools, which [`read_bools`] reads.
    Bools,
}

impl Kind {
    /// NumPy's letters of these dtypes.
    fn letters(self) -> &'static str {
        match self {
            Self::Integers => "iu",
            Self::Floats => "f",
            Self::Bools => "b",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Integers => "integers",
            Self::Floats => "float32",
            Self::Bools => "bool",
        }
    }
}

/// The numbers of `value`, an array or what `numpy.asarray` makes one of, whose shape is one of `shapes`.
///
/// # Errors
/// `ValueError` with the found and the expected dtype or shape; those of `numpy.asarray`.
pub fn read<T: Element + Copy>(
    what: &str,
    value: &Bound<'_, PyAny>,
    kind: Kind,
    shapes: &[&[usize]],
) -> PyResult<Vec<T>> {
    copied(&checked(what, value, kind, shapes)?)
}

/// The bools of `value`, of shape `[len]`. In an array of NumPy their bytes may be others than 0 and 1, which no bool of Rust may be.
///
/// # Errors
/// Those of [`read`].
pub fn read_bools(what: &str, value: &Bound<'_, PyAny>, len: usize) -> PyResult<Vec<bool>> {
    let py = value.py();
    let array = checked(what, value, Kind::Bools, &[&[len]])?;
    let bytes = array.call_method1(intern!(py, "view"), (intern!(py, "u1"),))?;
    let bytes: Vec<u8> = copied(&bytes.cast_into::<PyUntypedArray>()?)?;
    Ok(bytes.into_iter().map(|byte| byte != 0).collect())
}

/// `value` as an array of one of these shapes, of a dtype of this kind.
fn checked<'py>(
    what: &str,
    value: &Bound<'py, PyAny>,
    kind: Kind,
    shapes: &[&[usize]],
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = value.py();
    let array = match value.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => {
            let made = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,))?;
            made.cast_into::<PyUntypedArray>()?
        }
    };
    let found = array.shape();
    if !shapes.contains(&found) {
        let expected: Vec<String> = shapes.iter().map(|shape| shown(shape)).collect();
        return Err(wrong(what, format!("shape {}", shown(found)), expected.join(" or ")));
    }
    if !kind.letters().as_bytes().contains(&array.dtype().kind()) {
        return Err(wrong(
            what,
            format!("dtype {}", array.dtype()),
            format!("{} of shape {}", kind.name(), shown(found)),
        ));
    }
    Ok(array)
}

/// The elements, row by row, as numbers of the type `T`.
fn copied<T: Element + Copy>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<T>> {
    Ok(match array.cast::<PyArrayDyn<T>>() {
        Ok(array) if array.is_c_contiguous() && array.is_aligned() => array.to_vec()?,
        _ => converted::<T>(array)?.to_vec()?,
    })
}

/// A contiguous and aligned copy of another number format or layout.
fn converted<'py, T: Element>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let py = array.py();
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "order"), "C")?;
    let made = array.call_method(intern!(py, "astype"), (T::get_dtype(py),), Some(&keywords))?;
    Ok(made.cast_into::<PyArrayDyn<T>>()?)
}

/// A shape as Python writes it.
fn shown(shape: &[usize]) -> String {
    match shape {
        [only] => format!("({only},)"),
        sizes => format!("({})", sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
