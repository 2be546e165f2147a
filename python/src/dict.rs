//! Dicts for Python.

/// A dict with the names as keys: `dict!(py, name = value, ...)`, in a function that returns `PyResult`.
macro_rules! dict {
    ($py:expr, $($key:ident = $value:expr),+ $(,)?) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item(stringify!($key), $value)?;)+
        dict
    }};
}

pub(crate) use dict;
