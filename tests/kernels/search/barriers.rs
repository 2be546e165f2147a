//! Do these tests see a missing barrier? Some barriers are taken away, one at a time, and the searches must then differ.
//!
//! The others are left in peace: without some, kernels run over what is no tree; without others, results stay the same here,
//! since the emulator's shuffles order memory too, which those of a device do not promise.

use super::networks::in_one_launch;
use super::scenario::{Limit, Scenario, both};
use super::{GAMES, GUMBEL, PUCT, config, scenario};
use crate::host_device::HostDevice;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn connect_four() -> Scenario {
    scenario(GAMES[1], config(GUMBEL, 40, 3))
}

fn full_of_proofs() -> Scenario {
    let base = scenario(("tic_tac_toe", "", &[0, 2, 4]), config(PUCT, 120, 4));
    Scenario { limit: Limit::Nodes(20), ..base }
}

fn go() -> Scenario {
    scenario(GAMES[5], config(GUMBEL, 40, 3))
}

fn dice() -> Scenario {
    scenario(GAMES[8], config(PUCT, 40, 1))
}

/// True where `work` finds what it should; a kernel that fails finds nothing.
fn holds(work: impl FnOnce() -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(false)
}

#[test]
fn without_a_barrier_results_differ() {
    let needed: [(i32, fn() -> Scenario); 7] = [
        (1, dice),
        (2, connect_four),
        (7, full_of_proofs),
        (8, full_of_proofs),
        (10, dice),
        (12, go),
        (15, go),
    ];
    let mut unseen = Vec::new();
    for (barrier, scenario) in needed {
        let agree = |barrier: i32| {
            holds(|| {
                let [right, found] = both(&scenario(), HostDevice::new(1).without_barrier(barrier));
                right == found
            })
        };
        assert!(agree(0), "{:?}", scenario());
        if agree(barrier) {
            unseen.push(barrier);
        }
    }
    assert!(unseen.is_empty(), "nothing differs without the barriers {unseen:?}");
}

#[test]
fn without_the_barrier_after_selection_results_differ() {
    let scenario = scenario(GAMES[1], config(PUCT, 60, 3));
    let right = in_one_launch(&scenario, HostDevice::new(1));
    let device = HostDevice::new(1).without_barrier(20);
    assert!(!holds(|| in_one_launch(&scenario, device) == right));
}
