//! Do these tests see a missing barrier? Each barrier is taken away in turn, and the searches must then differ.

use super::host_device::HostDevice;
use super::scenario::{Limit, Scenario, both};
use super::{Algorithm, GAMES, config, scenario};

/// A search in which every barrier but those of single kernels matters.
fn scenarios() -> Vec<Scenario> {
    let gumbel = scenario(GAMES[1], config(Algorithm::Gumbel, 40, 3, true));
    let deep = scenario(("tic_tac_toe", "", &[0, 2, 4]), config(Algorithm::Puct, 120, 4, true));
    let go = scenario(GAMES[5], config(Algorithm::Gumbel, 40, 3, true));
    let dice = scenario(GAMES[8], config(Algorithm::Puct, 40, 1, true));
    vec![
        Scenario { limit: Limit::Nodes(9), ..gumbel },
        Scenario { limit: Limit::Nodes(20), ..deep },
        go,
        dice,
    ]
}

#[test]
fn without_a_barrier_results_differ() {
    let list = std::env::var("BARRIERS").unwrap_or("2".into());
    for barrier in list.split(',') {
        for scenario in scenarios() {
            let device = HostDevice::new(1).with_define("VZ_WITHOUT_BARRIER", barrier);
            let same = std::panic::catch_unwind(|| {
                let [right, found] = both(&scenario, device);
                right == found
            });
            println!("barrier {barrier} {}: {same:?}", scenario.name);
        }
    }
}
