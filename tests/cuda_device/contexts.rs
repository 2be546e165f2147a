//! Which context is current when something of a GPU is freed, and what may be waited for while a stream is captured.

use super::{GOOD, SHAPE, count, driver, loaded, numbers, program};
use std::thread;
use vecaz::device::cuda::CudaDevice;
use vecaz::device::{Arg, Device};

/// Does `work` on a thread that has no context yet.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().expect("no panic"))
}

/// A graph of one launch.
fn recorded(device: &CudaDevice) -> <CudaDevice as Device>::Graph {
    device.begin_capture().expect("begun");
    device.launch("crash", SHAPE, &[]).expect("recorded");
    device.end_capture().expect("recorded")
}

#[test]
fn everything_is_freed_on_a_thread_that_has_no_context() {
    let driver = driver();
    let device = loaded(None);
    let free = device.free_bytes().expect("known");
    let buffer = device.alloc(1 << 12).expect("memory");
    assert_eq!(device.free_bytes().expect("known"), free - (1 << 12));
    elsewhere(|| drop(buffer));
    assert_eq!(count(&driver, "driver_misuses"), 0, "a buffer");
    assert_eq!(device.free_bytes().expect("known"), free, "it is free again, and no later call fails for it");
    let graph = recorded(&device);
    elsewhere(|| drop(graph));
    assert_eq!((count(&driver, "driver_misuses"), count(&driver, "driver_graphs")), (0, 0), "a graph");
    let pinned = device.pinned(64).expect("memory");
    elsewhere(|| drop(pinned));
    assert_eq!(count(&driver, "driver_misuses"), 0, "page-locked memory");
    let program = device.module(&program(GOOD)).expect("loaded");
    elsewhere(|| drop(program));
    assert_eq!(count(&driver, "driver_misuses"), 0, "a program");
    elsewhere(|| drop(device));
}

#[test]
fn everything_is_freed_where_another_gpu_is_current() {
    let driver = driver();
    drop(loaded(None));
    let [first, second] = [0, 1].map(|number| {
        let mut device = CudaDevice::open(number, None).expect("opened");
        device.load(&program(GOOD)).expect("loaded");
        device
    });
    let (buffer, graph, pinned) =
        (first.alloc(64).expect("memory"), recorded(&first), first.pinned(64).expect("memory"));
    let make_current = || second.free_bytes().map(drop).expect("known");
    make_current();
    drop(buffer);
    assert_eq!(count(&driver, "driver_misuses"), 0, "a buffer");
    make_current();
    drop(graph);
    assert_eq!((count(&driver, "driver_misuses"), count(&driver, "driver_graphs")), (0, 0), "a graph");
    make_current();
    drop(pinned);
    assert_eq!(count(&driver, "driver_misuses"), 0, "page-locked memory");
    make_current();
    drop(first);
}

#[test]
fn a_program_goes_while_another_stream_of_its_gpu_is_captured() {
    let _driver = driver();
    let (trains, plays) = (loaded(None), loaded(None));
    let buffer = trains.alloc(64).expect("memory");
    let arguments = [Arg::Buffer(&buffer, 0), Arg::U32(7), Arg::I32(-1), Arg::U64(0), Arg::F32(0.0)];
    trains.begin_capture().expect("begun");
    trains.launch("record", SHAPE, &arguments).expect("recorded");
    elsewhere(|| drop(plays));
    trains.launch("record", SHAPE, &arguments).expect("recorded");
    let graph = trains.end_capture().expect("nothing has spoilt it");
    trains.launch_graph(&graph).expect("launched");
    assert_eq!(numbers(&trains, &buffer), [7, u32::MAX, 0]);
}
