//! Kernel sources into shared libraries with the machine's C++ compiler, for the emulator of `host/`.

use libloading::Library;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vecaz::device::Program;

/// No contraction: the results are to be those of Rust to the bit. Nothing is visible to other libraries but what says so.
const FLAGS: [&str; 4] = ["-std=c++17", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden"];

/// How hard the compiler tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For programs that run for less time than their compilation takes.
    Little,
    /// For those that run for longer.
    Much,
}

impl Effort {
    fn flag(self) -> &'static str {
        match self {
            Self::Little => "-O1",
            Self::Much => "-O2",
        }
    }
}

/// What every program includes of the emulator.
const EMULATOR_HEADER: (&str, &str) = ("emulator.hpp", include_str!("host/emulator.hpp"));

/// The emulator's sources, of which emulator.cpp is the one that is compiled.
const EMULATOR: [(&str, &str); 4] = [
    EMULATOR_HEADER,
    ("fibre.hpp", include_str!("host/fibre.hpp")),
    ("products.hpp", include_str!("host/products.hpp")),
    ("emulator.cpp", include_str!("host/emulator.cpp")),
];

/// The names of the kernels in `text`: what follows `VZ_KERNEL`, `VZ_DENSE_KERNEL` or `VZ_BLOCK_KERNEL(threads)` at the
/// beginning of a line.
fn kernels(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let plain = || line.strip_prefix("VZ_KERNEL ").or(line.strip_prefix("VZ_DENSE_KERNEL "));
        let sized = || line.strip_prefix("VZ_BLOCK_KERNEL(")?.split_once(") ").map(|(_, kernel)| kernel);
        let kernel = plain().or_else(sized)?;
        kernel.split('(').next()
    })
}

/// Those of `headers` that `unit` includes, directly or through others: no other changes what is built.
fn included<'a>(unit: &str, headers: &'a [(String, String)]) -> Vec<&'a (String, String)> {
    let names = |text: &str, name: &str| text.contains(&format!("#include \"{name}\""));
    let mut found: Vec<&(String, String)> = Vec::new();
    loop {
        let next = headers.iter().find(|header| {
            let named = || names(unit, &header.0) || found.iter().any(|(_, text)| names(text, &header.0));
            !found.contains(header) && named()
        });
        match next {
            Some(header) => found.push(header),
            None => return found,
        }
    }
}

/// The library of `program` with `emulator_launch`, which calls its kernels, and the code `below` it, built once and kept for as long
/// as nothing changes.
///
/// # Errors
/// What the compiler or the system says.
pub fn library(program: &Program, below: &str, effort: Effort) -> Result<Library, String> {
    let listed = program.headers.iter().filter(|(name, _)| program.source.contains(&format!("\"{name}\"")));
    let table: String = listed
        .flat_map(|(_, text)| kernels(text))
        .map(|name| format!("    emulator::Caller<{name}>::named(\"{name}\"),\n"))
        .collect();
    let exported = match table.as_str() {
        "" => String::new(),
        table => {
            format!("static const emulator::Kernel KERNELS[] = {{\n{table}}};\nEMULATOR_EXPORT(KERNELS)\n")
        }
    };
    let unit = format!(
        "#include \"emulator.hpp\"\n{}\n{exported}#pragma GCC visibility push(default)\n{below}",
        program.source
    );
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let emulator = emulator(&compiler, &program.defines)?;
    let mut hasher = DefaultHasher::new();
    let headers = included(&unit, &program.headers);
    (FLAGS, effort.flag(), &emulator, &compiler, &unit, &headers, &program.defines).hash(&mut hasher);
    let path = built_once(&format!("{}-{:016x}.so", program.game, hasher.finish()), |folder| {
        for (name, text) in headers {
            write(folder, name, text)?;
        }
        write(folder, EMULATOR_HEADER.0, EMULATOR_HEADER.1)?;
        write(folder, "unit.cpp", &unit)?;
        let mut command = compile(&compiler, &program.defines, folder, "unit.cpp");
        finish(command.args(["-shared", effort.flag()]).arg(&emulator))
    })?;
    // SAFETY: the library was compiled from sources here; loading it runs no code of theirs.
    unsafe { Library::new(&path) }.map_err(|e| e.to_string())
}

/// The emulator as an object file that programs are linked with, compiled as those of `defines` say that are the emulator's.
fn emulator(compiler: &str, defines: &[(String, String)]) -> Result<PathBuf, String> {
    let defines: Vec<_> = defines.iter().filter(|(name, _)| name.starts_with("EMULATOR_")).cloned().collect();
    let mut hasher = DefaultHasher::new();
    (FLAGS, EMULATOR, compiler, &defines).hash(&mut hasher);
    built_once(&format!("emulator-{:016x}.o", hasher.finish()), |folder| {
        for (name, text) in EMULATOR {
            write(folder, name, text)?;
        }
        finish(compile(compiler, &defines, folder, "emulator.cpp").args(["-c", Effort::Much.flag()]))
    })
}

/// The file `name` among those that are kept; where it is not there yet, `build` makes it as `built` in the folder that it is given.
fn built_once(name: &str, build: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = kept.join(name);
    // Of several threads that want it, one builds it.
    static AT_WORK: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let at_work = lock(&AT_WORK).entry(path.clone()).or_default().clone();
    let _alone = lock(&at_work);
    if !path.exists() {
        let folder = tempfile::tempdir_in(kept).map_err(|e| e.to_string())?;
        build(folder.path())?;
        std::fs::rename(folder.path().join("built"), &path).map_err(|e| e.to_string())?;
    }
    Ok(path)
}

/// A thread that failed has left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text)).map_err(|e| e.to_string())
}

/// The compiler's command that makes `built` of `source`, both in `folder`, without what it is to make.
fn compile(compiler: &str, defines: &[(String, String)], folder: &Path, source: &str) -> Command {
    let mut command = Command::new(compiler);
    command.args(FLAGS).args(defines.iter().map(|(name, value)| format!("-D{name}={value}")));
    command.arg("-I").arg(folder).arg("-o").arg(folder.join("built")).arg(folder.join(source));
    command
}

fn finish(command: &mut Command) -> Result<(), String> {
    let output = command.output();
    let output = output.map_err(|e| format!("running the C++ compiler {:?}: {e}", command.get_program()))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}
