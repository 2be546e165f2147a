//! Launches that are captured and launched again, as a CUDA graph.

use super::module::Arguments;
use libloading::Library;
use std::sync::Weak;
use vecaz::device::LaunchShape;

/// A node of a graph: a launch with its arguments' bytes, or work of a host network.
pub enum CapturedNode {
    Launch {
        library: Weak<Library>,
        name: String,
        kernel: &'static str,
        shape: LaunchShape,
        arguments: Arguments,
    },
    Work(Box<dyn Fn() + Send>),
}

/// What [`HostDevice`] has captured. As on a GPU it does not keep the programs that it launches, and is to go before they do.
pub struct HostGraph(pub Vec<CapturedNode>);

impl Drop for HostGraph {
    fn drop(&mut self) {
        let goes_late = |step: &CapturedNode| matches!(step, CapturedNode::Launch { library, .. } if library.strong_count() == 0);
        assert!(
            !self.0.iter().any(goes_late) || std::thread::panicking(),
            "a graph outlives a program that it launches"
        );
    }
}
