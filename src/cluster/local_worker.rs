//! A worker in the learner's process. In strict order the learner's own games take the same way as those of all workers.

use super::run_shared::RunShared;
use super::server::{Failure, RETRY_INTERVAL, Server};
use super::worker::{FoundRun, Worker};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::registry::Registry;
use crate::stop::Stop;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// The worker's name in messages.
const NAME: &str = "the learner's own";
/// The number of the signal that ends the worker.
const SIGTERM: i32 = 15;
/// Time between two polls for the published run.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A worker on a thread of this process.
pub(super) struct LocalWorker {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<Error>>>,
}

impl LocalWorker {
    /// Starts the thread, which begins to play as soon as the run is published.
    pub(super) fn start(
        server: &Server,
        registry: &Registry,
        config: &Config,
        shared: &Arc<RunShared>,
    ) -> Result<Self> {
        let (stop, failure) = (Stop::default(), Arc::<Mutex<Option<Error>>>::default());
        let work = WorkerInputs {
            server: server.clone(),
            registry: registry.clone(),
            devices: [("run.device", &config.run.device), ("net.device", &config.network_devices())]
                .map(|(key, devices)| (key, Some(devices.to_string()))),
            shared: shared.clone(),
            stop: stop.clone(),
        };
        let failed = failure.clone();
        let thread = thread::Builder::new().name("own games".into()).spawn(move || {
            if let Err(error) = work.run() {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        });
        let thread = thread.map_err(|e| Error::unsupported("a thread for games", e.to_string()))?;
        Ok(Self { stop, thread: Some(thread), failure })
    }

    /// Reports the failure that has ended the worker, before the end of the run.
    ///
    /// # Errors
    /// That failure, once; [`Error::Unsupported`] after a panic.
    pub(super) fn check(&self) -> Result<()> {
        let has_ended = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None if has_ended => {
                Err(Error::unsupported("self-play of the learner", "its thread has panicked"))
            }
            None => Ok(()),
        }
    }
}

impl Drop for LocalWorker {
    fn drop(&mut self) {
        self.stop.request(SIGTERM);
        if let Some(thread) = self.thread.take() {
            // The thread has reported its panic.
            let _ = thread.join();
        }
    }
}

/// Inputs of the thread.
struct WorkerInputs {
    server: Server,
    registry: Registry,
    devices: [(&'static str, Option<String>); 2],
    shared: Arc<RunShared>,
    stop: Stop,
}

impl WorkerInputs {
    fn run(self) -> Result<()> {
        while self.stop.cause().is_none() {
            let found = match self.shared.is_published.load(Ordering::Relaxed) {
                true => FoundRun::read(&self.server),
                false => Ok(None),
            };
            match found {
                Ok(Some(run)) => {
                    let worker = Worker::of(run, self.server, &self.registry, &self.devices)?;
                    let threads = rayon::current_num_threads();
                    return worker.play(NAME, threads, &self.stop, &mut |_| ()).map(drop);
                }
                // The run is not published yet, or the server has lost it and the learner publishes it again.
                Ok(None) => sleep(POLL_INTERVAL),
                Err(Failure::Transient(_) | Failure::Busy(_)) => sleep(RETRY_INTERVAL),
                Err(failure) => return Err(self.server.error(&failure)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_on_the_thread_is_an_error() {
        let thread = thread::spawn(|| panic!("the rules of a game"));
        let worker = LocalWorker { stop: Stop::default(), thread: Some(thread), failure: Arc::default() };
        while !worker.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            sleep(POLL_INTERVAL);
        }
        assert!(matches!(worker.check(), Err(Error::Unsupported { why, .. }) if why.contains("panicked")));
    }
}
