//! Files of a network for other programs.

use super::net_file::{NetFile, checking_network, evaluate};
use super::number_format::NumberFormat;
#[cfg(feature = "onnx")]
use super::onnx;
use crate::error::{Error, Result};
use crate::files::write_atomic;
use clap::ValueEnum;
use std::path::Path;

/// The format of an exported file. The command line takes it by its name, and shows what stands above each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// Named tensors: PyTorch, candle, vecaz
    Safetensors,
    /// A graph: onnxruntime, TensorRT, tract
    Onnx,
}

impl FileFormat {
    /// The ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Onnx => "onnx",
        }
    }

    /// Refuses a format that this build does not have.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn check(self) -> Result<()> {
        match self {
            Self::Onnx if !cfg!(feature = "onnx") => Err(Error::without_feature("writing ONNX", "onnx")),
            Self::Onnx | Self::Safetensors => Ok(()),
        }
    }
}

/// Checks a network with its self-check vectors and writes it to `out`. In safetensors the description of its layers is added, and the
/// self-check is that of the weights as they are written.
///
/// # Errors
/// Those of [`NetFile::verify`] and [`NetFile::save`]; [`Error::Unsupported`] for weights beyond the range of `numbers`, and for ONNX in a
/// build without it and of a network that it cannot hold.
pub fn export(mut file: NetFile, out: &Path, format: FileFormat, numbers: NumberFormat) -> Result<NetFile> {
    let model = file.header.net.model()?;
    file.verify(&mut checking_network(&file.header.net, &file.weights)?)?;
    let bytes = match format {
        #[cfg(not(feature = "onnx"))]
        FileFormat::Onnx => return Err(Error::without_feature("writing ONNX", "onnx")),
        #[cfg(feature = "onnx")]
        FileFormat::Onnx => onnx::to_bytes(&file, &model, numbers, out)?,
        FileFormat::Safetensors => {
            let described = serde_json::to_value(&model);
            let described = described.map_err(|e| Error::format(out, format!("cannot be written: {e}")))?;
            file.header.model = Some(described);
            file = rounded(file, numbers)?;
            file.to_bytes_in(numbers, out)?
        }
    };
    write_atomic(out, &bytes)?;
    Ok(file)
}

/// The network with its weights rounded to `numbers`, and the self-check of that.
fn rounded(mut file: NetFile, numbers: NumberFormat) -> Result<NetFile> {
    if numbers == NumberFormat::F32 {
        return Ok(file);
    }
    for (name, array) in &mut file.weights {
        array.data = numbers.decode(&numbers.encode(name, &array.data)?);
    }
    file.check = evaluate(&file.header.net, &file.weights, file.check.obs)?;
    Ok(file)
}
