//! Many machines: what a worker sends, and runs of a learner with workers over a Redis server that the tests start. Without a
//! redis-server those are skipped, and fail under VECAZ_REQUIRE_REDIS=1.

#[path = "cluster/chunks.rs"]
mod chunks;
#[cfg(unix)]
#[path = "cluster/evaluation.rs"]
mod evaluation;
#[path = "cluster/poll_merger.rs"]
mod poll_merger;
#[cfg(unix)]
#[path = "cluster/weights.rs"]
mod weights;
#[path = "cluster/play.rs"]
mod play;
#[cfg(unix)]
#[path = "cluster/failures.rs"]
mod failures;
#[cfg(unix)]
#[path = "cluster/memory.rs"]
mod memory;
#[cfg(unix)]
#[path = "cluster/mutated.rs"]
mod mutated;
#[cfg(unix)]
#[path = "cluster/presence.rs"]
mod presence;
#[cfg(unix)]
#[path = "cluster/refused.rs"]
mod refused;
#[cfg(unix)]
#[path = "cluster/runs.rs"]
mod runs;
#[cfg(unix)]
#[path = "cluster/sentences.rs"]
mod sentences;
#[cfg(unix)]
#[path = "cluster/server.rs"]
mod server;
#[cfg(unix)]
#[path = "cluster/strict.rs"]
mod strict;
