// A stand-in for the part of a CUDA driver that src/device/cuda calls, on the host's memory, with knobs for failures. It
// runs two kernels of its own, whatever program is loaded: `record`, which stores its arguments and its launch shape, and `crash`.
// Further kernels are given by the test (driver_add_kernel), which runs them itself (driver_run).
//
// It is stricter than a real driver: every call except queries of the machine needs a current context, and it must be the context of
// its stream, event, module or graph. A real driver accepts some of these calls without one, but does not document which.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NOT_FOUND = 500,
    NOT_READY = 600, ILLEGAL_ADDRESS = 700, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901
};

// The knobs.
int driver_version = 13000;
int driver_devices = 2;
int driver_capability = 90;
uint64_t driver_memory = 1 << 20;

// Whose memory may be reached by whom: bit 4 * owner + reader.
int driver_reach = 0;
// Graphs, and those of them that can be launched, that are there.
int driver_graphs = 0;
// Calls without the context that they need, and contexts' synchronisations during a capture.
int driver_misuses = 0;

static uint64_t taken = 0;
static uint64_t given_back = 0; // of what is taken: may be taken again on the stream, and is free when somebody has waited
static int failed = OK;         // stays, as a failed kernel's error does

// One context a GPU. `current` is the calling thread's.
enum { MAX_CONTEXTS = 8 };
static char contexts[MAX_CONTEXTS];
static __thread void *current = 0;
static int misuse(int error) { return __atomic_add_fetch(&driver_misuses, 1, __ATOMIC_SEQ_CST), error; }
#define NEEDS_CONTEXT if (current == 0) return misuse(INVALID_CONTEXT)
#define NEEDS_CONTEXT_OF(thing) if (current == 0 || current != (thing)) return misuse(INVALID_CONTEXT)

// The GPUs' threads call at the same time: what they share is touched by one at a time, until the end of the calling block.
static pthread_mutex_t one_at_a_time = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void unlock(int *locked) { pthread_mutex_unlock(&one_at_a_time), *locked = 0; }
#define ALONE __attribute__((cleanup(unlock), unused)) int locked = pthread_mutex_lock(&one_at_a_time) == 0

// The log of the calls that order the work of host and GPU: a name and a number each.
enum { MAX_CALLS = 4096 };
struct call { const char *name; int64_t number; };
struct call driver_log[MAX_CALLS];
int driver_calls = 0;
static void note(const char *name, int64_t number) {
    ALONE;
    if (driver_calls < MAX_CALLS) driver_log[driver_calls++] = (struct call){name, number};
}

// Kernels of the test's: names, sizes of parameters, and what runs them with a pointer to each argument.
enum { MAX_KERNELS = 32, MAX_PARAMETERS = 64 };
struct kernel { char name[32]; int count; size_t sizes[MAX_PARAMETERS]; };
static struct kernel kernels[MAX_KERNELS];
static int num_kernels = 0;
int (*driver_run)(const char *name, void **arguments) = 0; // gives an error, which stays
void driver_add_kernel(const char *name, int count, const size_t *sizes) {
    struct kernel *kernel = &kernels[num_kernels++];
    strncpy(kernel->name, name, sizeof kernel->name - 1);
    kernel->count = count;
    memcpy(kernel->sizes, sizes, count * sizeof *sizes);
}

// Launches that are captured: kernels with their arguments, each at a multiple of 8 bytes, and shapes as they were.
enum { MAX_LAUNCHES = 512, MAX_ARGUMENT_BYTES = 4096 };
struct launch {
    void *function;
    unsigned shape[7];
    _Alignas(8) unsigned char arguments[MAX_ARGUMENT_BYTES];
};
struct graph {
    void *context;
    int count;
    struct launch launches[MAX_LAUNCHES];
};

// A stream: its context and, during a capture, the captured launches and whether the capture is invalidated.
struct stream {
    void *context;
    struct graph *capture;
    int invalidated;
    struct stream *next;
};
static struct stream *streams = 0;

// Page-locked memory of the host. Copies from and to it are made at the next wait or launch.
enum { MAX_PINNED = 8, MAX_COPIES = 8 };
static struct { char *start; size_t bytes; } pinned[MAX_PINNED];
static struct { void *to; const void *from; size_t bytes; } copies[MAX_COPIES];
static int num_copies = 0;

static int is_pinned(const void *memory) {
    ALONE;
    for (int i = 0; i < MAX_PINNED; i++) {
        const char *start = pinned[i].start, *at = memory;
        if (start != 0 && at >= start && at < start + pinned[i].bytes) return 1;
    }
    return 0;
}
static void make_copies(void) {
    ALONE;
    for (int i = 0; i < num_copies; i++) memcpy(copies[i].to, copies[i].from, copies[i].bytes);
    num_copies = 0;
}

// Which of the driver's own kernels are loaded, a bit each: `record`, `crash`. A launch of one that is not would make a real driver
// wait for all work of the GPU.
static int loaded_kernels = 0;

// A call that cannot be captured invalidates the capture of its stream.
static int outside_capture(struct stream *stream) {
    NEEDS_CONTEXT_OF(stream->context);
    if (stream->capture != 0) return stream->invalidated = 1, CAPTURE_UNSUPPORTED;
    return failed;
}

void driver_reset(void) {
    driver_version = 13000;
    driver_devices = 2;
    driver_capability = 90;
    driver_memory = 1 << 20;
    taken = given_back = 0;
    failed = OK;
    driver_reach = 0;
    loaded_kernels = 0;
    driver_graphs = 0;
    driver_misuses = driver_calls = 0;
    num_kernels = 0;
    driver_run = 0;
    for (struct stream *stream = streams; stream != 0; stream = stream->next) free(stream->capture), stream->capture = 0;
    num_copies = 0;
    memset(pinned, 0, sizeof pinned);
}

int cuDriverGetVersion(int *version) { return *version = driver_version, OK; }
int cuInit(unsigned flags) { return driver_devices == 0 ? NO_DEVICE : OK; }
// NVIDIA's compiler asks a driver that is loaded for a table of functions, and does without.
int cuGetExportTable(const void **table, const void *name) { return *table = 0, NOT_FOUND; }
int cuDeviceGetCount(int *count) { return *count = driver_devices, OK; }
int cuDeviceGet(int *device, int number) { return *device = number, OK; }
int cuDeviceGetName(char *name, int size, int device) { return strncpy(name, "Paper GPU", size), OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? driver_capability / 10 : attribute == 76 ? driver_capability % 10 : 1; // memory pools
    return OK;
}
/* Who holds a context; not reset, since the program may keep one. */
int driver_contexts;
int cuDevicePrimaryCtxRetain(void **context, int device) { return driver_contexts++, *context = &contexts[device], OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { return driver_contexts--, OK; }
int cuCtxGetCurrent(void **context) { return *context = current, OK; }
int cuCtxSetCurrent(void *context) { return current = context, OK; }
// Waiting for a context is forbidden while any of its streams is captured, by whatever thread, and invalidates those captures.
int cuCtxSynchronize(void) {
    ALONE;
    NEEDS_CONTEXT;
    int captured = 0;
    for (struct stream *stream = streams; stream != 0; stream = stream->next) {
        if (stream->context == current && stream->capture != 0) captured = stream->invalidated = 1;
    }
    return captured ? misuse(CAPTURE_UNSUPPORTED) : failed;
}
int cuStreamCreate(struct stream **stream, unsigned flags) {
    ALONE;
    NEEDS_CONTEXT;
    *stream = calloc(1, sizeof **stream);
    (*stream)->context = current, (*stream)->next = streams;
    return streams = *stream, OK;
}
int cuStreamDestroy_v2(struct stream *stream) {
    ALONE;
    NEEDS_CONTEXT_OF(stream->context);
    struct stream **at = &streams;
    while (*at != stream) at = &(*at)->next;
    *at = stream->next;
    return free(stream->capture), free(stream), OK;
}
int cuStreamSynchronize(struct stream *stream) {
    NEEDS_CONTEXT_OF(stream->context);
    note("wait for a stream", 0);
    ALONE;
    if (stream->capture == 0) taken -= given_back, given_back = 0;
    return make_copies(), outside_capture(stream);
}

// An event: its context, and the number of its last record, 0 before the first. Only recorded events are waited for.
struct event { void *context; int recorded; };
int cuEventCreate(struct event **event, unsigned flags) {
    NEEDS_CONTEXT;
    *event = calloc(1, sizeof **event);
    return (*event)->context = current, OK;
}
int cuEventDestroy_v2(struct event *event) {
    NEEDS_CONTEXT_OF(event->context);
    return free(event), OK;
}
int cuEventRecord(struct event *event, struct stream *stream) {
    ALONE;
    NEEDS_CONTEXT_OF(event->context);
    NEEDS_CONTEXT_OF(stream->context);
    static int number = 0;
    event->recorded = ++number;
    return note("record", number), OK;
}
int cuEventElapsedTime_v2(float *ms, const struct event *start, const struct event *end) {
    NEEDS_CONTEXT_OF(start->context);
    NEEDS_CONTEXT_OF(end->context);
    return *ms = 0.25f, start->recorded && end->recorded ? failed : INVALID_VALUE;
}
int cuEventSynchronize(const struct event *event) {
    NEEDS_CONTEXT_OF(event->context);
    if (event->recorded) make_copies(), note("wait for a record", event->recorded);
    return failed;
}
int cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags) {
    NEEDS_CONTEXT_OF(stream->context);
    return OK;
}
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    ALONE;
    NEEDS_CONTEXT;
    for (int i = 0; i < MAX_PINNED; i++) {
        if (pinned[i].start != 0) continue;
        pinned[i].start = memset(malloc(bytes), 0xA7, bytes), pinned[i].bytes = bytes;
        return *memory = pinned[i].start, OK;
    }
    return OUT_OF_MEMORY;
}
int cuMemFreeHost(void *memory) {
    ALONE;
    NEEDS_CONTEXT;
    for (int i = 0; i < MAX_PINNED; i++) {
        if (pinned[i].start == memory) pinned[i].start = 0;
    }
    return free(memory), OK;
}
static int copy(void *to, const void *from, size_t bytes, struct stream *stream) {
    ALONE;
    const int result = outside_capture(stream);
    if (result == CAPTURE_UNSUPPORTED) return result;
    if ((is_pinned(to) || is_pinned(from)) && num_copies < MAX_COPIES) {
        copies[num_copies].to = to, copies[num_copies].from = from, copies[num_copies++].bytes = bytes;
    } else {
        make_copies();
        memcpy(to, from, bytes);
    }
    return result;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    NEEDS_CONTEXT;
    return *free = driver_memory - taken, *total = driver_memory, OK;
}
int cuMemAllocAsync(uint64_t *address, size_t bytes, struct stream *stream) {
    ALONE;
    NEEDS_CONTEXT_OF(stream->context);
    if (bytes > driver_memory - taken + given_back) return OUT_OF_MEMORY;
    uint64_t *block = malloc(bytes + 16);
    block[0] = bytes;
    const uint64_t again = bytes < given_back ? bytes : given_back;
    given_back -= again;
    taken += bytes - again;
    return *address = (uint64_t)(block + 2), OK;
}
int cuMemFreeAsync(uint64_t address, struct stream *stream) {
    ALONE;
    NEEDS_CONTEXT_OF(stream->context);
    uint64_t *block = (uint64_t *)address - 2;
    given_back += block[0];
    free(block);
    return OK;
}
int cuDeviceCanAccessPeer(int *can, int reader, int owner) { return *can = 1, OK; }
int cuDeviceGetDefaultMemPool(void **pool, int device) { return *pool = (void *)(uintptr_t)(device + 1), OK; }
int cuMemPoolSetAccess(void *pool, const int *access, size_t count) { // of type, GPU, flags
    for (size_t i = 0; i < count; i++) {
        if (access[3 * i] != 1 || access[3 * i + 2] != 3) return INVALID_VALUE;
        driver_reach |= 1 << (4 * ((int)(uintptr_t)pool - 1) + access[3 * i + 1]);
    }
    return OK;
}
int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, struct stream *stream) {
    return memset((void *)address, value, bytes), outside_capture(stream);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct stream *stream) {
    return copy((void *)to, from, bytes, stream);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct stream *stream) {
    note("copy", (int64_t)bytes);
    return copy(to, (const void *)from, bytes, stream);
}

// A program is machine code, which is ELF; its handle is its context.
int cuModuleLoadData(void **module, const void *image) {
    NEEDS_CONTEXT;
    return *module = current, memcmp(image, "\177ELF", 4) == 0 ? OK : INVALID_IMAGE;
}
int cuModuleUnload(void *module) {
    NEEDS_CONTEXT_OF(module);
    return OK;
}
// A kernel of the driver's own is the first letter of its name, one of the test's its entry.
static const struct kernel *given(const void *function) { return (uintptr_t)function < 256 ? 0 : function; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    NEEDS_CONTEXT_OF(module);
    for (int i = 0; i < num_kernels; i++) {
        if (strcmp(name, kernels[i].name) == 0) return *function = &kernels[i], OK;
    }
    if (strcmp(name, "record") != 0 && strcmp(name, "crash") != 0) return NOT_FOUND;
    return *function = (void *)(uintptr_t)name[0], OK;
}
int cuModuleGetFunctionCount(unsigned *count, void *module) {
    NEEDS_CONTEXT_OF(module);
    return *count = 2, OK;
}
int cuModuleEnumerateFunctions(void **functions, unsigned count, void *module) {
    NEEDS_CONTEXT_OF(module);
    if (count != 2) return INVALID_VALUE;
    return functions[0] = (void *)'r', functions[1] = (void *)'c', OK;
}
static int bit_of(const void *function) { return (uintptr_t)function == 'r' ? 1 : 2; }
int cuFuncLoad(void *function) {
    NEEDS_CONTEXT;
    return loaded_kernels |= bit_of(function), OK;
}
static const size_t RECORD[] = {8, 4, 4, 8, 4};
static int num_parameters(const void *function) {
    return given(function) != 0 ? given(function)->count : (uintptr_t)function == 'r' ? 5 : 0;
}
static size_t size_of_parameter(const void *function, int index) {
    return given(function) != 0 ? given(function)->sizes[index] : RECORD[index];
}
int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
    NEEDS_CONTEXT;
    if (index >= (size_t)num_parameters(function)) return INVALID_VALUE;
    return *offset = 0, *size = size_of_parameter(function, (int)index), OK;
}
// Where the arguments of a launch are; returns their bytes.
static size_t find_arguments(struct launch *launch, void **arguments) {
    size_t at = 0;
    for (int i = 0; i < num_parameters(launch->function); i++) {
        arguments[i] = launch->arguments + at;
        at += (size_of_parameter(launch->function, i) + 7) / 8 * 8;
    }
    return at;
}
static void run(struct launch *launch) {
    ALONE;
    void *arguments[MAX_PARAMETERS];
    find_arguments(launch, arguments);
    if (given(launch->function) != 0) {
        const int result = driver_run != 0 ? driver_run(given(launch->function)->name, arguments) : OK;
        if (result != OK) failed = result;
        return;
    }
    if ((uintptr_t)launch->function == 'c') {
        failed = ILLEGAL_ADDRESS; // told later, as on a GPU
        return;
    }
    unsigned char *out = *(unsigned char **)arguments[0];
    for (int i = 1; i < 5; out += RECORD[i], i++) memcpy(out, arguments[i], RECORD[i]);
    memcpy(out, launch->shape, sizeof launch->shape);
}

static int shared_allowed = 48 << 10;
int cuFuncSetAttribute(void *function, int attribute, int value) {
    NEEDS_CONTEXT;
    if (value > 200 << 10) return INVALID_VALUE;
    return shared_allowed = value, OK;
}
int cuLaunchKernel(
    void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
    struct stream *stream, void **parameters, void **extra
) {
    NEEDS_CONTEXT_OF(stream->context);
    if (failed != OK) return failed;
    if (given(function) == 0 && (loaded_kernels & bit_of(function)) == 0) return NOT_READY;
    if (bx > 1024 || shared > shared_allowed) return INVALID_VALUE;
    make_copies();
    struct launch launch = {function, {gx, gy, gz, bx, by, bz, shared}, {0}};
    void *arguments[MAX_PARAMETERS];
    if (find_arguments(&launch, arguments) > MAX_ARGUMENT_BYTES) return INVALID_VALUE;
    for (int i = 0; i < num_parameters(function); i++) memcpy(arguments[i], parameters[i], size_of_parameter(function, i));
    if (stream->capture == 0) {
        if (given(function) != 0) note(given(function)->name, 1);
        run(&launch);
        return getenv("CUDA_LAUNCH_BLOCKING") != 0 ? failed : OK;
    }
    if (stream->capture->count == MAX_LAUNCHES) return INVALID_VALUE;
    return stream->capture->launches[stream->capture->count++] = launch, OK;
}

// A graph is its launches; the one that can be launched is a copy of it.
int cuStreamBeginCapture_v2(struct stream *stream, int mode) {
    NEEDS_CONTEXT_OF(stream->context);
    if (stream->capture != 0) return INVALID_VALUE;
    stream->capture = calloc(1, sizeof *stream->capture), stream->invalidated = 0;
    return stream->capture->context = current, OK;
}
int cuStreamEndCapture(struct stream *stream, struct graph **graph) {
    NEEDS_CONTEXT_OF(stream->context);
    if (stream->capture == 0) return INVALID_VALUE;
    struct graph *made = stream->capture;
    stream->capture = 0;
    *graph = 0;
    if (stream->invalidated || made->count == 0) return free(made), stream->invalidated ? CAPTURE_INVALIDATED : OK;
    return *graph = made, driver_graphs++, OK;
}
int cuGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags) {
    NEEDS_CONTEXT_OF(graph->context);
    *executable = memcpy(malloc(sizeof(struct graph)), graph, sizeof(struct graph));
    return driver_graphs++, OK;
}
int cuGraphLaunch(struct graph *executable, struct stream *stream) {
    NEEDS_CONTEXT_OF(executable->context);
    NEEDS_CONTEXT_OF(stream->context);
    if (failed != OK) return failed;
    note("graph", executable->count);
    make_copies();
    for (int i = 0; i < executable->count; i++) run(&executable->launches[i]);
    return OK;
}
int cuGraphExecDestroy(struct graph *executable) {
    NEEDS_CONTEXT_OF(executable->context);
    return free(executable), driver_graphs--, OK;
}
int cuGraphDestroy(struct graph *graph) {
    NEEDS_CONTEXT_OF(graph->context);
    return free(graph), driver_graphs--, OK;
}

int cuGetErrorName(int error, const char **text) {
    *text = error == ILLEGAL_ADDRESS       ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
            : error == CAPTURE_INVALIDATED ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
                                           : "CUDA_ERROR_OF_ANOTHER_KIND";
    return OK;
}
int cuGetErrorString(int error, const char **text) {
    *text = error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "something else";
    return OK;
}
