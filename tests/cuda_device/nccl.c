// A stand-in for the part of NCCL that src/device/cuda/nccl.rs calls, on the memory of driver.c, with knobs for failures.
// A sum is made within its call, which therefore waits for the calls of all other GPUs, or at the end of the group of its calls.
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, REMOTE_ERROR = 6, FLOAT32 = 7, FLOAT64 = 8, MOST = 8 };

// The knobs: the results of linking and of the end of a group. The counters: communicators that exist, sums of whole groups.
int nccl_link_result = SUCCESS;
int nccl_group_result = SUCCESS;
int nccl_ends = 0;
int nccl_groups = 0;

struct link {
    int size, arrived, left, number, over;
    const void *given[MOST];
};
struct end {
    struct link *link;
    int rank, device;
};

int ncclCommInitAll(struct end **ends, int num, const int *devices) {
    if (nccl_link_result != SUCCESS) return nccl_link_result;
    if (num > MOST) return INVALID_ARGUMENT;
    struct link *link = calloc(1, sizeof *link); // never freed: an end may still look at it
    link->size = num;
    for (int rank = 0; rank < num; rank++) {
        ends[rank] = malloc(sizeof **ends);
        *ends[rank] = (struct end){link, rank, devices[rank]};
        nccl_ends++;
    }
    return SUCCESS;
}

// The calls of the group that is open.
static __thread int in_group = 0, num_grouped = 0;
static __thread struct { const void *from; void *to; size_t count; int type; } grouped[MOST];

static void add(void *sum, const void *number, size_t count, int type) {
    for (size_t i = 0; i < count; i++) {
        if (type == FLOAT64) ((double *)sum)[i] += ((const double *)number)[i];
        else ((float *)sum)[i] += ((const float *)number)[i];
    }
}

int ncclGroupStart(void) { return in_group = 1, num_grouped = 0, SUCCESS; }
// One sum of all the calls.
int ncclGroupEnd(void) {
    in_group = 0;
    if (nccl_group_result != SUCCESS || num_grouped == 0) return nccl_group_result;
    const size_t bytes = grouped[0].count * (grouped[0].type == FLOAT64 ? 8 : 4);
    void *sum = calloc(1, bytes);
    for (int i = 0; i < num_grouped; i++) add(sum, grouped[i].from, grouped[i].count, grouped[i].type);
    for (int i = 0; i < num_grouped; i++) memcpy(grouped[i].to, sum, bytes);
    free(sum);
    return nccl_groups++, SUCCESS;
}

static int over(struct link *link) { return __atomic_load_n(&link->over, __ATOMIC_SEQ_CST); }

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, struct end *end, void *stream) {
    struct link *link = end->link;
    const size_t bytes = count * (type == FLOAT64 ? 8 : 4);
    if ((type != FLOAT32 && type != FLOAT64) || operation != 0) return INVALID_ARGUMENT;
    if (in_group) {
        grouped[num_grouped].from = from, grouped[num_grouped].to = to;
        grouped[num_grouped].count = count, grouped[num_grouped++].type = type;
        return SUCCESS;
    }
    const int number = __atomic_load_n(&link->number, __ATOMIC_SEQ_CST);
    link->given[end->rank] = from;
    __atomic_add_fetch(&link->arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&link->arrived, __ATOMIC_SEQ_CST) < link->size) {
        if (over(link)) return REMOTE_ERROR;
        sched_yield();
    }
    void *sum = calloc(1, bytes);
    for (int rank = 0; rank < link->size; rank++) add(sum, link->given[rank], count, type);
    // All read before any writes; the last one to read opens the next sum.
    if (__atomic_add_fetch(&link->left, 1, __ATOMIC_SEQ_CST) == link->size) {
        __atomic_store_n(&link->left, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&link->arrived, 0, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&link->number, 1, __ATOMIC_SEQ_CST);
    }
    while (__atomic_load_n(&link->number, __ATOMIC_SEQ_CST) == number) sched_yield();
    memcpy(to, sum, bytes);
    free(sum);
    return SUCCESS;
}

int ncclCommDestroy(struct end *end) { return free(end), nccl_ends--, SUCCESS; }
int ncclCommAbort(struct end *end) {
    __atomic_store_n(&end->link->over, 1, __ATOMIC_SEQ_CST);
    return ncclCommDestroy(end);
}
const char *ncclGetErrorString(int result) {
    return result == SYSTEM_ERROR ? "unhandled system error" : result == REMOTE_ERROR ? "remote process exited" : "another";
}
