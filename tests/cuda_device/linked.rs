//! All-reduce over several GPUs, on a stand-in for NCCL (`nccl.c`).

use super::{count, driver, loaded, sentence, set, stand_in};
use libloading::Library;
use std::sync::{Arc, LazyLock};
use std::thread;
use vecaz::Result;
use vecaz::device::Device;
use vecaz::device::collective::{Collective, DataType, LinkedDevice};
use vecaz::device::cuda::{CudaDevice, linked};

/// The stand-in for NCCL, loaded before its first use.
static NCCL: LazyLock<Library> = LazyLock::new(|| stand_in("libnccl.so.2", "nccl.c"));

type Buffer = <CudaDevice as Device>::Buffer;
type Sums = Arc<dyn Collective<CudaDevice>>;

/// Communicators that exist.
fn ends() -> i32 {
    count(&NCCL, "nccl_ends")
}

/// The driver's first `num` GPUs.
fn gpus(num: u32) -> Vec<CudaDevice> {
    drop(loaded(None));
    (0..num).map(|number| CudaDevice::open(number, None).expect("opened")).collect()
}

/// Both GPUs, linked, each with a buffer of these bytes.
fn pair(bytes: [&[u8]; 2]) -> [(CudaDevice, Sums, Buffer); 2] {
    set(&NCCL, "nccl_link_result", 0i32);
    let mut bytes = bytes.into_iter();
    let linked_devices = linked(gpus(2)).expect("linked").into_iter().map(|LinkedDevice { device, sums }| {
        let bytes = bytes.next().expect("two");
        let mut buffer = device.alloc(bytes.len()).expect("memory");
        device.upload(&mut buffer, 0, bytes).expect("copied");
        (device, sums.expect("of two"), buffer)
    });
    let linked_devices: Vec<_> = linked_devices.collect();
    linked_devices.try_into().ok().expect("two")
}

/// Does `work` on both at the same time.
fn both<T: Send>(
    pair: [(CudaDevice, Sums, Buffer); 2],
    work: impl Fn(&CudaDevice, &Sums, &mut Buffer) -> T + Sync,
) -> [(CudaDevice, Sums, Buffer, T); 2] {
    let work = &work;
    thread::scope(|scope| {
        let threads = pair.map(|(device, sums, mut buffer)| {
            scope.spawn(move || {
                let out = work(&device, &sums, &mut buffer);
                (device, sums, buffer, out)
            })
        });
        threads.map(|thread| thread.join().expect("no panic"))
    })
}

fn bytes_of(device: &CudaDevice, buffer: &Buffer) -> Vec<u8> {
    let mut out = vec![0; buffer.len()];
    device.download(buffer, 0, &mut out).expect("copied");
    out
}

#[test]
fn numbers_of_both_formats_are_summed_on_all() {
    let _driver = driver();
    let floats = [[1.5f32, -2.0, 8.0], [0.25, 4.0, 16.0]];
    let given = [bytemuck::cast_slice(&floats[0]), bytemuck::cast_slice(&floats[1])];
    let groups = count(&NCCL, "nccl_groups");
    let linked = pair(given);
    assert_eq!((ends(), count(&NCCL, "nccl_groups")), (2, groups + 1), "both are connected");
    let done = both(linked, |device, sums, buffer| {
        assert_eq!(sums.size(), 2);
        sums.all_reduce_sum(device, buffer, DataType::F32, 2)?;
        sums.all_reduce_sum(device, buffer, DataType::F32, 1)
    });
    for (rank, (device, sums, buffer, result)) in done.iter().enumerate() {
        result.as_ref().expect("summed");
        assert_eq!(sums.rank(), rank);
        assert_eq!(bytes_of(device, buffer), bytemuck::cast_slice::<f32, u8>(&[3.5, 2.0, floats[rank][2]]));
    }
    drop(done);
    assert_eq!(ends(), 0, "both communicators are freed");

    let doubles = [[1.0f64, 1e-12], [2.0, 3e-12]];
    let given = [bytemuck::cast_slice(&doubles[0]), bytemuck::cast_slice(&doubles[1])];
    let linked = pair(given);
    let done = both(linked, |device, sums, buffer| sums.all_reduce_sum(device, buffer, DataType::F64, 2));
    for (device, _, buffer, result) in &done {
        result.as_ref().expect("summed");
        assert_eq!(bytes_of(device, buffer), bytemuck::cast_slice::<f64, u8>(&[3.0, 1e-12 + 3e-12]));
    }
    let (device, sums, mut buffer, _) = done.into_iter().next().expect("two");
    let outside = sentence(sums.all_reduce_sum(&device, &mut buffer, DataType::F64, 3));
    assert_eq!(outside, "device cuda:0: 24 bytes at 0 are outside a buffer of 16");
}

#[test]
fn a_gpu_that_gives_up_ends_the_waits_of_the_others() {
    let _driver = driver();
    let linked = pair([&[0; 8], &[0; 8]]);
    let done = both(linked, |device, sums, buffer| -> Result<()> {
        if sums.rank() == 1 {
            sums.abort();
        }
        sums.all_reduce_sum(device, buffer, DataType::F64, 1)
    });
    let [first, second] = done.map(|(_, _, _, result)| sentence(result));
    let given_up = "another GPU has aborted the all-reduce";
    let waited = "device cuda:0: NCCL cannot sum over the GPUs: remote process exited (ncclResult_t 6)";
    assert!(first == waited || first == format!("device cuda:0: {given_up}"), "{first}");
    assert_eq!(second, format!("device cuda:1: {given_up}"));
    assert_eq!(ends(), 0);
}

#[test]
fn a_failure_to_link_is_reported_and_one_gpu_needs_no_link() {
    let driver = driver();
    set(&NCCL, "nccl_link_result", 2i32);
    let devices = gpus(2);
    let error = sentence(linked(devices).map(drop));
    let expected = "NCCL cannot make their communicators: unhandled system error (ncclResult_t 2)";
    assert_eq!(error, format!("device cuda:0,cuda:1: {expected}"));
    // SAFETY: a global variable of driver.c, and only one test runs at a time.
    let reach = || unsafe { **driver.get::<*mut i32>(b"driver_reach").expect("in driver.c") };
    assert_eq!(reach(), 1 << 1 | 1 << 4, "each reaches the other's memory");
    set(&NCCL, "nccl_link_result", 0i32);
    set(&NCCL, "nccl_group_result", 2i32);
    let error = sentence(linked(gpus(2)).map(drop));
    set(&NCCL, "nccl_group_result", 0i32);
    let expected = "NCCL cannot connect it to the other GPUs: unhandled system error (ncclResult_t 2)";
    assert_eq!((error, ends()), (format!("device cuda:0: {expected}"), 0));
    let alone = linked(gpus(1)).expect("no link is made");
    assert!(matches!(alone.as_slice(), [LinkedDevice { sums: None, .. }]));
}
