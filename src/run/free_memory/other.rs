//! The free memory of the machine on macOS, Windows and other systems. Limits of a process or of a container are not read.

use super::FreeMemory;
use sysinfo::{MemoryRefreshKind, System};

/// The memory that the machine has free, with that of files which it keeps only as long as nobody needs the memory.
pub(super) fn limits() -> Vec<FreeMemory> {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    // 0 of 0 is the answer if the system refuses.
    let is_known = system.total_memory() > 0;
    is_known.then(|| FreeMemory::of_machine(system.available_memory())).into_iter().collect()
}

/// None: no safe interface reports the peak of a process.
pub fn peak_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_limit() {
        assert!(matches!(&limits()[..], [free] if free.bytes > 0), "{:?}", limits());
    }
}
