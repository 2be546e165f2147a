//! The CUDA device without a GPU: on a stand-in driver with the host's memory (`driver.c`), with NVIDIA's compiler where the machine
//! has it, else a stand-in (`nvrtc.c`). The tests show that arguments and copies arrive where they should, that calls have the
//! context they need and come in the right order, and that every failure is reported in one sentence.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use libloading::{Library, Symbol};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard};
use vecaz::device::cuda::{CudaDevice, CudaLibrary};
use vecaz::device::store::Store;
use vecaz::device::{Arg, Device, GpuCode, LaunchShape, Pinned, Program};

mod contexts;
mod libraries;
mod linked;
mod polls;
mod sources;

/// The stand-in driver, loaded before the first use of one: cudarc looks for libcuda.so first and finds the library that is loaded
/// under that name; `check_driver` looks for libcuda.so.1 before.
static DRIVER: LazyLock<Mutex<Library>> = LazyLock::new(|| {
    std::mem::forget(stand_in("libcuda.so.1", "driver.c"));
    Mutex::new(stand_in("libcuda.so", "driver.c"))
});

/// Loads a compiler: NVIDIA's, or the stand-in.
static COMPILER: LazyLock<()> = LazyLock::new(|| {
    if let Err(error) = CudaLibrary::Compiler.load("cuda:0") {
        let missing =
            "libnvrtc.so.13, is not found: install CUDA 13.0, or the Python package nvidia-cuda-nvrtc";
        assert!(error.to_string().contains(missing), "{error}");
        for file in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"] {
            std::mem::forget(stand_in(file, "nvrtc.c"));
        }
    }
});

/// Compiles `source` in this folder as the library `file`, and loads it.
fn stand_in(file: &str, source: &str) -> Library {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda_device").join(source);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(compiler);
    let name = format!("-Wl,-soname,{file}");
    command.args(["-O1", "-shared", "-fPIC", &name, "-o"]).arg(&path).arg(source);
    assert!(command.status().expect("a C compiler").success());
    // SAFETY: the library has no initialisers.
    unsafe { Library::new(path) }.expect("loaded")
}

/// The driver for one test alone. When the test ends, no call may have been made without the context that it needs.
struct Driver(MutexGuard<'static, Library>);

impl Deref for Driver {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.0
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(count(&self.0, "driver_misuses"), 0, "calls that the driver forbids");
        }
    }
}

/// The driver, as new.
fn driver() -> Driver {
    let driver = DRIVER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // SAFETY: the function is in driver.c, with no arguments and no result.
    unsafe {
        let reset: Symbol<unsafe extern "C" fn()> = driver.get(b"driver_reset").expect("in driver.c");
        reset();
    }
    Driver(driver)
}

/// Sets a knob of the driver's.
fn set<T>(driver: &Library, name: &str, value: T) {
    // SAFETY: the knobs are global variables of driver.c of the types given below, and only one test runs at a time.
    unsafe {
        let knob: Symbol<*mut T> = driver.get(name.as_bytes()).expect("in driver.c");
        **knob = value;
    }
}

/// The value of a counter of a stand-in's.
fn count(driver: &Library, name: &str) -> i32 {
    // SAFETY: the counters are global variables of driver.c and nccl.c, and only one test runs at a time.
    unsafe { **driver.get::<*mut i32>(name.as_bytes()).expect("in driver.c") }
}

fn device() -> CudaDevice {
    CudaDevice::open(0, None).expect("opened")
}

fn program(source: &str) -> Program {
    Program {
        game: "chequers".into(),
        source: source.into(),
        headers: vec![("board.cuh".into(), "struct Board { unsigned squares[VZ_SQUARES]; };".into())],
        defines: vec![("VZ_SQUARES".into(), "(64)".into())],
        code: GpuCode::Portable,
    }
}

const GOOD: &str =
    "#include \"board.cuh\"\nextern \"C\" __global__ void record(Board* b) { b->squares[0] = 1; }";
const SHAPE: LaunchShape = LaunchShape { grid: 7, block: 96, shared: 0 };

/// A device with a loaded program.
fn loaded(store: Option<Store>) -> CudaDevice {
    LazyLock::force(&COMPILER);
    let mut device = CudaDevice::open(0, store).expect("opened");
    device.load(&program(GOOD)).expect("compiled and loaded");
    device
}

fn sentence<T>(result: vecaz::Result<T>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn a_machine_without_a_usable_gpu_is_refused() {
    let driver = driver();
    let opened = |number| sentence(CudaDevice::open(number, None).map(|_| ()));
    assert_eq!(opened(2), "device cuda:2: there is no such GPU; they are cuda:0 to cuda:1");
    set(&driver, "driver_devices", 1i32);
    assert_eq!(opened(3), "device cuda:3: there is no such GPU; the only one is cuda:0");
    set(&driver, "driver_capability", 70i32);
    assert_eq!(opened(0), "device cuda:0: it has compute capability 7.0, and 7.5 (Turing) is required");
    set(&driver, "driver_devices", 0i32);
    assert_eq!(opened(0), "device cuda:0: the NVIDIA driver finds no GPU on this machine");
    set(&driver, "driver_version", 12_040i32);
    let old = "device cuda:0: the NVIDIA driver is too old: it is for CUDA 12.4, this program needs CUDA ";
    assert!(opened(0).starts_with(old), "{}", opened(0));
}

#[test]
fn the_context_stays_when_the_last_device_goes() {
    let driver = driver();
    let after_a_device = || {
        drop(device());
        count(&driver, "driver_contexts")
    };
    let first = after_a_device();
    assert!(first > 0, "else the next device's would be made anew");
    assert_eq!(after_a_device(), first, "every device gives back its own hold");
}

#[test]
fn copies_arrive_where_they_should() {
    let _driver = driver();
    let device = loaded(None);
    let mut buffer = device.alloc(11).expect("memory");
    device.upload(&mut buffer, 3, &[1, 2, 3, 4]).expect("copied");
    device.upload(&mut buffer, 11, &[]).expect("nothing to copy");
    let mut out = [9; 6];
    device.download(&buffer, 2, &mut out).expect("copied");
    assert_eq!(out, [0, 1, 2, 3, 4, 0]);
    let outside = "device cuda:0: 4 bytes at 8 are outside a buffer of 11";
    assert_eq!(sentence(device.upload(&mut buffer, 8, &[0; 4])), outside);
    assert_eq!(sentence(device.download(&buffer, 8, &mut [0; 4])), outside);
}

#[test]
fn asynchronous_copies_have_arrived_when_their_bytes_are_read() {
    let _driver = driver();
    let device = loaded(None);
    let mut buffer = device.alloc(6).expect("memory");
    let (mut sent, mut back) = (device.pinned(8).expect("memory"), device.pinned(8).expect("memory"));
    assert_eq!(back.bytes().expect("nothing is copied"), [0; 8]);
    for round in 1..4 {
        sent.bytes_mut().expect("nothing is copied").copy_from_slice(&[round; 8]);
        device.start_upload(&mut buffer, &mut sent, 4).expect("asked for");
        device.start_download(&buffer, &mut back, 6).expect("asked for");
        assert_eq!(back.bytes().expect("copied"), [round, round, round, round, 0, 0, 0, 0]);
    }
    assert_eq!(device.copied(), 3 * 10);
    // Freeing page-locked memory waits for its copies.
    back.bytes_mut().expect("copied").fill(7);
    device.start_upload(&mut buffer, &mut back, 6).expect("asked for");
    drop(back);
    let mut out = [0; 6];
    device.download(&buffer, 0, &mut out).expect("copied");
    assert_eq!(out, [7; 6]);
    let mut back = device.pinned(8).expect("memory");
    let outside = |bytes: usize| format!("device cuda:0: {bytes} bytes at 0 are outside a buffer of 6");
    assert_eq!(sentence(device.start_upload(&mut buffer, &mut sent, 7)), outside(7));
    assert_eq!(sentence(device.start_download(&buffer, &mut back, 9)), outside(9));
}

#[test]
fn missing_memory_is_refused_with_sizes() {
    let _driver = driver();
    let device = loaded(None);
    let some = device.alloc(3 << 18).expect("memory");
    // A sixteenth is the driver's.
    assert_eq!(device.free_bytes().expect("known"), (1 << 18) - (1 << 16));
    let expected = "device cuda:0: out of memory: 0.5 MiB requested, 0.2 MiB of 1.0 MiB free";
    assert_eq!(sentence(device.alloc(1 << 19).map(|_| ())), expected);
    drop(some);
    assert_eq!(device.free_bytes().expect("known"), 15 << 16, "at once");
}

#[test]
fn kernels_get_their_arguments() {
    let _driver = driver();
    let device = loaded(None);
    let buffer = device.alloc(64).expect("memory");
    let arguments =
        [Arg::Buffer(&buffer, 4), Arg::U32(0xDEAD_BEEF), Arg::I32(-5), Arg::U64(1 << 40 | 7), Arg::F32(-0.5)];
    let shape = LaunchShape { shared: 100 << 10, ..SHAPE };
    device.launch("record", shape, &arguments).expect("launched");
    let mut out = [0; 64];
    device.download(&buffer, 0, &mut out).expect("copied");
    let mut expected = vec![0; 4];
    expected.extend(0xDEAD_BEEF_u32.to_le_bytes());
    expected.extend((-5i32).to_le_bytes());
    expected.extend((1u64 << 40 | 7).to_le_bytes());
    expected.extend((-0.5f32).to_le_bytes());
    for x in [7, 1, 1, 96, 1, 1, 100 << 10] {
        expected.extend(u32::to_le_bytes(x));
    }
    expected.resize(64, 0);
    assert_eq!(out, expected.as_slice());
    device.launch("record", LaunchShape { grid: 0, ..SHAPE }, &arguments).expect("nothing to do");
}

#[test]
fn what_one_thread_opens_another_uses() {
    let _driver = driver();
    let device = loaded(None);
    let buffer = device.alloc(64).expect("memory");
    let (device, mut buffer) = std::thread::spawn(move || {
        let shape = LaunchShape { shared: 100 << 10, ..SHAPE };
        let arguments = [Arg::Buffer(&buffer, 0), Arg::U32(5), Arg::I32(-1), Arg::U64(0), Arg::F32(0.0)];
        device.launch("record", shape, &arguments).expect("launched");
        (device, buffer)
    })
    .join()
    .expect("not a panic");
    assert_eq!(numbers(&device, &buffer), [5, u32::MAX, 0]);
    let uses: [fn(&CudaDevice, &mut <CudaDevice as Device>::Buffer); 6] = [
        |device, _| assert!(device.free_bytes().expect("known") > 0),
        |device, _| device.module(&program(GOOD)).map(drop).expect("loaded"),
        |device, buffer| device.upload(buffer, 0, &[1; 4]).expect("copied"),
        |device, _| device.alloc(5).map(drop).expect("memory"),
        |device, _| device.pinned(5).map(drop).expect("memory"),
        |device, _| {
            device.begin_timing();
            device.launch("crash", LaunchShape { grid: 0, ..SHAPE }, &[]).expect("nothing to do");
            assert!(device.end_timing().expect("times").is_empty());
        },
    ];
    let mut device = device;
    for work in uses {
        let all = std::thread::spawn(move || {
            work(&device, &mut buffer);
            (device, buffer)
        });
        (device, buffer) = all.join().expect("not a panic");
    }
    std::thread::spawn(move || drop((device, buffer))).join().expect("not a panic");
}

#[test]
fn an_impossible_launch_is_refused() {
    let _driver = driver();
    let device = loaded(None);
    assert_eq!(
        sentence(device.launch("record", SHAPE, &[Arg::U32(1)])),
        "device cuda:0: kernel record (7 blocks of 96 threads, 0 bytes of shared memory) takes arguments of \
         [8, 4, 4, 8, 4] bytes, got [4]"
    );
    assert_eq!(
        sentence(device.launch("castle", SHAPE, &[])),
        "device cuda:0: the program of chequers has no kernel castle: something else (CUDA_ERROR_OF_ANOTHER_KIND)"
    );
    let shape = LaunchShape { shared: 1 << 20, ..SHAPE };
    assert_eq!(
        sentence(device.launch("crash", shape, &[])),
        "device cuda:0: kernel crash (7 blocks of 96 threads, 1048576 bytes of shared memory) of chequers cannot be \
         launched: something else (CUDA_ERROR_OF_ANOTHER_KIND)"
    );
    let unloaded = sentence(self::device().launch("record", SHAPE, &[]));
    assert_eq!(unloaded, "device cuda:0: kernel record is launched before a program is loaded");
}

#[test]
fn a_kernel_that_fails_is_named() {
    let _driver = driver();
    let device = loaded(None);
    device.launch("crash", SHAPE, &[]).expect("it fails later");
    let named = "device cuda:0: kernel crash (7 blocks of 96 threads, 0 bytes of shared memory) of chequers failed: \
                 an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)";
    assert_eq!(sentence(device.synchronise()), named);

    let _driver = {
        drop(_driver);
        driver()
    };
    let device = loaded(None);
    let buffer = device.alloc(64).expect("memory");
    device
        .launch(
            "record",
            SHAPE,
            &[Arg::Buffer(&buffer, 0), Arg::U32(0), Arg::I32(0), Arg::U64(0), Arg::F32(0.0)],
        )
        .expect("launched");
    device.launch("crash", SHAPE, &[]).expect("it fails later");
    let several = sentence(device.download(&buffer, 0, &mut [0; 4]));
    for part in
        ["one of these kernels failed (", "record (7", "crash (7", ") of chequers", "CUDA_LAUNCH_BLOCKING=1"]
    {
        assert!(several.contains(part), "{several}");
    }
}

#[test]
fn a_launch_that_waits_for_its_kernel_names_it_alone() {
    const VARIABLE: &str = "CUDA_LAUNCH_BLOCKING";
    if std::env::var_os(VARIABLE).is_none() {
        let test = "a_launch_that_waits_for_its_kernel_names_it_alone";
        let mut again = Command::new(std::env::current_exe().expect("a path"));
        let out = again.args(["--exact", test]).env(VARIABLE, "1").output().expect("runs");
        let printed = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && printed.contains("1 passed"), "{printed}");
        return;
    }
    let _driver = driver();
    let device = loaded(None);
    let buffer = device.alloc(64).expect("memory");
    let arguments = [Arg::Buffer(&buffer, 0), Arg::U32(7), Arg::I32(-1), Arg::U64(0), Arg::F32(0.0)];
    assert!(!device.may_capture(), "a graph's launches would be told together");
    device.launch("record", SHAPE, &arguments).expect("over");
    let message = sentence(device.launch("crash", SHAPE, &[]));
    let named =
        "device cuda:0: kernel crash (7 blocks of 96 threads, 0 bytes of shared memory) of chequers failed: ";
    assert!(message.starts_with(named), "{message}");
}

/// The first numbers of `buffer`.
fn numbers(device: &CudaDevice, buffer: &<CudaDevice as Device>::Buffer) -> [u32; 3] {
    let mut out = [0; 12];
    device.download(buffer, 0, &mut out).expect("copied");
    [0, 4, 8].map(|at| u32::from_le_bytes(out[at..at + 4].try_into().expect("four bytes")))
}

#[test]
fn captured_launches_are_launched_again() {
    let driver = driver();
    let device = loaded(None);
    let buffers = [0, 1].map(|_| device.alloc(64).expect("memory"));
    let launch = |buffer, x| {
        let arguments = [Arg::Buffer(buffer, 0), Arg::U32(x), Arg::I32(-1), Arg::U64(0), Arg::F32(0.0)];
        device.launch("record", SHAPE, &arguments).expect("launched, or recorded");
    };
    device.begin_capture().expect("state");
    launch(&buffers[0], 7);
    launch(&buffers[1], 8);
    let graph = device.end_capture().expect("recorded");
    let found = || [0, 1].map(|i| numbers(&device, &buffers[i]));
    assert_eq!(found(), [[0; 3]; 2], "recorded, and not made");
    for _ in 0..2 {
        device.launch_graph(&graph).expect("made");
        assert_eq!(found(), [[7, u32::MAX, 0], [8, u32::MAX, 0]]);
        launch(&buffers[0], 9);
        assert_eq!(found(), [[9, u32::MAX, 0], [8, u32::MAX, 0]], "made at once");
    }
    assert_eq!(count(&driver, "driver_graphs"), 2, "the graph, and the one that is launched");
    drop(graph);
    assert_eq!(count(&driver, "driver_graphs"), 0);
}

#[test]
fn launches_are_timed_by_events() {
    let _driver = driver();
    let device = loaded(None);
    let buffer = device.alloc(64).expect("memory");
    let arguments = [Arg::Buffer(&buffer, 0), Arg::U32(7), Arg::I32(-1), Arg::U64(0), Arg::F32(0.0)];
    let launch = || device.launch("record", SHAPE, &arguments).expect("launched");
    launch();
    device.begin_timing();
    assert!(!device.may_capture());
    (0..3).for_each(|_| launch());
    let times = device.end_timing().expect("times");
    assert!(device.may_capture());
    let before = device.timestamp().expect("recorded");
    launch();
    let seconds = device.seconds_between(&before, &device.timestamp().expect("recorded")).expect("over");
    assert!((seconds - 0.25e-3).abs() < 1e-9, "{seconds}");
    let [time] = times.as_slice() else { panic!("{times:?}") };
    assert_eq!((time.kernel.as_str(), time.launches), ("record", 3));
    assert!((time.seconds - 0.75e-3).abs() < 1e-9, "{time:?}");
    assert!(device.end_timing().expect("times").is_empty());
}

#[test]
fn a_capture_that_fails_is_reported_and_ends() {
    let _driver = driver();
    let device = loaded(None);
    let mut buffer = device.alloc(64).expect("memory");
    device.begin_capture().expect("state");
    let copied = sentence(device.upload(&mut buffer, 0, &[1; 4]));
    assert!(copied.ends_with("(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)"), "{copied}");
    let ended = sentence(device.end_capture().map(|_| ()));
    assert!(ended.ends_with("(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)"), "{ended}");
    assert_eq!(numbers(&device, &buffer), [0; 3]);
    device.begin_capture().expect("state");
    let none = sentence(device.end_capture().map(|_| ()));
    assert_eq!(none, "device cuda:0: a capture ended with no launch");

    device.begin_capture().expect("state");
    device.launch("crash", SHAPE, &[]).expect("recorded");
    let graph = device.end_capture().expect("recorded");
    device.synchronise().expect("nothing was launched");
    device.launch_graph(&graph).expect("it fails later");
    let named = "device cuda:0: kernel crash (7 blocks of 96 threads, 0 bytes of shared memory) of chequers failed: \
                 an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)";
    assert_eq!(sentence(device.synchronise()), named);
}

#[test]
fn a_copy_beside_the_launches_arrives_from_any_place() {
    let _driver = driver();
    let device = loaded(None);
    let mut buffer = device.alloc(11).expect("memory");
    device.upload(&mut buffer, 0, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).expect("copied");
    let mut back = device.pinned(8).expect("memory");
    device.start_concurrent_download(&buffer, 4, &mut back, 6).expect("asked for");
    assert_eq!(back.bytes().expect("copied")[..6], [4, 5, 6, 7, 8, 9]);
    let outside = sentence(device.start_concurrent_download(&buffer, 6, &mut back, 6));
    assert_eq!(outside, "device cuda:0: 6 bytes at 6 are outside a buffer of 11");
}

#[test]
fn compile_errors_name_the_game() {
    let _driver = driver();
    let mut device = loaded(None);
    let error =
        sentence(device.load(&program("#include \"board.cuh\"\n__device__ int f() { return missing; }")));
    let begin =
        "device cuda:0: the kernels of chequers do not compile for sm_90: chequers.cu(2): error: identifier";
    assert!(error.starts_with(begin) && error.contains("missing") && !error.contains('\n'), "{error}");
}

#[test]
fn programs_are_compiled_once() {
    let _driver = driver();
    let folder = tempfile::tempdir().expect("a folder");
    let store = || Some(Store::at(folder.path()));
    let files = || -> Vec<(PathBuf, Vec<u8>)> {
        let entries = std::fs::read_dir(folder.path()).expect("listed");
        entries
            .map(|e| e.expect("an entry").path())
            .map(|p| (p.clone(), std::fs::read(p).expect("read")))
            .collect()
    };
    loaded(store());
    let stored = files();
    let [(path, content)] = stored.as_slice() else { panic!("{} files", stored.len()) };
    // What is stored is what is loaded: a program that is no machine code is refused by the driver.
    let offset = content.windows(4).position(|bytes| bytes == b"\x7fELF").expect("machine code");
    assert!(offset > 0);
    std::fs::write(path, &content[..content.len() - 1]).expect("written");
    loaded(store());
    assert_eq!(files(), stored);
}
