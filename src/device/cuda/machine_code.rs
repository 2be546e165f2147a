//! The machine code of a program: compiled, or taken from the store.

use super::compile::{CompileTarget, Compiler};
use super::driver::failure;
use crate::config::DeviceName;
use crate::device::interface::Program;
use crate::device::source::{FOLDER_VARIABLE, SourceFolder};
use crate::device::store::Store;
use crate::error::Result;
use std::io::Write;
use std::sync::Once;

/// The machine code of `program` for compute capability `capability` (90 is 9.0), from `store`, or compiled and stored. `VECAZ_KERNELS`
/// may name a folder with other kernel sources. Needs no GPU; `device` is named in errors.
///
/// # Errors
/// [`crate::Error::Device`] where there is no compiler, it is too new for such a GPU, or the program does not compile; as
/// [`SourceFolder::replace_headers`].
pub fn code_for(
    program: &Program,
    device: DeviceName,
    capability: u32,
    store: Option<&Store>,
) -> Result<Vec<u8>> {
    let replaced = SourceFolder::of_environment().map(|sources| {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            // stderr may be closed.
            let _ = writeln!(
                std::io::stderr(),
                "##### {FOLDER_VARIABLE}: kernels are compiled from {}, not from the sources in this program #####",
                sources.path().display()
            );
        });
        sources.replace_headers(program)
    });
    let replaced = replaced.transpose()?;
    let program = replaced.as_ref().unwrap_or(program);
    let compiler = Compiler::open(&device.to_string())?;
    let target = CompileTarget::choose(capability, compiler.known()).ok_or_else(|| {
        let name = |c: u32| format!("{}.{}", c / 10, c % 10);
        let (found, oldest) = (name(capability), name(compiler.known().iter().min().copied().unwrap_or(0)));
        let what = format!("the GPU's compute capability {found} is too old; {oldest} or newer is needed");
        failure(device, what)
    })?;
    match store {
        Some(store) => {
            let label = format!("{}-{}", program.game, target.name(program.code));
            store.get_or_make(&label, &compiler.key(program, target), || compiler.compile(program, target))
        }
        None => compiler.compile(program, target),
    }
}
