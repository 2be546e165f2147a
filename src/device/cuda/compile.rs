//! Kernel sources -> machine code for one architecture, by NVRTC.

use super::libraries::CudaLibrary;
use crate::device::interface::{GpuCode, Program};
use crate::error::{Error, Result};
use cudarc::nvrtc::sys;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

/// Lines of the compiler's log that an error repeats.
const LOG_LINES: usize = 3;

/// The target of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileTarget {
    /// Machine code for compute capability major * 10 + minor.
    Cubin(u32),
    /// Code for a virtual machine of that capability, which the driver of a newer GPU translates when it loads it.
    Ptx(u32),
}

impl CompileTarget {
    /// The best that the compiler, which knows the capabilities `known`, can do for a GPU of capability `gpu`: machine code
    /// of the highest known capability of the same major number, since a GPU runs that of lower minor numbers; else virtual
    /// code of the highest known. None where the GPU is older than all.
    pub fn choose(gpu: u32, known: &[u32]) -> Option<Self> {
        let fitting = || known.iter().copied().filter(|&k| k <= gpu);
        let same_major = fitting().filter(|k| k / 10 == gpu / 10).max();
        same_major.map(Self::Cubin).or_else(|| fitting().max().map(Self::Ptx))
    }

    /// As the compiler's option names it, for such code.
    pub fn name(self, code: GpuCode) -> String {
        let only = match code {
            GpuCode::Portable => "",
            GpuCode::ArchSpecific => "a",
        };
        match self {
            Self::Cubin(capability) => format!("sm_{capability}{only}"),
            Self::Ptx(capability) => format!("compute_{capability}{only}"),
        }
    }
}

/// NVRTC, loaded.
pub struct Compiler {
    device: String,
    version: (i32, i32),
    known: Vec<u32>,
}

impl Compiler {
    /// The machine's compiler. `device` is named in errors.
    ///
    /// # Errors
    /// As [`CudaLibrary::load`].
    pub fn open(device: &str) -> Result<Self> {
        CudaLibrary::Compiler.load(device)?;
        let failed =
            |what: &str| Error::Device { device: device.into(), what: format!("CUDA's compiler: {what}") };
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the library is loaded; the pointers are to integers of ours.
        let results = unsafe {
            [sys::nvrtcVersion(&mut major, &mut minor), sys::nvrtcGetNumSupportedArchs(&mut count)]
        };
        if results.into_iter().any(|result| result != sys::nvrtcResult::NVRTC_SUCCESS) {
            return Err(failed("it does not report its version"));
        }
        CudaLibrary::NvrtcBuiltins { major, minor }.load(device)?;
        let mut known: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has as many entries as the compiler reported.
        if unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) } != sys::nvrtcResult::NVRTC_SUCCESS {
            return Err(failed("it does not report the architectures it supports"));
        }
        let known = known.into_iter().filter_map(|k| u32::try_from(k).ok()).collect();
        Ok(Self { device: device.into(), version: (major, minor), known })
    }

    /// Capabilities it compiles for.
    pub fn known(&self) -> &[u32] {
        &self.known
    }

    /// Everything that the result of [`Compiler::compile`] depends on: version, options, source, and the text of every header
    /// that the source includes, directly or through others. A change to another header leaves the key as it is.
    pub fn key(&self, program: &Program, target: CompileTarget) -> Vec<u8> {
        format!(
            "nvrtc {}.{}\n{:?}\n{:?}\n{}",
            self.version.0,
            self.version.1,
            options(program, target),
            included(program),
            program.source
        )
        .into_bytes()
    }

    /// Machine code, or for a virtual target PTX with its final 0.
    ///
    /// # Errors
    /// [`Error::Device`] with the game's name and the first lines of the compiler's log.
    pub fn compile(&self, program: &Program, target: CompileTarget) -> Result<Vec<u8>> {
        let unit = TranslationUnit::new(program).map_err(|what| self.failed(program, target, &what))?;
        unit.compile(&options(program, target))
            .map_err(|log| self.failed(program, target, &first_lines(&log)))?;
        let code = match target {
            CompileTarget::Cubin(_) => unit.output(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN),
            CompileTarget::Ptx(_) => unit.output(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX),
        };
        code.ok_or_else(|| self.failed(program, target, "the compiler gives no code"))
    }

    fn failed(&self, program: &Program, target: CompileTarget, what: &str) -> Error {
        let what = format!(
            "the kernels of {} do not compile for {}: {what}",
            program.game,
            target.name(program.code)
        );
        Error::Device { device: self.device.clone(), what }
    }
}

/// The headers that `program` includes, directly or through others, in the order of its list. Every `#include "NAME"` counts,
/// whatever `#if` it stands under.
fn included(program: &Program) -> Vec<&(String, String)> {
    let mut found = vec![false; program.headers.len()];
    let mut unread = vec![program.source.as_str()];
    while let Some(text) = unread.pop() {
        for name in text.lines().filter_map(include_of) {
            let header = program.headers.iter().position(|(header, _)| header == name);
            if let Some(index) = header.filter(|&index| !found[index]) {
                found[index] = true;
                unread.push(&program.headers[index].1);
            }
        }
    }
    program.headers.iter().zip(found).filter_map(|(header, found)| found.then_some(header)).collect()
}

/// The file that a line includes by quotes.
fn include_of(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    rest.trim_start().strip_prefix('"')?.split('"').next()
}

/// The compiler's options. No contraction (`--fmad=false`): results are to equal Rust's to the bit.
fn options(program: &Program, target: CompileTarget) -> Vec<String> {
    let mut options = ["--std=c++17", "--fmad=false", "--generate-line-info"].map(String::from).to_vec();
    options.push(format!("--gpu-architecture={}", target.name(program.code)));
    options.extend(program.defines.iter().map(|(name, value)| format!("--define-macro={name}={value}")));
    options
}

/// The first lines of `log` with errors, else its first lines.
fn first_lines(log: &str) -> String {
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
    let errors: Vec<&str> = lines().filter(|line| line.contains("error")).take(LOG_LINES).collect();
    let chosen = if errors.is_empty() { lines().take(LOG_LINES).collect() } else { errors };
    chosen.join("; ")
}

/// A translation unit in the compiler.
struct TranslationUnit(sys::nvrtcProgram);

impl TranslationUnit {
    fn new(program: &Program) -> Result<Self, String> {
        let text = |text: &str| CString::new(text).map_err(|_| "a source holds a zero byte".to_string());
        let source = text(&program.source)?;
        let name = text(&format!("{}.cu", program.game))?;
        let names = program.headers.iter().map(|(name, _)| text(name)).collect::<Result<Vec<_>, _>>()?;
        let texts =
            program.headers.iter().map(|(_, content)| text(content)).collect::<Result<Vec<_>, _>>()?;
        let pointers =
            |strings: &[CString]| strings.iter().map(|s| s.as_ptr()).collect::<Vec<*const c_char>>();
        let (names, texts) = (pointers(&names), pointers(&texts));
        let mut unit = ptr::null_mut();
        // SAFETY: all strings end in 0 and live until the call is over, by which the compiler has copied them; both arrays
        // have as many entries as there are headers.
        let result = unsafe {
            sys::nvrtcCreateProgram(
                &mut unit,
                source.as_ptr(),
                name.as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        if result == sys::nvrtcResult::NVRTC_SUCCESS { Ok(Self(unit)) } else { Err(explain(result)) }
    }

    /// Compiles it; the error is the compiler's log.
    fn compile(&self, options: &[String]) -> Result<(), String> {
        let options = options.iter().map(|o| CString::new(o.as_str())).collect::<Result<Vec<_>, _>>();
        let options = options.map_err(|_| "an option holds a zero byte".to_string())?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the unit is alive; the strings end in 0 and outlive the call.
        let result = unsafe { sys::nvrtcCompileProgram(self.0, pointers.len() as c_int, pointers.as_ptr()) };
        if result == sys::nvrtcResult::NVRTC_SUCCESS {
            return Ok(());
        }
        let log = self.output(sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_string();
        Err(if log.trim().is_empty() { explain(result) } else { log })
    }

    /// The bytes that `get` writes, as many as `size` reports.
    fn output(
        &self,
        size: unsafe fn(sys::nvrtcProgram, *mut usize) -> sys::nvrtcResult,
        get: unsafe fn(sys::nvrtcProgram, *mut c_char) -> sys::nvrtcResult,
    ) -> Option<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the unit is alive and compiled; `bytes` is ours.
        let known = unsafe { size(self.0, &mut bytes) };
        let mut out = vec![0u8; bytes];
        // SAFETY: the compiler writes as many bytes as it has just reported.
        let written = unsafe { get(self.0, out.as_mut_ptr().cast()) };
        let good = [known, written] == [sys::nvrtcResult::NVRTC_SUCCESS; 2];
        (good && !out.is_empty()).then_some(out)
    }
}

impl Drop for TranslationUnit {
    fn drop(&mut self) {
        // SAFETY: the unit is alive and is not used after this.
        let _ = unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}

/// The compiler's text for a result code.
fn explain(result: sys::nvrtcResult) -> String {
    // SAFETY: the compiler gives a constant string that ends in 0 for every number.
    let text = unsafe { CStr::from_ptr(sys::nvrtcGetErrorString(result)) };
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_fit_the_gpu() {
        let known = [75, 80, 86, 89, 90, 100, 120];
        for (gpu, target) in [
            (75, Some(CompileTarget::Cubin(75))),
            (86, Some(CompileTarget::Cubin(86))),
            (87, Some(CompileTarget::Cubin(86))),
            (90, Some(CompileTarget::Cubin(90))),
            (103, Some(CompileTarget::Cubin(100))),
            (110, Some(CompileTarget::Ptx(100))),
            (130, Some(CompileTarget::Ptx(120))),
            (70, None),
        ] {
            assert_eq!(CompileTarget::choose(gpu, &known), target, "{gpu}");
        }
    }

    #[test]
    fn code_of_one_architecture_has_a_name_of_its_own() {
        for (target, code, name) in [
            (CompileTarget::Cubin(90), GpuCode::Portable, "sm_90"),
            (CompileTarget::Cubin(90), GpuCode::ArchSpecific, "sm_90a"),
            (CompileTarget::Ptx(120), GpuCode::Portable, "compute_120"),
        ] {
            assert_eq!(target.name(code), name);
            let program = Program {
                game: "chequers".into(),
                source: String::new(),
                headers: Vec::new(),
                defines: Vec::new(),
                code,
            };
            assert!(options(&program, target).contains(&format!("--gpu-architecture={name}")));
        }
    }

    #[test]
    fn the_key_covers_what_is_included_and_nothing_else() {
        let header = |name: &str, text: &str| (name.to_string(), text.to_string());
        let compiler = Compiler { device: "cuda:0".into(), version: (13, 0), known: vec![90] };
        let key = |headers: &[(String, String)]| {
            let program = Program {
                game: "chequers".into(),
                source: "#include \"a.cuh\"\n".into(),
                headers: headers.to_vec(),
                defines: vec![("SIZE".into(), "8".into())],
                code: GpuCode::Portable,
            };
            compiler.key(&program, CompileTarget::Cubin(90))
        };
        let headers = [
            header("a.cuh", "#pragma once\n  # include \"deep/b.cuh\" // the rules"),
            header("deep/b.cuh", "#include \"a.cuh\"\nint b;"),
            header("other.cuh", "int other;"),
        ];
        let changed = |index: usize| {
            let mut all = headers.clone();
            all[index].1.push('\n');
            key(&all)
        };
        assert_ne!(changed(0), key(&headers));
        assert_ne!(changed(1), key(&headers));
        assert_eq!(changed(2), key(&headers));
    }

    #[test]
    fn errors_are_taken_from_the_log() {
        let log = "go.cu(3): warning: x\n\ngo.cu(4): error: y\n  int z;\n  ^\n1 error detected\n";
        assert_eq!(first_lines(log), "go.cu(4): error: y; 1 error detected");
        assert_eq!(first_lines("a\nb\n\nc\nd\n"), "a; b; c");
    }
}
