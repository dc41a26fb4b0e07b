/*
 * A process a rank, and the numbers of rank 0.
 */
#include "bench/collectives_processes.h"

#include "collective/collective.h"
#include "core/any_driver.h"
#include "core/monotonic.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT = 500, TURNS_MAX = 101, DEADLINE_MS = 60000, ONE_DEVICE = 99 };

struct shared {
    char text[TEXT];
    struct kn_process_row rows[KN_PROCESS_ROWS_MAX];
};

struct rank {
    unsigned rank, ranks;
    struct tol_context *context;
    struct tol_stream *stream;
    struct kn_collective *collective;
    struct kn_collective_part part;
};

static size_t largest(const struct kn_process_row *rows, size_t count) {
    size_t most = 16;
    for (size_t i = 0; i < count; i++) most = rows[i].bytes > most ? rows[i].bytes : most;
    return most;
}

static tol_status run_call(const struct rank *r, const struct kn_process_row *row) {
    const size_t all = row->bytes / kn_type_bytes(row->type), each = all / r->ranks;
    switch (row->call) {
    case KN_NCCL_REDUCE_SCATTER:
        return kn_reduce_scatter(r->collective, &r->part, each, row->type);
    case KN_NCCL_ALL_GATHER:
        return kn_all_gather(r->collective, &r->part, each, row->type);
    case KN_NCCL_BROADCAST:
        return kn_broadcast(r->collective, &r->part, 0, all, row->type);
    default:
        return kn_all_reduce(r->collective, &r->part, all, row->type);
    }
}

/* All ranks begin together, since each waits for what all have sent before. */
static tol_status time_calls(const struct rank *r, const struct kn_process_row *row, unsigned calls,
                             double *us) {
    tol_status status = kn_all_reduce(r->collective, &r->part, 1, KN_F32);
    if (status == TOL_OK) status = kn_collective_wait(r->collective, DEADLINE_MS);
    const uint64_t begin_ns = tol_now_ns();
    for (unsigned i = 0; i < calls && status == TOL_OK; i++) status = run_call(r, row);
    if (status == TOL_OK) status = tol_context_bind(r->context);
    /* The driver's own wait, as the bench's other sides have it. */
    if (status == TOL_OK &&
        tol_context_functions(r->context)->cuStreamSynchronize(tol_stream_handle(r->stream)) !=
            CUDA_SUCCESS) {
        status = TOL_DRIVER_ERROR;
    }
    *us = (double)(tol_now_ns() - begin_ns) * 1e-3 / calls;
    return status == TOL_OK ? kn_collective_wait(r->collective, DEADLINE_MS) : status;
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static tol_status fill(const struct rank *r, CUdeviceptr at, unsigned bits, size_t words) {
    const tol_status status = tol_context_bind(r->context);
    if (status != TOL_OK) return status;
    const struct tol_driver_table *driver = tol_context_functions(r->context);
    return driver->cuMemsetD32Async(at, bits, words, tol_stream_handle(r->stream)) == CUDA_SUCCESS
               ? tol_stream_synchronize(r->stream)
               : TOL_DRIVER_ERROR;
}

/* Inputs are 1 for rank 0, 2 for rank 1 and so on; outputs were NaN. The beginning and the end. */
static tol_status verify(const struct rank *r, struct kn_process_row *row) {
    enum { FLOATS = 4096 };
    static float piece[FLOATS];
    const float sum = (float)(r->ranks * (r->ranks + 1) / 2);
    const size_t now = row->bytes < sizeof piece ? row->bytes : sizeof piece;
    double us = 0;
    if (row->call != KN_NCCL_ALL_REDUCE || row->type != KN_F32) return TOL_OK;
    tol_status status = fill(r, r->part.out.address, 0xffffffffu, row->bytes / 4);
    if (status == TOL_OK) status = time_calls(r, row, 1, &us);
    for (int end = 0; end < 2 && status == TOL_OK; end++) {
        const CUdeviceptr at = r->part.out.address + (end > 0 ? row->bytes - now : 0);
        if (tol_context_functions(r->context)->cuMemcpyDtoH_v2(piece, at, now) != CUDA_SUCCESS) {
            return TOL_DRIVER_ERROR;
        }
        for (size_t i = 0; i < now / sizeof *piece; i++) row->is_wrong |= !(piece[i] == sum);
    }
    return status;
}

static tol_status measure_row(const struct rank *r, unsigned turns, struct kn_process_row *row) {
    double queued[TURNS_MAX], alone[TURNS_MAX], us = 0;
    /* The first turn is warming up. */
    tol_status status = time_calls(r, row, row->calls, &us);
    for (unsigned turn = 0; turn < turns && status == TOL_OK; turn++) {
        status = time_calls(r, row, row->calls, &queued[turn]);
        if (status == TOL_OK) status = time_calls(r, row, 1, &alone[turn]);
    }
    if (status == TOL_OK) status = verify(r, row);
    if (status != TOL_OK) return status;
    qsort(queued, turns, sizeof *queued, compare);
    qsort(alone, turns, sizeof *alone, compare);
    row->us = queued[turns / 2];
    row->alone_us = alone[turns / 2];
    return TOL_OK;
}

static tol_status begin(struct rank *r, const char *path, struct tol_driver *driver, size_t bytes) {
    const struct kn_collective_seat seat = {
        .path = path, .rank = r->rank, .ranks = r->ranks, .bytes = 2 * bytes};
    const float value = (float)(r->rank + 1);
    unsigned bits = 0;
    memcpy(&bits, &value, sizeof bits);
    tol_status status = tol_context_create(driver, (int)r->rank, &r->context);
    if (status == TOL_OK) status = tol_stream_create(r->context, NULL, &r->stream);
    if (status == TOL_OK) status = kn_collective_join(r->context, &seat, NULL, &r->collective);
    if (status != TOL_OK) return status;
    const struct kn_place whole = kn_collective_memory(r->collective);
    r->part = (struct kn_collective_part){
        {whole.address, bytes}, {whole.address + bytes, bytes}, r->stream};
    return fill(r, whole.address, bits, bytes / sizeof bits);
}

static int run_rank(const char *library, const char *path, unsigned rank, unsigned ranks,
                    size_t count, unsigned turns, struct shared *shared) {
    struct tol_driver *driver = NULL;
    struct rank r = {.rank = rank, .ranks = ranks};
    tol_status status = tol_any_driver_open(library, &driver, NULL);
    if (status == TOL_OK) status = begin(&r, path, driver, largest(shared->rows, count));
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        status = measure_row(&r, turns, &shared->rows[i]);
    }
    if (status != TOL_OK) snprintf(shared->text, TEXT, "%.450s", tol_message());
    kn_collective_destroy(r.collective);
    tol_stream_destroy(r.stream);
    tol_context_destroy(r.context);
    tol_driver_close(driver);
    return status == TOL_OK ? 0 : 1;
}

/* How many devices there are, up to the ranks of a collective, found by a process. 0: none. */
static unsigned count_devices(const char *library) {
    int count = 0, ended = 0;
    const pid_t process = fork();
    if (process < 0) return 0;
    if (process == 0) {
        struct tol_driver *driver = NULL;
        if (tol_any_driver_open(library, &driver, NULL) != TOL_OK ||
            tol_device_count(driver, &count) != TOL_OK) {
            count = 0;
        }
        _exit(count < KN_COLLECTIVE_RANKS_MAX ? count : KN_COLLECTIVE_RANKS_MAX);
    }
    if (waitpid(process, &ended, 0) != process || !WIFEXITED(ended)) return 0;
    return (unsigned)WEXITSTATUS(ended);
}

/* Waits for all. false: one failed, and reason is what the first of them said. */
static bool await(const pid_t *processes, unsigned ranks, const struct shared *shared, char *reason,
                  size_t bytes) {
    bool ok = true;
    for (unsigned i = 0; i < ranks; i++) {
        int ended = 1;
        const bool is_well = processes[i] > 0 && waitpid(processes[i], &ended, 0) > 0 && ended == 0;
        if (!is_well && ok) {
            snprintf(reason, bytes, "the process of rank %u failed: %s", i, shared[i].text);
        }
        ok &= is_well;
    }
    return ok;
}

bool kn_processes_measure(const char *library, struct kn_process_row *rows, size_t count,
                          unsigned turns, char *reason, size_t bytes) {
    pid_t processes[KN_COLLECTIVE_RANKS_MAX];
    char folder[] = "/tmp/tollens-bench-XXXXXX", path[64];
    const unsigned ranks = count_devices(library);
    if (ranks < 2) return true;
    struct shared *shared = mmap(NULL, ranks * sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || mkdtemp(folder) == NULL || count > KN_PROCESS_ROWS_MAX) {
        snprintf(reason, bytes, "no memory or no folder for %u processes", ranks);
        return false;
    }
    snprintf(path, sizeof path, "%s/ranks", folder);
    for (unsigned i = 0; i < ranks; i++) {
        memcpy(shared[i].rows, rows, count * sizeof *rows);
        processes[i] = fork();
        if (processes[i] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(run_rank(library, path, i, ranks, count, turns, &shared[i]));
    }
    const bool ok = await(processes, ranks, shared, reason, bytes);
    memcpy(rows, shared[0].rows, count * sizeof *rows);
    for (unsigned i = 1; i < ranks; i++) {
        for (size_t j = 0; j < count; j++) rows[j].is_wrong |= shared[i].rows[j].is_wrong;
    }
    unlink(path);
    rmdir(folder);
    munmap(shared, ranks * sizeof *shared);
    return ok;
}
