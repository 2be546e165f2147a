//! What takes the place of ONNX files in a build without the feature `onnx`: they are refused.

use super::net_file::NetFile;
use super::number_format::NumberFormat;
use crate::error::{Error, Result};
use crate::model::Model;
use std::path::Path;

/// Refuses the format.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn to_bytes(_: &NetFile, _: &Model, _: NumberFormat, _: &Path) -> Result<Vec<u8>> {
    Err(Error::without_feature("writing ONNX", "onnx"))
}
