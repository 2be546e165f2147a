//! Named arrays in safetensors files.

use crate::error::{Error, Result};
use crate::files::{read_regular, write_atomic};
use crate::model::{Array, Weights};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::path::Path;

/// The only metadata key. With several keys the bytes of a file would not be deterministic: the format's writer does not order them.
const KEY: &str = "vecaz";

/// Writes arrays and a metadata text to a safetensors file, atomically.
///
/// # Errors
/// [`Error::Io`] where the file cannot be written, [`Error::Format`] where an array's shape is not that of its data.
pub fn save_arrays(path: &Path, arrays: &Weights, metadata: &str) -> Result<()> {
    write_atomic(path, &serialize_arrays(path, arrays, metadata)?)
}

/// The bytes of a file of [`save_arrays`]; errors name `path`.
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

/// Maximum size of a file of weights, in bytes.
const MAX_BYTES: u64 = 1 << 32;

/// Reads a file that [`save_arrays`] wrote.
///
/// # Errors
/// [`Error::Io`] where the file cannot be read, [`Error::Format`] where it is cut short, damaged or not one of vecaz.
pub fn load_arrays(path: &Path) -> Result<(Weights, String)> {
    let bytes = read_regular(path, MAX_BYTES).map_err(|e| Error::io("reading", path, e))?;
    parse_arrays(path, &bytes)
}

/// [`load_arrays`] for bytes in memory; errors name `path`.
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
