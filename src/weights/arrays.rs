//! Named arrays in safetensors files.

use crate::error::{Error, Result};
use crate::files::{read_regular, write_atomic};
use crate::model::{Array, Weights};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::path::Path;

/// The one metadata key. One, so that a file's bytes depend on its content alone: the format's writer does not order keys.
const KEY: &str = "vecaz";

/// Writes arrays and a metadata text to a safetensors file, whole or not at all.
///
/// # Errors
/// [`Error::Io`] where the file cannot be written, [`Error::Format`] where an array's shape is not that of its data.
pub fn save_arrays(path: &Path, arrays: &Weights, metadata: &str) -> Result<()> {
    write_atomic(path, &serialize_arrays(path, arrays, metadata)?)
}

/// The bytes of a file of [`save_arrays`]; `path` is named in errors.
///
/// # Errors
/// [`Error::Format`] where an array's shape is not that of its data.
pub fn serialize_arrays(path: &Path, arrays: &Weights, metadata: &str) -> Result<Vec<u8>> {
    let refused = |e: safetensors::SafeTensorError| Error::format(path, format!("cannot be written: {e}"));
    let bytes: Vec<(&String, &[usize], Vec<u8>)> = arrays
        .iter()
        .map(|(name, a)| (name, &a.shape[..], a.data.iter().flat_map(|x| x.to_le_bytes()).collect()))
        .collect();
    let views: Vec<(&String, TensorView<'_>)> = bytes
        .iter()
        .map(|(name, shape, bytes)| Ok((*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes)?)))
        .collect::<std::result::Result<_, _>>()
        .map_err(refused)?;
    let metadata = HashMap::from([(KEY.to_string(), metadata.to_string())]);
    safetensors::serialize(views, Some(metadata)).map_err(refused)
}

/// Bytes that a file of weights may have.
const MAX_BYTES: u64 = 1 << 32;

/// Reads what [`save_arrays`] wrote.
///
/// # Errors
/// [`Error::Io`] where the file cannot be read, [`Error::Format`] where it is cut short, damaged or not one of vecaz.
pub fn load_arrays(path: &Path) -> Result<(Weights, String)> {
    let bytes = read_regular(path, MAX_BYTES).map_err(|e| Error::io("reading", path, e))?;
    parse_arrays(path, &bytes)
}

/// As [`load_arrays`], for bytes at hand; `path` is named in errors.
///
/// # Errors
/// [`Error::Format`].
pub fn parse_arrays(path: &Path, bytes: &[u8]) -> Result<(Weights, String)> {
    let damaged = |e: safetensors::SafeTensorError| {
        let what = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        Error::format(path, format!("not a whole safetensors file ({what})"))
    };
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let metadata = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let metadata = metadata.ok_or_else(|| Error::format(path, "a safetensors file, but not one of vecaz"))?;
    let mut arrays = Weights::new();
    for (name, view) in file.iter() {
        if view.dtype() != Dtype::F32 {
            let what = format!("tensor {name} holds {:?}, expected F32", view.dtype());
            return Err(Error::format(path, what));
        }
        let (numbers, _) = view.data().as_chunks::<4>();
        let data = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        arrays.insert(name.to_string(), Array { shape: view.shape().to_vec(), data });
    }
    Ok((arrays, metadata.clone()))
}
