//! Starts under limits of the address space (`ulimit -v`) and of private mappings (`ulimit -d`).
//!
//! Allocators map address space ahead of its use: mimalloc 1 GiB with the first allocation, later more, and glibc 64 MiB for each
//! thread. Under a limit just above the mapped size, the stacks of threads and glibc's own allocations fail, which aborts the process.
//! Environment variables, which the allocators read before `main`, limit the mapped size to the used size. Under a limit the program
//! sets these variables and starts itself again.

use crate::error::Result;

/// The variable that holds the names of the variables set by the program for itself, separated by blanks.
const SET_BY_PROGRAM: &str = "VECAZ_SET_VARIABLES";

/// Minimum address space in which every command starts or reports an error, in MiB.
#[cfg(target_os = "linux")]
const MIN_MIB: u64 = 48;

/// Starts the program again with the variables of the allocators, if a limit is set and the variables are not. Returns in all other
/// cases.
///
/// # Errors
/// [`crate::Error::Unsupported`] if the limit is below [`MIN_MIB`], or the program cannot be started again.
#[cfg(target_os = "linux")]
pub fn start_within_limits() -> Result<()> {
    use crate::error::Error;
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

/// The environment variables that the program has set for itself, and that programs which it starts must not inherit.
pub fn variables_to_withhold() -> Vec<String> {
    let Ok(names) = std::env::var(SET_BY_PROGRAM) else { return Vec::new() };
    names.split(' ').chain([SET_BY_PROGRAM]).map(String::from).collect()
}

/// Does nothing: other systems have no such limits, or their allocators need no settings.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn start_within_limits() -> Result<()> {
    Ok(())
}
