/*
 * A process a rank, and the numbers of rank 0.
 */
#include "bench/collectives_processes.h"

#include "collective/collective.h"
#include "core/any_driver.h"
#include "core/check.h"
#include "core/monotonic.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT = 500, TURNS_MAX = 101, DEADLINE_MS = 60000, NCCL_S = 40, WARM_CALLS = 200 };

/* Of each rank. id: of rank 0, which others read once rank 0 has made it. */
struct shared {
    char text[TEXT];
    _Atomic bool has_id;
    struct kn_nccl_id id;
    struct kn_process_row rows[KN_PROCESS_ROWS_MAX];
};

struct rank {
    unsigned rank, ranks;
    struct tol_context *context;
    struct tol_stream *stream;
    struct kn_collective *collective;
    struct kn_collective_part part;
    struct kn_nccl *nccl; /* NULL: none */
};

static size_t collectives_processes_largest(const struct kn_process_row *rows, size_t count) {
    size_t most = 16;
    for (size_t i = 0; i < count; i++) most = rows[i].bytes > most ? rows[i].bytes : most;
    return most;
}

static tol_status run_nccl(const struct rank *r, const struct kn_process_row *row, size_t count) {
    return kn_nccl_run(r->nccl, row->call, &r->part, count, row->type)
               ? TOL_OK
               : tol_fail(__FILE__, __LINE__, TOL_DRIVER_ERROR, "NCCL refused a call");
}

static tol_status run_call(const struct rank *r, const struct kn_process_row *row, bool is_nccl) {
    const size_t all = row->bytes / kn_type_bytes(row->type), each = all / r->ranks;
    const bool is_part = row->call == KN_NCCL_REDUCE_SCATTER || row->call == KN_NCCL_ALL_GATHER;
    if (is_nccl) return run_nccl(r, row, is_part ? each : all);
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

/* All ranks have come here: each waits for what all send. */
static tol_status collectives_processes_meet(const struct rank *r) {
    const tol_status status = kn_all_reduce(r->collective, &r->part, 1, KN_F32);
    return status == TOL_OK ? kn_collective_wait(r->collective, DEADLINE_MS) : status;
}

static tol_status collectives_processes_time_calls(const struct rank *r,
                                                   const struct kn_process_row *row, bool is_nccl,
                                                   unsigned calls, double *us) {
    tol_status status = collectives_processes_meet(r);
    const uint64_t begin_ns = tol_now_ns();
    for (unsigned i = 0; i < calls && status == TOL_OK; i++) {
        status = run_call(r, row, is_nccl);
    }
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

static int collectives_processes_compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static tol_status collectives_processes_fill(const struct rank *r, CUdeviceptr at, unsigned bits,
                                             size_t words) {
    const tol_status status = tol_context_bind(r->context);
    if (status != TOL_OK) return status;
    const struct tol_driver_table *driver = tol_context_functions(r->context);
    return driver->cuMemsetD32Async(at, bits, words, tol_stream_handle(r->stream)) == CUDA_SUCCESS
               ? tol_stream_synchronize(r->stream)
               : TOL_DRIVER_ERROR;
}

/* Inputs are 1 for rank 0, 2 for rank 1 and so on; outputs were NaN. The beginning and the end. */
static tol_status collectives_processes_verify(const struct rank *r, struct kn_process_row *row) {
    enum { FLOATS = 4096 };
    static float piece[FLOATS];
    const float sum = (float)(r->ranks * (r->ranks + 1) / 2);
    const size_t now = row->bytes < sizeof piece ? row->bytes : sizeof piece;
    double us = 0;
    if (row->call != KN_NCCL_ALL_REDUCE || row->type != KN_F32) return TOL_OK;
    tol_status status =
        collectives_processes_fill(r, r->part.out.address, 0xffffffffu, row->bytes / 4);
    if (status == TOL_OK) status = collectives_processes_time_calls(r, row, false, 1, &us);
    for (int end = 0; end < 2 && status == TOL_OK; end++) {
        const CUdeviceptr at = r->part.out.address + (end > 0 ? row->bytes - now : 0);
        if (tol_context_functions(r->context)->cuMemcpyDtoH_v2(piece, at, now) != CUDA_SUCCESS) {
            return TOL_DRIVER_ERROR;
        }
        for (size_t i = 0; i < now / sizeof *piece; i++) row->is_wrong |= !(piece[i] == sum);
    }
    return status;
}

static double collectives_processes_median(double *values, unsigned count) {
    qsort(values, count, sizeof *values, collectives_processes_compare);
    return values[count / 2];
}

/* The first turn is warming up. */
static tol_status measure_row(const struct rank *r, unsigned turns, struct kn_process_row *row) {
    double queued[2][TURNS_MAX], alone[2][TURNS_MAX];
    tol_status status = TOL_OK;
    const unsigned sides = r->nccl != NULL ? 2 : 1;
    for (unsigned turn = 0; turn < turns + 1 && status == TOL_OK; turn++) {
        for (unsigned i = 0; i < sides && status == TOL_OK; i++) {
            const unsigned side = (turn + i) % sides, at = turn > 0 ? turn - 1 : 0;
            status =
                collectives_processes_time_calls(r, row, side == 1, row->calls, &queued[side][at]);
            if (status == TOL_OK)
                status = collectives_processes_time_calls(r, row, side == 1, 1, &alone[side][at]);
        }
    }
    if (status == TOL_OK) status = collectives_processes_verify(r, row);
    for (unsigned side = 0; side < sides && status == TOL_OK; side++) {
        row->us[side] = collectives_processes_median(queued[side], turns);
        row->alone_us[side] = collectives_processes_median(alone[side], turns);
    }
    return status;
}

/* NCCL in this process too. A rank that does not come holds the others up: a signal ends them. */
static tol_status join_nccl(struct rank *r, struct shared *all) {
    char reason[TEXT] = "";
    if (r->rank == 0) all->has_id = kn_nccl_make_id(&all->id, reason, sizeof reason);
    const tol_status status = collectives_processes_meet(r);
    if (status != TOL_OK || !all->has_id) return status;
    alarm(NCCL_S);
    r->nccl = kn_nccl_join(&all->id, r->rank, r->ranks, reason, sizeof reason);
    alarm(0);
    return r->nccl != NULL ? tol_context_bind(r->context)
                           : tol_fail(__FILE__, __LINE__, TOL_UNSUPPORTED, "NCCL: %s", reason);
}

static tol_status collectives_processes_begin(struct rank *r, const char *path,
                                              struct tol_driver *driver, size_t bytes) {
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
    return collectives_processes_fill(r, whole.address, bits, bytes / sizeof bits);
}

/* The arguments of all ranks. */
struct task {
    const char *library, *path;
    size_t count;
    unsigned ranks, turns;
    bool has_nccl;
};

/* The first calls of a process take longer, whatever their size. */
static tol_status collectives_processes_warm(const struct rank *r,
                                             const struct kn_process_row *row) {
    double us = 0;
    tol_status status =
        collectives_processes_time_calls(r, row, false, row->calls > 2 ? WARM_CALLS : 1, &us);
    if (status == TOL_OK && r->nccl != NULL)
        status = collectives_processes_time_calls(r, row, true, WARM_CALLS, &us);
    return status;
}

static int collectives_processes_run_rank(const struct task *task, unsigned rank,
                                          struct shared *all) {
    struct tol_driver *driver = NULL;
    struct rank r = {.rank = rank, .ranks = task->ranks};
    struct shared *shared = &all[rank];
    const size_t count = task->count;
    tol_status status = tol_any_driver_open(task->library, &driver, NULL);
    if (status == TOL_OK)
        status = collectives_processes_begin(&r, task->path, driver,
                                             collectives_processes_largest(shared->rows, count));
    if (status == TOL_OK && task->has_nccl && !tol_driver_is_soft(driver)) {
        status = join_nccl(&r, all);
    }
    if (status == TOL_OK && count > 0) status = collectives_processes_warm(&r, &shared->rows[0]);
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        status = measure_row(&r, task->turns, &shared->rows[i]);
    }
    if (status != TOL_OK) snprintf(shared->text, TEXT, "%.450s", tol_message());
    kn_nccl_close(r.nccl);
    kn_collective_destroy(r.collective);
    tol_stream_destroy(r.stream);
    tol_context_destroy(r.context);
    tol_driver_close(driver);
    return status == TOL_OK ? 0 : 1;
}

/* How many devices there are, up to the ranks of a collective, found by a process. 0: none. */
static unsigned collectives_processes_count_devices(const char *library) {
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
static bool collectives_processes_await(const pid_t *processes, unsigned ranks,
                                        const struct shared *shared, char *reason, size_t bytes) {
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

/* Forks the ranks and waits for them. */
static bool collectives_processes_run(const struct task *task, struct shared *shared,
                                      const struct kn_process_row *rows, char *reason,
                                      size_t bytes) {
    pid_t processes[KN_COLLECTIVE_RANKS_MAX];
    for (unsigned i = 0; i < task->ranks; i++) {
        shared[i] = (struct shared){.has_id = false};
        memcpy(shared[i].rows, rows, task->count * sizeof *rows);
    }
    for (unsigned i = 0; i < task->ranks; i++) {
        processes[i] = fork();
        if (processes[i] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(collectives_processes_run_rank(task, i, shared));
    }
    return collectives_processes_await(processes, task->ranks, shared, reason, bytes);
}

bool kn_processes_measure(const char *library, struct kn_process_row *rows, size_t count,
                          unsigned turns, char *reason, size_t bytes) {
    char folder[] = "/tmp/tollens-bench-XXXXXX", path[64];
    const unsigned ranks = collectives_processes_count_devices(library);
    if (ranks < 2) return true;
    struct shared *shared = mmap(NULL, ranks * sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || mkdtemp(folder) == NULL || count > KN_PROCESS_ROWS_MAX) {
        snprintf(reason, bytes, "no memory or no folder for %u processes", ranks);
        return false;
    }
    snprintf(path, sizeof path, "%s/ranks", folder);
    struct task task = {library, path, count, ranks, turns, .has_nccl = true};
    bool ok = collectives_processes_run(&task, shared, rows, reason, bytes);
    if (!ok && shared[0].has_id) {
        unlink(path);
        task.has_nccl = false;
        ok = collectives_processes_run(&task, shared, rows, reason + strlen(reason),
                                       bytes - strlen(reason));
    }
    memcpy(rows, shared[0].rows, count * sizeof *rows);
    for (unsigned i = 1; i < ranks; i++) {
        for (size_t j = 0; j < count; j++) rows[j].is_wrong |= shared[i].rows[j].is_wrong;
    }
    unlink(path);
    rmdir(folder);
    munmap(shared, ranks * sizeof *shared);
    return ok;
}
