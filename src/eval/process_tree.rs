//! A process and those that it starts, which are killed together: a process group on Unix, a job object on Windows. Neither gets the Ctrl-C
//! of the terminal, which is for this program. On Unix a process that has left its group is not in the tree.

use std::io::Result;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Polling interval for the exit of a process.
const EXIT_INTERVAL: Duration = Duration::from_millis(5);

/// The pipes of a process.
pub(super) type Pipes = (ChildStdin, ChildStdout, ChildStderr);

/// The process and those that it starts.
pub(super) struct ProcessTree(platform::Child);

impl ProcessTree {
    /// Starts `command` with pipes, of which None is returned if one is missing.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn start(mut command: Command) -> Result<(Self, Option<Pipes>)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = platform::start(command)?;
        let pipes = platform::pipes(&mut child);
        Ok((Self(child), pipes))
    }

    /// Waits for the process to exit, at most for `time`.
    pub(super) fn wait(&mut self, time: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if start.elapsed() < time => sleep(EXIT_INTERVAL),
                _ => return None,
            }
        }
    }

    /// Kills all processes that are left.
    pub(super) fn kill(mut self) {
        platform::kill(&mut self.0);
    }
}

#[cfg(unix)]
mod platform {
    use super::Pipes;
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::io::Result;
    use std::os::unix::process::CommandExt;
    pub(super) use std::process::Child;
    use std::process::Command;

    pub(super) fn start(mut command: Command) -> Result<Child> {
        command.process_group(0).spawn()
    }

    pub(super) fn pipes(child: &mut Child) -> Option<Pipes> {
        Some((child.stdin.take()?, child.stdout.take()?, child.stderr.take()?))
    }

    /// Every step fails if all processes have exited.
    pub(super) fn kill(child: &mut Child) {
        if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(windows)]
mod platform {
    use super::Pipes;
    use process_wrap::std::{ChildWrapper, CommandWrap, CreationFlags, JobObject};
    use std::io::Result;
    use std::process::Command;
    use windows::Win32::System::Threading::CREATE_NEW_PROCESS_GROUP;

    pub(super) type Child = Box<dyn ChildWrapper>;

    pub(super) fn start(command: Command) -> Result<Child> {
        CommandWrap::from(command).wrap(CreationFlags(CREATE_NEW_PROCESS_GROUP)).wrap(JobObject).spawn()
    }

    pub(super) fn pipes(child: &mut Child) -> Option<Pipes> {
        Some((child.stdin().take()?, child.stdout().take()?, child.stderr().take()?))
    }

    /// Both steps fail if all processes have exited.
    pub(super) fn kill(child: &mut Child) {
        let _ = child.start_kill();
        let _ = child.inner_mut().wait();
    }
}
