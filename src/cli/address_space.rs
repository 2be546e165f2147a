//! Starts under limits of the address space (`ulimit -v`) and of private mappings (`ulimit -d`).
//!
//! Allocators map address space ahead of its use: mimalloc 1 GiB with the first allocation, later more, and glibc 64 MiB for each
//! thread. Under a limit just above what they map, the stacks of threads and glibc's own allocations fail, which aborts the process.
//! Both map what is used only if environment variables say so that they read before `main`: the program starts itself again with those.

use crate::error::{Error, Result};

/// The variable with the names, separated by blanks, of those that the program has set for itself alone.
const SET_BY_PROGRAM: &str = "VECAZ_SET_VARIABLES";

/// The least address space in which every command starts or is refused, in MiB.
const MIN_MIB: u64 = 48;

/// Starts the program again with allocators that map nothing ahead, where a limit is set and they are not told so. Returns in all other cases.
///
/// # Errors
/// [`Error::Unsupported`] if the limit is below what the program needs, or the program cannot be started again.
#[cfg(target_os = "linux")]
pub fn start_within_limits() -> Result<()> {
    use rustix::process::{Resource, getrlimit};
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    const SETTINGS: [(&str, &str); 2] = [("MIMALLOC_ARENA_RESERVE", "0"), ("MALLOC_ARENA_MAX", "1")];
    let [space, data] = [Resource::As, Resource::Data].map(|resource| getrlimit(resource).current);
    if let Some(limit) = space.filter(|limit| *limit < MIN_MIB << 20) {
        let why = format!("the program needs {MIN_MIB} MiB at least; raise `ulimit -v`");
        return Err(Error::unsupported(format!("an address space of {} MiB", limit >> 20), why));
    }
    let are_set = SETTINGS.iter().all(|(name, _)| std::env::var_os(name).is_some());
    if are_set || (space.is_none() && data.is_none()) {
        return Ok(());
    }
    let unset: Vec<_> = SETTINGS.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect();
    let names: Vec<&str> = unset.iter().map(|(name, _)| *name).collect();
    let mut arguments = std::env::args_os();
    let mut again = Command::new("/proc/self/exe");
    again
        .arg0(arguments.next().unwrap_or_default())
        .args(arguments)
        .envs(unset)
        .env(SET_BY_PROGRAM, names.join(" "));
    let error = again.exec();
    let names = SETTINGS.map(|(name, value)| format!("{name}={value}")).join(" ");
    Err(Error::unsupported(
        "starting again with the allocators' settings for `ulimit -v`",
        format!("{error}; set {names} in the environment"),
    ))
}

/// The environment's variables that the program has set for itself alone, which other programs must not get.
pub fn variables_to_withhold() -> Vec<String> {
    let Ok(names) = std::env::var(SET_BY_PROGRAM) else { return Vec::new() };
    names.split(' ').chain([SET_BY_PROGRAM]).map(String::from).collect()
}

/// Other systems have no such limits, or allocators that need no settings.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn start_within_limits() -> Result<()> {
    Ok(())
}
