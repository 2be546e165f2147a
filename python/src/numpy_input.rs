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
    /// Bools.
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

/// Copies the elements of `value`, an array or what `numpy.asarray` makes one of, to `out`. Its shape is one of `shapes`; returns which.
///
/// # Errors
/// `ValueError` with the found and the expected dtype or shape; those of `numpy.asarray`.
pub fn read<T: Element + Copy>(
    what: &str,
    value: &Bound<'_, PyAny>,
    kind: Kind,
    shapes: &[&[usize]],
    out: &mut Vec<T>,
) -> PyResult<usize> {
    let py = value.py();
    let array = match value.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => {
            let made = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,))?;
            made.cast_into::<PyUntypedArray>()?
        }
    };
    let found = array.shape();
    let Some(index) = shapes.iter().position(|&shape| shape == found) else {
        let expected: Vec<String> = shapes.iter().map(|shape| shown(shape)).collect();
        return Err(wrong(what, format!("shape {}", shown(found)), expected.join(" or ")));
    };
    let letter = array.dtype().kind();
    if !kind.letters().as_bytes().contains(&letter) {
        return Err(wrong(
            what,
            format!("dtype {}", array.dtype()),
            format!("{} of shape {}", kind.name(), shown(found)),
        ));
    }
    let array = match array.cast::<PyArrayDyn<T>>() {
        Ok(array) if array.is_c_contiguous() => array.clone(),
        _ => contiguous(&array)?,
    };
    *out = array.to_vec()?;
    Ok(index)
}

/// A contiguous copy of another number format or layout.
fn contiguous<'py, T: Element>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
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
