//! Named arrays in safetensors files.

use super::number_format::NumberFormat;
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
    serialize_in(path, arrays, metadata, |_| NumberFormat::F32)
}

/// [`serialize_arrays`] with the format of each array's numbers by its name.
///
/// # Errors
/// Also [`Error::Unsupported`] for numbers beyond the range of their format.
pub(super) fn serialize_in(
    path: &Path,
    arrays: &Weights,
    metadata: &str,
    format_of: impl Fn(&str) -> NumberFormat,
) -> Result<Vec<u8>> {
    let refused = |e: safetensors::SafeTensorError| Error::format(path, format!("cannot be written: {e}"));
    let mut encoded: Vec<(&String, &[usize], Dtype, Vec<u8>)> = Vec::with_capacity(arrays.len());
    for (name, Array { shape, data }) in arrays {
        let format = format_of(name);
        encoded.push((name, shape, dtype(format), format.encode(name, data)?));
    }
    let views: Vec<(&String, TensorView<'_>)> = encoded
        .iter()
        .map(|(name, shape, dtype, bytes)| Ok((*name, TensorView::new(*dtype, shape.to_vec(), bytes)?)))
        .collect::<std::result::Result<_, _>>()
        .map_err(refused)?;
    let metadata = HashMap::from([(KEY.to_string(), metadata.to_string())]);
    safetensors::serialize(views, Some(metadata)).map_err(refused)
}

fn dtype(format: NumberFormat) -> Dtype {
    match format {
        NumberFormat::F32 => Dtype::F32,
        NumberFormat::Bf16 => Dtype::BF16,
        NumberFormat::F16 => Dtype::F16,
    }
}

/// Maximum size of a file of weights, in bytes.
pub(super) const MAX_BYTES: u64 = 1 << 32;

/// Reads a file that [`save_arrays`] wrote.
///
/// # Errors
/// [`Error::Io`] where the file cannot be read, [`Error::Format`] where it is cut short, damaged or not one of vecaz.
pub fn load_arrays(path: &Path) -> Result<(Weights, String)> {
    parse_arrays(path, &read(path)?)
}

/// [`load_arrays`] for bytes in memory; errors name `path`.
///
/// # Errors
/// [`Error::Format`].
pub fn parse_arrays(path: &Path, bytes: &[u8]) -> Result<(Weights, String)> {
    let (file, metadata) = open(path, bytes)?;
    let metadata = metadata.ok_or_else(|| Error::format(path, "a safetensors file, but not one of vecaz"))?;
    Ok((widened(path, &file, |_| true)?, metadata))
}

/// The bytes of the file `path`.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    read_regular(path, MAX_BYTES).map_err(|e| Error::io("reading", path, e))
}

/// The tensors of any safetensors file whose names `wanted` accepts, in f32, and its metadata for vecaz; errors name `path`.
///
/// # Errors
/// [`Error::Format`] for a file that is cut short or damaged, and for numbers other than f32, f16 and bf16.
pub(super) fn parse_tensors(
    path: &Path,
    bytes: &[u8],
    wanted: impl Fn(&str) -> bool,
) -> Result<(Weights, Option<String>)> {
    let (file, metadata) = open(path, bytes)?;
    Ok((widened(path, &file, wanted)?, metadata))
}

/// The file in `bytes` and its metadata for vecaz.
fn open<'a>(path: &Path, bytes: &'a [u8]) -> Result<(SafeTensors<'a>, Option<String>)> {
    let damaged = |e: safetensors::SafeTensorError| {
        let what = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        Error::format(path, format!("not a whole safetensors file ({what})"))
    };
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let metadata = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    Ok((file, metadata.cloned()))
}

/// The tensors whose names `wanted` accepts, in f32.
fn widened(path: &Path, file: &SafeTensors<'_>, wanted: impl Fn(&str) -> bool) -> Result<Weights> {
    let mut arrays = Weights::new();
    for (name, view) in file.iter().filter(|(name, _)| wanted(name)) {
        let formats = [NumberFormat::F32, NumberFormat::Bf16, NumberFormat::F16];
        let Some(format) = formats.into_iter().find(|format| dtype(*format) == view.dtype()) else {
            let what = format!("tensor {name} holds {:?}, expected F32, BF16 or F16", view.dtype());
            return Err(Error::format(path, what));
        };
        let data = format.decode(view.data());
        arrays.insert(name.to_string(), Array { shape: view.shape().to_vec(), data });
    }
    Ok(arrays)
}
