// As much of a CUDA driver as src/backend/kernels/cuda calls, on the host's memory, with knobs for what may go wrong. It runs
// two kernels of its own, whatever program is loaded: `record`, which stores its arguments and its launch shape, and `crash`.
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
uint64_t driver_memory = 1 << 20;

// Whose memory may be reached by whom: bit 4 * owner + reader.
int driver_reach = 0;
// Graphs, and those of them that can be launched, that are there.
int driver_graphs = 0;

static uint64_t taken = 0;
static uint64_t given_back = 0; // of what is taken: may be taken again on the stream, and is free when somebody has waited
static int failed = OK;         // stays, as a failed kernel's error does
static __thread void *current = 0;
#define NEEDS_CONTEXT if (current == 0) return INVALID_CONTEXT

// Launches that are captured: kernels with their arguments and shapes as they were.
enum { MOST_LAUNCHES = 8, ARGUMENT_BYTES = 28 };
struct launch {
    void *function;
    unsigned char arguments[ARGUMENT_BYTES];
    unsigned shape[7];
};
struct graph {
    int count;
    struct launch launches[MOST_LAUNCHES];
};
static struct graph *capture = 0; // while launches are captured
static int invalidated = 0;       // something was asked for that cannot be captured

// Page-locked memory of the host. Copies from and to it are made when somebody waits, or when something else is asked for.
enum { MOST_PINNED = 8, MOST_COPIES = 8 };
static struct { char *start; size_t bytes; } pinned[MOST_PINNED];
static struct { void *to; const void *from; size_t bytes; } copies[MOST_COPIES];
static int num_copies = 0;

static int is_pinned(const void *memory) {
    for (int i = 0; i < MOST_PINNED; i++) {
        const char *start = pinned[i].start, *at = memory;
        if (start != 0 && at >= start && at < start + pinned[i].bytes) return 1;
    }
    return 0;
}
static void make_copies(void) {
    for (int i = 0; i < num_copies; i++) memcpy(copies[i].to, copies[i].from, copies[i].bytes);
    num_copies = 0;
}

// Kernels that are ready to run, a bit each: `record`, `crash`. Where one is not, the driver would wait for all the GPU's work.
static int loaded_kernels = 0;

// What is not captured spoils the capture.
static int outside_capture(void) {
    if (capture != 0) return invalidated = 1, CAPTURE_UNSUPPORTED;
    return failed;
}

void driver_reset(void) {
    driver_version = 13000;
    driver_devices = 2;
    driver_memory = 1 << 20;
    taken = given_back = 0;
    failed = OK;
    driver_reach = 0;
    loaded_kernels = 0;
    driver_graphs = 0;
    free(capture);
    capture = 0;
    invalidated = 0;
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
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1; // compute capability 9.0; memory pools
    return OK;
}
/* Who holds a context; not reset, since the program may keep one. */
int driver_contexts;
int cuDevicePrimaryCtxRetain(void **context, int device) { return driver_contexts++, *context = &failed, OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { return driver_contexts--, OK; }
int cuCtxGetCurrent(void **context) { return *context = current, OK; }
int cuCtxSetCurrent(void *context) { return current = context, OK; }
int cuCtxSynchronize(void) { return failed; }
int cuStreamCreate(void **stream, unsigned flags) {
    NEEDS_CONTEXT;
    return *stream = &taken, OK;
}
int cuStreamDestroy_v2(void *stream) { return OK; }
int cuStreamSynchronize(void *stream) {
    if (capture == 0) taken -= given_back, given_back = 0;
    return make_copies(), outside_capture();
}

// An event knows whether it was recorded: nobody waits for one that was not.
int cuEventCreate(void **event, unsigned flags) {
    NEEDS_CONTEXT;
    return *event = calloc(1, 1), OK;
}
int cuEventDestroy_v2(void *event) { return free(event), OK; }
int cuEventRecord(char *event, void *stream) {
    NEEDS_CONTEXT;
    return *event = 1, OK;
}
int cuEventElapsedTime_v2(float *ms, const char *start, const char *end) {
    return *ms = 0.25f, *start && *end ? failed : INVALID_VALUE;
}
int cuEventSynchronize(const char *event) {
    if (*event) make_copies();
    return failed;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return OK; }
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    NEEDS_CONTEXT;
    for (int i = 0; i < MOST_PINNED; i++) {
        if (pinned[i].start != 0) continue;
        pinned[i].start = memset(malloc(bytes), 0xA7, bytes), pinned[i].bytes = bytes;
        return *memory = pinned[i].start, OK;
    }
    return OUT_OF_MEMORY;
}
int cuMemFreeHost(void *memory) {
    for (int i = 0; i < MOST_PINNED; i++) {
        if (pinned[i].start == memory) pinned[i].start = 0;
    }
    return free(memory), OK;
}
static int copy(void *to, const void *from, size_t bytes) {
    NEEDS_CONTEXT;
    const int result = outside_capture();
    if (result == CAPTURE_UNSUPPORTED) return result;
    if ((is_pinned(to) || is_pinned(from)) && num_copies < MOST_COPIES) {
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
int cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) {
    NEEDS_CONTEXT;
    if (bytes > driver_memory - taken + given_back) return OUT_OF_MEMORY;
    uint64_t *block = malloc(bytes + 16);
    block[0] = bytes;
    const uint64_t again = bytes < given_back ? bytes : given_back;
    given_back -= again;
    taken += bytes - again;
    return *address = (uint64_t)(block + 2), OK;
}
int cuMemFreeAsync(uint64_t address, void *stream) {
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
int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void *stream) {
    return memset((void *)address, value, bytes), outside_capture();
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    return copy((void *)to, from, bytes);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    return copy(to, (const void *)from, bytes);
}

// A program is machine code, which is ELF.
int cuModuleLoadData(void **module, const void *image) {
    NEEDS_CONTEXT;
    return *module = &failed, memcmp(image, "\177ELF", 4) == 0 ? OK : INVALID_IMAGE;
}
int cuModuleUnload(void *module) {
    NEEDS_CONTEXT;
    return OK;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    NEEDS_CONTEXT;
    if (strcmp(name, "record") != 0 && strcmp(name, "crash") != 0) return NOT_FOUND;
    return *function = (void *)(uintptr_t)name[0], OK;
}
int cuModuleGetFunctionCount(unsigned *count, void *module) { return *count = 2, OK; }
int cuModuleEnumerateFunctions(void **functions, unsigned count, void *module) {
    if (count != 2) return INVALID_VALUE;
    return functions[0] = (void *)'r', functions[1] = (void *)'c', OK;
}
static int bit_of(const void *function) { return (uintptr_t)function == 'r' ? 1 : 2; }
int cuFuncLoad(void *function) {
    NEEDS_CONTEXT;
    return loaded_kernels |= bit_of(function), OK;
}
static const size_t RECORD[] = {8, 4, 4, 8, 4};
int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
    if ((uintptr_t)function != 'r' || index >= 5) return INVALID_VALUE;
    return *offset = 0, *size = RECORD[index], OK;
}
static void run(const struct launch *launch) {
    if ((uintptr_t)launch->function == 'c') {
        failed = ILLEGAL_ADDRESS; // told later, as on a GPU
        return;
    }
    unsigned char *out;
    memcpy(&out, launch->arguments, sizeof out);
    memcpy(out, launch->arguments + 8, ARGUMENT_BYTES - 8);
    memcpy(out + ARGUMENT_BYTES - 8, launch->shape, sizeof launch->shape);
}

static int shared_allowed = 48 << 10;
int cuFuncSetAttribute(void *function, int attribute, int value) {
    NEEDS_CONTEXT;
    if (value > 200 << 10) return INVALID_VALUE;
    return shared_allowed = value, OK;
}
int cuLaunchKernel(
    void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
    void *stream, void **parameters, void **extra
) {
    NEEDS_CONTEXT;
    if (failed != OK) return failed;
    if ((loaded_kernels & bit_of(function)) == 0) return NOT_READY;
    if (bx > 1024 || shared > shared_allowed) return INVALID_VALUE;
    make_copies();
    struct launch launch = {function, {0}, {gx, gy, gz, bx, by, bz, shared}};
    unsigned char *argument = launch.arguments;
    for (int i = 0; (uintptr_t)function == 'r' && i < 5; argument += RECORD[i], i++) memcpy(argument, parameters[i], RECORD[i]);
    if (capture == 0) return run(&launch), OK;
    if (capture->count == MOST_LAUNCHES) return INVALID_VALUE;
    return capture->launches[capture->count++] = launch, OK;
}

// A graph is its launches; the one that can be launched is a copy of it.
int cuStreamBeginCapture_v2(void *stream, int mode) {
    if (capture != 0) return INVALID_VALUE;
    return capture = calloc(1, sizeof *capture), invalidated = 0, OK;
}
int cuStreamEndCapture(void *stream, void **graph) {
    if (capture == 0) return INVALID_VALUE;
    struct graph *made = capture;
    capture = 0;
    *graph = 0;
    if (invalidated || made->count == 0) return free(made), invalidated ? CAPTURE_INVALIDATED : OK;
    return *graph = made, driver_graphs++, OK;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
    *executable = memcpy(malloc(sizeof(struct graph)), graph, sizeof(struct graph));
    return driver_graphs++, OK;
}
int cuGraphLaunch(void *executable, void *stream) {
    const struct graph *graph = executable;
    if (failed != OK) return failed;
    for (int i = 0; i < graph->count; i++) run(&graph->launches[i]);
    return OK;
}
int cuGraphExecDestroy(void *executable) { return free(executable), driver_graphs--, OK; }
int cuGraphDestroy(void *graph) { return free(graph), driver_graphs--, OK; }

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
