//! Do these tests see a missing barrier? Each barrier is taken away in turn, and the searches must then differ.

use super::host_device::HostDevice;
use super::scenario::both;
use super::{Algorithm, config, scenario};

#[test]
fn without_a_barrier_results_differ() {
    for barrier in [2] {
        let scenario = scenario(super::GAMES[1], config(Algorithm::Gumbel, 40, 3, true));
        let device = HostDevice::new(1).with_define("VZ_WITHOUT_BARRIER", barrier);
        let [right, found] = both(&scenario, device);
        assert_ne!(right, found, "barrier {barrier} is not needed, or not seen");
    }
}
