//! The limits of memory on Linux, from `/proc` and the mounted control groups.

use super::{FreeMemory, MIB};
use std::fs;
use std::path::{Path, PathBuf};

/// A limit of control groups (version 1) of at least this value means no limit: the kernel writes the largest number of pages.
const UNLIMITED: u64 = 1 << 60;

/// The memory that each limit leaves.
pub(super) fn limits() -> Vec<FreeMemory> {
    all(Path::new("/"))
}

/// Peak resident memory of this process, in bytes; None if the system does not report it.
pub fn peak_bytes() -> Option<u64> {
    kib_of(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The memory that each limit leaves, from the files below `root`. What an allocator has mapped counts as used: a trial of how much it
/// still returns would take the memory of other threads for a moment, which ends the process where they need some.
fn all(root: &Path) -> Vec<FreeMemory> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let limits = read("proc/self/limits");
    let available = kib_of(&read("proc/meminfo"), "MemAvailable:");
    let mut found: Vec<FreeMemory> = available.map(FreeMemory::of_machine).into_iter().collect();
    let status = read("proc/self/status");
    let mappings = [("Max address space", "VmSize:", "-v"), ("Max data size", "VmData:", "-d")];
    found.extend(mappings.into_iter().filter_map(|(name, mapped, option)| {
        let limit = process_limit(&limits, name)?;
        let origin = format!("that ulimit {option} leaves of {} MiB", limit / MIB);
        Some(FreeMemory { bytes: limit.saturating_sub(kib_of(&status, mapped).unwrap_or(0)), origin })
    }));
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    for mount in mounts.lines().filter_map(Mount::parse) {
        for (folder, name) in mount.groups(root, &groups) {
            found.extend(mount.version.limits(&folder).into_iter().map(|(limit, used)| FreeMemory {
                bytes: limit.saturating_sub(used),
                origin: format!("that the control group {name} leaves of {} MiB", limit / MIB),
            }));
        }
    }
    found
}

/// The value of a line such as `VmHWM:  1234 kB`, in bytes.
fn kib_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// The soft limit of a line of `/proc/self/limits`; None if it is unlimited.
fn process_limit(limits: &str, name: &str) -> Option<u64> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The version of a hierarchy of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    /// The limits of one group, each with the bytes in use that cannot be reclaimed.
    fn limits(self, group: &Path) -> Vec<(u64, u64)> {
        let (limits, used, inactive): (&[&str], _, _) = match self {
            Self::V1 => (&["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_inactive_file"),
            Self::V2 => (&["memory.max", "memory.high"], "memory.current", "inactive_file"),
        };
        let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cache = stat.lines().find_map(|line| line.strip_prefix(inactive)?.trim().parse::<u64>().ok());
        let used = number(used).unwrap_or(0).saturating_sub(cache.unwrap_or(0));
        let limits = limits.iter().filter_map(|name| number(name)).filter(|limit| *limit < UNLIMITED);
        limits.map(|limit| (limit, used)).collect()
    }
}

/// A mounted hierarchy of control groups that has memory limits.
struct Mount {
    version: Version,
    /// The mounted group.
    root: PathBuf,
    /// The mount point.
    point: PathBuf,
}

impl Mount {
    /// A line of `/proc/self/mountinfo`; None for other file systems.
    fn parse(line: &str) -> Option<Self> {
        let (mounted, kind) = line.split_once(" - ")?;
        let (mounted, kind): (Vec<&str>, Vec<&str>) =
            (mounted.split(' ').collect(), kind.split(' ').collect());
        let version = match *kind.first()? {
            "cgroup2" => Version::V2,
            "cgroup" if kind.get(2)?.split(',').any(|option| option == "memory") => Version::V1,
            _ => return None,
        };
        Some(Self { version, root: mounted.get(3)?.into(), point: mounted.get(4)?.into() })
    }

    /// The folders of the process's group and its parents in this mount, with the groups' names. `groups` is the text of
    /// `/proc/self/cgroup`, whose paths begin at the root of the hierarchy, or at a root outside of the process's namespace.
    fn groups(&self, root: &Path, groups: &str) -> Vec<(PathBuf, String)> {
        let of_line = |line: &str| -> Option<PathBuf> {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let is_this = match self.version {
                Version::V1 => controllers.split(',').any(|name| name == "memory"),
                Version::V2 => controllers.is_empty(),
            };
            is_this.then(|| path.into())
        };
        let Some(group) = groups.lines().find_map(of_line) else { return Vec::new() };
        let is_seen = !group.components().any(|part| part.as_os_str() == "..");
        let below = group.strip_prefix(&self.root).ok().filter(|_| is_seen).unwrap_or(Path::new(""));
        let mounted = root.join(self.point.strip_prefix("/").unwrap_or(&self.point));
        let name = |below: &Path| Path::new("/").join(below).display().to_string();
        below.ancestors().map(|below| (mounted.join(below), name(below))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max data size             unlimited            unlimited            bytes
Max address space         419430400            unlimited            bytes
";
    const STATUS: &str = "Name: vecaz\nVmSize:\t  102400 kB\nVmData:\t   25600 kB\n";
    const MEMORY: &str = "MemTotal: 9000000 kB\nMemAvailable:   2048000 kB\n";

    /// A machine whose files have these contents.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        folder
    }

    /// MiB left and their origin, in the order found.
    fn found(files: &[(&str, &str)]) -> Vec<(u64, String)> {
        let machine = machine(files);
        all(machine.path()).into_iter().map(|free| (free.bytes / MIB, free.origin)).collect()
    }

    #[test]
    fn the_limits_of_the_process_count_minus_the_mapped_memory() {
        let files = [("proc/meminfo", MEMORY), ("proc/self/limits", LIMITS), ("proc/self/status", STATUS)];
        let space = (300, "that ulimit -v leaves of 400 MiB".to_string());
        assert_eq!(found(&files), [(2000, "that are free".to_string()), space.clone()]);
        let both =
            LIMITS.replace("Max data size             unlimited", "Max data size             104857600");
        let data = (75, "that ulimit -d leaves of 100 MiB".to_string());
        assert_eq!(found(&[("proc/self/limits", &both), ("proc/self/status", STATUS)]), [space, data]);
        let full = LIMITS.replace("419430400", "104857600");
        let none = [(0, "that ulimit -v leaves of 100 MiB".to_string())];
        assert_eq!(found(&[("proc/self/limits", &full), ("proc/self/status", STATUS)]), none);
        assert_eq!(found(&[]), [], "nothing is reported");
    }

    #[test]
    fn control_groups_of_version_2_count_with_their_parents() {
        let files = [
            ("proc/self/cgroup", "0::/a/b\n"),
            (
                "proc/self/mountinfo",
                "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
            ),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.high", "209715200\n"),
            ("sys/fs/cgroup/a/b/memory.current", "83886080\n"),
            ("sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_anon 7\ninactive_file 20971520\n"),
            ("sys/fs/cgroup/a/memory.max", "104857600\n"),
            ("sys/fs/cgroup/a/memory.high", "max\n"),
            ("sys/fs/cgroup/a/memory.current", "94371840\n"),
            ("sys/fs/cgroup/a/memory.stat", "inactive_file 0\n"),
        ];
        let [own, parent] = [
            (140, "that the control group /a/b leaves of 200 MiB".to_string()),
            (10, "that the control group /a leaves of 100 MiB".to_string()),
        ];
        assert_eq!(found(&files), [own, parent]);
    }

    #[test]
    fn control_groups_of_version_1_count_with_their_parents() {
        let files = [
            ("proc/self/cgroup", "9:name=systemd:/x\n4:hugetlb,memory:/a/b\n0::/\n"),
            (
                "proc/self/mountinfo",
                "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
                 35 31 0:32 / /cg/memory rw - cgroup cgroup rw,hugetlb,memory\n\
                 41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("cg/memory/a/b/memory.limit_in_bytes", "419430400\n"),
            ("cg/memory/a/b/memory.usage_in_bytes", "104857600\n"),
            ("cg/memory/a/b/memory.stat", "inactive_file 999\ntotal_inactive_file 52428800\n"),
            ("cg/memory/a/memory.limit_in_bytes", "314572800\n"),
            ("cg/memory/a/memory.usage_in_bytes", "104857600\n"),
            ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let [own, parent] = [
            (350, "that the control group /a/b leaves of 400 MiB".to_string()),
            (200, "that the control group /a leaves of 300 MiB".to_string()),
        ];
        assert_eq!(found(&files), [own, parent]);
    }

    /// In a container the mount shows the container's group as its root, and the process may see its path from outside.
    #[test]
    fn the_group_of_a_container_is_the_root_of_its_mount() {
        for group in ["0::/docker/c1\n", "0::/\n", "0::/../elsewhere\n"] {
            let root = if group == "0::/docker/c1\n" { "/docker/c1" } else { "/" };
            let mount = format!("30 23 0:26 {root} /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
            let files = [
                ("proc/self/cgroup", group),
                ("proc/self/mountinfo", mount.as_str()),
                ("sys/fs/cgroup/memory.max", "104857600\n"),
                ("sys/fs/cgroup/memory.current", "1048576\n"),
            ];
            let expected = (99, "that the control group / leaves of 100 MiB".to_string());
            assert_eq!(found(&files), [expected], "{group}");
        }
    }
}
