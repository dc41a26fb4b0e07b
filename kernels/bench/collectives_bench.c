/*
 * What collectives of all devices take, beside NCCL's in the same run where it is installed.
 *
 *     bench-collectives [--library PATH] [--json FILE] [--max MIB] [--turns N] [--processes]
 *
 * A row is a call and a size. `us` is the time of one call among several that are queued after
 * each other, `alone` that of one call and its wait; GB/s are those of the bus: bytes * 2 (n - 1) /
 * n for all-reduce, (n - 1) / n for the others, in the time of a queued call. Turns of ours and of
 * NCCL's alternate, and numbers are medians. Bytes are of the larger buffer of a rank.
 *
 * With --processes each row has another below it, of ranks that are processes (kn_collective_join),
 * which are measured first: their times beside NCCL's of such processes, and the time of one
 * process divided by theirs.
 *
 * The demand, for all-reduce of fp32: at least 0.9 of NCCL's rate from 16 MiB on, and at most half
 * its time below 256 KiB, each beside NCCL in as many processes. Exit code 1 if a GPU does not hold
 * it, 3 if there is one device only.
 * Without NCCL nothing of that is judged. Each result of an all-reduce of fp32 is compared with the
 * sum, and a wrong one is exit code 1 too.
 */
#include "bench/collectives_processes.h"
#include "bench/nccl.h"
#include "collective/collective.h"
#include "core/any_driver.h"
#include "core/monotonic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURNS_MAX = 101, DEADLINE_MS = 60000, RANKS_MAX = KN_COLLECTIVE_RANKS_MAX };
enum { RATE_FROM_BYTES = 16 << 20, TIME_BELOW_BYTES = 256 << 10 };

static const char *const call_names[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast"};

struct bench {
    struct tol_driver *driver;
    unsigned ranks, turns;
    bool is_soft, has_processes;
    struct kn_process_row others[KN_PROCESS_ROWS_MAX]; /* of processes */
    size_t other_count;
    size_t max_bytes;
    const char *library, *json;
    struct tol_context *contexts[RANKS_MAX];
    struct tol_stream *streams[RANKS_MAX];
    struct tol_buffer *in[RANKS_MAX], *out[RANKS_MAX];
    struct kn_collective *collective;
    struct kn_nccl *nccl;
    FILE *file;
    unsigned rows, failures;
};

struct row {
    enum kn_nccl_call call;
    enum kn_type type;
    size_t bytes;
    double us[2], alone_us[2]; /* ours, NCCL's */
};

/* ---- one call ---- */

/* The count of collective.h for a number of bytes of the larger buffer. */
static size_t collectives_bench_count_of(const struct bench *b, const struct row *row) {
    const size_t elements = row->bytes / kn_type_bytes(row->type);
    const bool is_part = row->call == KN_NCCL_REDUCE_SCATTER || row->call == KN_NCCL_ALL_GATHER;
    return is_part ? elements / b->ranks : elements;
}

static tol_status collectives_bench_run_ours(struct bench *b, const struct row *row,
                                             const struct kn_collective_part *parts) {
    const size_t count = collectives_bench_count_of(b, row);
    switch (row->call) {
    case KN_NCCL_REDUCE_SCATTER:
        return kn_reduce_scatter(b->collective, parts, count, row->type);
    case KN_NCCL_ALL_GATHER:
        return kn_all_gather(b->collective, parts, count, row->type);
    case KN_NCCL_BROADCAST:
        return kn_broadcast(b->collective, parts, 0, count, row->type);
    default:
        return kn_all_reduce(b->collective, parts, count, row->type);
    }
}

/* The seconds of one of `calls` that are queued together, with the wait. */
static tol_status collectives_bench_time_calls(struct bench *b, const struct row *row, bool is_nccl,
                                               unsigned calls, double *seconds) {
    struct kn_collective_part parts[RANKS_MAX];
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < b->ranks; i++) {
        parts[i] = (struct kn_collective_part){kn_place_of(b->in[i], 0), kn_place_of(b->out[i], 0),
                                               b->streams[i]};
    }
    const uint64_t begin_ns = tol_now_ns();
    for (unsigned i = 0; i < calls && status == TOL_OK; i++) {
        if (!is_nccl) {
            status = collectives_bench_run_ours(b, row, parts);
        } else if (!kn_nccl_run(b->nccl, row->call, parts, collectives_bench_count_of(b, row),
                                row->type)) {
            fprintf(stderr, "bench-collectives: NCCL refused a call\n");
            status = TOL_DRIVER_ERROR;
        }
    }
    /* The driver's own wait, for both sides: the runtime's may end 0.1 ms late. */
    for (unsigned i = 0; i < b->ranks && status == TOL_OK; i++) {
        status = tol_context_bind(b->contexts[i]);
        if (tol_driver_functions(b->driver)->cuStreamSynchronize(
                tol_stream_handle(b->streams[i])) != CUDA_SUCCESS) {
            status = TOL_DRIVER_ERROR;
        }
    }
    *seconds = (double)(tol_now_ns() - begin_ns) * 1e-9 / calls;
    return status == TOL_OK && !is_nccl ? kn_collective_wait(b->collective, DEADLINE_MS) : status;
}

static int collectives_bench_compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double collectives_bench_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, collectives_bench_compare);
    return values[count / 2];
}

static unsigned calls_of(const struct bench *b, size_t bytes) {
    enum { SMALL = 1 << 20 }; /* of which the last one's wait is a large part of a few */
    return bytes >= (size_t)256 << 20 ? 3 : b->is_soft ? 2 : bytes <= SMALL ? 100 : 20;
}

static tol_status collectives_bench_measure(struct bench *b, struct row *row) {
    double queued[2][TURNS_MAX], alone[2][TURNS_MAX];
    tol_status status = TOL_OK;
    const unsigned calls = calls_of(b, row->bytes);
    const unsigned sides = b->nccl != NULL ? 2 : 1;
    for (unsigned turn = 0; turn < b->turns + 1 && status == TOL_OK; turn++) {
        for (unsigned i = 0; i < sides && status == TOL_OK; i++) {
            const unsigned side = (turn + i) % sides;
            const size_t at = turn > 0 ? turn - 1 : 0; /* the first turn is warming up */
            status = collectives_bench_time_calls(b, row, side == 1, calls, &queued[side][at]);
            if (status == TOL_OK)
                status = collectives_bench_time_calls(b, row, side == 1, 1, &alone[side][at]);
        }
    }
    for (unsigned side = 0; side < sides && status == TOL_OK; side++) {
        row->us[side] = 1e6 * collectives_bench_median(queued[side], b->turns);
        row->alone_us[side] = 1e6 * collectives_bench_median(alone[side], b->turns);
    }
    return status;
}

/* ---- results ---- */

/* Inputs are 1 for rank 0, 2 for rank 1 and so on, as floats. */
static tol_status fill_inputs(struct bench *b) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < b->ranks && status == TOL_OK; i++) {
        const float value = (float)(i + 1);
        unsigned bits = 0;
        memcpy(&bits, &value, sizeof bits);
        status = tol_buffer_fill_at(b->in[i], 0, bits, sizeof bits, b->max_bytes / sizeof bits);
    }
    return status;
}

/* Whether all bytes of out of a rank, in pieces of 64 KiB at the beginning, at the end and between,
 * are the sum of all inputs. */
static bool collectives_bench_is_sum(const struct bench *b, unsigned rank, size_t bytes) {
    enum { FLOATS = 16384, PIECES = 16 };
    static float piece[FLOATS];
    const float sum = (float)(b->ranks * (b->ranks + 1) / 2);
    const size_t now = bytes < sizeof piece ? bytes : sizeof piece;
    for (size_t i = 0; i < PIECES; i++) {
        const size_t offset = (bytes - now) / 4 * i / (PIECES - 1) * 4;
        if (tol_buffer_read_at(b->out[rank], offset, piece, now) != TOL_OK) return false;
        for (size_t j = 0; j < now / sizeof *piece; j++) {
            if (!(piece[j] == sum)) return false;
        }
    }
    return true;
}

/* One more all-reduce into outputs that are NaN. */
static tol_status collectives_bench_verify(struct bench *b, const struct row *row) {
    double seconds = 0;
    tol_status status = TOL_OK;
    if (row->call != KN_NCCL_ALL_REDUCE || row->type != KN_F32) return TOL_OK;
    for (unsigned i = 0; i < b->ranks && status == TOL_OK; i++) {
        status = tol_buffer_fill_at(b->out[i], 0, 0xff, 1, row->bytes);
    }
    if (status == TOL_OK) status = collectives_bench_time_calls(b, row, false, 1, &seconds);
    for (unsigned i = 0; i < b->ranks && status == TOL_OK; i++) {
        if (collectives_bench_is_sum(b, i, row->bytes)) continue;
        printf("%zu bytes: the result of rank %u is WRONG\n", row->bytes, i);
        b->failures++;
    }
    return status;
}

/* ---- rows ---- */

static double bus_gb_per_s(const struct bench *b, const struct row *row, double us) {
    const double share = (b->ranks - 1.0) / b->ranks * (row->call == KN_NCCL_ALL_REDUCE ? 2 : 1);
    return us > 0 ? (double)row->bytes * share / us * 1e-3 : 0;
}

/* "held", "NOT held", or nothing where nothing is demanded. us are ours and NCCL's. */
static const char *collectives_bench_judge(struct bench *b, const struct row *row,
                                           const double *us) {
    if (row->call != KN_NCCL_ALL_REDUCE || row->type != KN_F32) return "";
    bool is_held = true;
    if (row->bytes >= RATE_FROM_BYTES) {
        is_held = us[1] / us[0] >= 0.9;
    } else if (row->bytes < TIME_BELOW_BYTES) {
        is_held = us[0] <= 0.5 * us[1];
    } else {
        return "";
    }
    b->failures += !is_held;
    return is_held ? "held" : "NOT held";
}

/* The row of processes, or NULL. */
static const struct kn_process_row *find_other(const struct bench *b, const struct row *row) {
    for (size_t i = 0; i < b->other_count; i++) {
        const struct kn_process_row *other = &b->others[i];
        if (other->call == row->call && other->type == row->type && other->bytes == row->bytes &&
            other->us[0] > 0) {
            return other;
        }
    }
    return NULL;
}

/* The rest of a line: NCCL's times and the verdict, where they were measured. */
static void show_nccl(struct bench *b, const struct row *row, const double *us,
                      const double *alone_us, const char *prefix) {
    if (!(us[1] > 0)) return;
    printf(" %10.2f %10.2f %9.2f %7.3f %s", us[1], alone_us[1], bus_gb_per_s(b, row, us[1]),
           us[1] / us[0], collectives_bench_judge(b, row, us));
    if (b->file == NULL) return;
    fprintf(b->file, ", \"%snccl_us\": %.3f, \"%snccl_alone_us\": %.3f, \"%sof_nccl\": %.4f",
            prefix, us[1], prefix, alone_us[1], prefix, us[1] / us[0]);
}

static void show_other(struct bench *b, const struct row *row) {
    const struct kn_process_row *other = find_other(b, row);
    if (other == NULL) return;
    printf("%-15s %-5s %11zu %10.2f %10.2f %9.2f", "  processes", kn_type_name(row->type),
           row->bytes, other->us[0], other->alone_us[0], bus_gb_per_s(b, row, other->us[0]));
    if (b->file != NULL) {
        fprintf(b->file, ", \"processes_us\": %.3f, \"processes_alone_us\": %.3f", other->us[0],
                other->alone_us[0]);
    }
    show_nccl(b, row, other->us, other->alone_us, "processes_");
    printf("  of one process: %.3f%s\n", row->us[0] / other->us[0],
           other->is_wrong ? ", and the result is WRONG" : "");
    b->failures += other->is_wrong;
}

static void collectives_bench_show(struct bench *b, const struct row *row) {
    printf("%-15s %-5s %11zu %10.2f %10.2f %9.2f", call_names[row->call], kn_type_name(row->type),
           row->bytes, row->us[0], row->alone_us[0], bus_gb_per_s(b, row, row->us[0]));
    if (b->file != NULL) {
        fprintf(b->file,
                "%s    {\"call\": \"%s\", \"type\": \"%s\", \"bytes\": %zu, \"us\": %.3f, "
                "\"alone_us\": %.3f, \"bus_gb_per_s\": %.3f",
                b->rows++ > 0 ? ",\n" : "", call_names[row->call], kn_type_name(row->type),
                row->bytes, row->us[0], row->alone_us[0], bus_gb_per_s(b, row, row->us[0]));
    }
    show_nccl(b, row, row->us, row->alone_us, "");
    printf("\n");
    show_other(b, row);
    fflush(stdout);
    if (b->file != NULL) fprintf(b->file, "}");
}

static tol_status try_row(struct bench *b, enum kn_nccl_call call, enum kn_type type,
                          size_t bytes) {
    struct row row = {.call = call, .type = type, .bytes = bytes};
    if (bytes > b->max_bytes) return TOL_OK;
    tol_status status = collectives_bench_measure(b, &row);
    if (status == TOL_OK) collectives_bench_show(b, &row);
    if (status == TOL_OK) status = collectives_bench_verify(b, &row);
    return status;
}

static size_t list_rows(const struct bench *b, struct kn_process_row *rows) {
    static const size_t others[] = {64 << 10, 256 << 10, 1 << 20,  2 << 20,
                                    4 << 20,  16 << 20,  256 << 20};
    enum { OTHERS = sizeof others / sizeof others[0] };
    size_t count = 0;
    for (size_t bytes = 64; bytes <= (size_t)1 << 30 && bytes <= b->max_bytes; bytes *= 4) {
        rows[count++] = (struct kn_process_row){KN_NCCL_ALL_REDUCE, KN_F32, bytes, .calls = 0};
    }
    for (size_t i = 0; i < 4 * OTHERS; i++) {
        if (others[i % OTHERS] > b->max_bytes) continue;
        rows[count++] = (struct kn_process_row){(enum kn_nccl_call)(i / OTHERS), KN_BF16,
                                                others[i % OTHERS], .calls = 0};
    }
    for (size_t i = 0; i < count; i++) rows[i].calls = calls_of(b, rows[i].bytes);
    return count;
}

static tol_status try_rows(struct bench *b) {
    struct kn_process_row rows[KN_PROCESS_ROWS_MAX];
    const size_t count = list_rows(b, rows);
    /* The first calls of a process take longer, whatever their size. */
    enum { WARM_TURNS = 10 };
    struct row first = {.call = rows[0].call, .type = rows[0].type, .bytes = rows[0].bytes};
    tol_status status = TOL_OK;
    for (int i = 0; i < WARM_TURNS && !b->is_soft && status == TOL_OK; i++) {
        status = collectives_bench_measure(b, &first);
    }
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        status = try_row(b, rows[i].call, rows[i].type, rows[i].bytes);
    }
    return status;
}

/* Rows in processes; without the driver's answers, which may not be opened yet, for a GPU. */
static bool try_processes(struct bench *b) {
    char reason[600] = "";
    struct bench chosen = *b;
    chosen.is_soft = b->library != NULL || access("/dev/nvidiactl", F_OK) != 0;
    if (chosen.max_bytes == 0) chosen.max_bytes = (size_t)(chosen.is_soft ? 1 : 1024) << 20;
    b->other_count = list_rows(&chosen, b->others);
    const unsigned turns = b->turns > 0 ? b->turns : chosen.is_soft ? 3 : 11;
    const bool ok =
        kn_processes_measure(b->library, b->others, b->other_count, turns, reason, sizeof reason);
    if (reason[0] != '\0') fprintf(stderr, "bench-collectives: %s\n", reason);
    return ok;
}

/* Other numbers of blocks, and a ring, for those who choose the defaults. */
static tol_status try_choices(struct bench *b) {
    static const struct kn_collective_options choices[] = {{.way = KN_WAY_DIRECT},
                                                           {.way = KN_WAY_DIRECT, .blocks = 32},
                                                           {.way = KN_WAY_DIRECT, .blocks = 64},
                                                           {.way = KN_WAY_DIRECT, .blocks = 132},
                                                           {.way = KN_WAY_DIRECT, .blocks = 528},
                                                           {.way = KN_WAY_RING}};
    tol_status status = TOL_OK;
    struct kn_nccl *nccl = b->nccl;
    b->nccl = NULL;
    b->other_count = 0;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0] && status == TOL_OK; i++) {
        kn_collective_destroy(b->collective);
        b->collective = NULL;
        status = kn_collective_create(b->contexts, b->ranks, &choices[i], &b->collective);
        printf("by %s, %u blocks (0: two a multiprocessor)\n",
               kn_collective_way_name(choices[i].way), choices[i].blocks);
        for (size_t bytes = 256 << 10; bytes <= (size_t)1 << 30 && status == TOL_OK; bytes *= 64) {
            status = try_row(b, KN_NCCL_ALL_REDUCE, KN_F32, bytes);
        }
    }
    b->nccl = nccl;
    return status;
}

/* ---- the program ---- */

static tol_status collectives_bench_open_devices(struct bench *b) {
    int count = 0;
    tol_status status = tol_any_driver_open(b->library, &b->driver, NULL);
    if (status != TOL_OK) return status;
    b->is_soft = tol_driver_is_soft(b->driver);
    if (b->max_bytes == 0) b->max_bytes = (size_t)(b->is_soft ? 1 : 1024) << 20;
    if (b->turns == 0) b->turns = b->is_soft ? 3 : 11;
    status = tol_device_count(b->driver, &count);
    if (count > RANKS_MAX) count = RANKS_MAX;
    b->ranks = (unsigned)count;
    for (int i = 0; i < count && count > 1 && status == TOL_OK; i++) {
        status = tol_context_create(b->driver, i, &b->contexts[i]);
        if (status == TOL_OK) status = tol_stream_create(b->contexts[i], NULL, &b->streams[i]);
        if (status == TOL_OK) {
            status = tol_buffer_create(b->contexts[i], b->max_bytes, 1, &b->in[i]);
        }
        if (status == TOL_OK) {
            status = tol_buffer_create(b->contexts[i], b->max_bytes, 1, &b->out[i]);
        }
    }
    if (status == TOL_OK) status = fill_inputs(b);
    if (count < 2 || status != TOL_OK) return status;
    return kn_collective_create(b->contexts, b->ranks, NULL, &b->collective);
}

static void close_devices(struct bench *b) {
    kn_nccl_close(b->nccl);
    kn_collective_destroy(b->collective);
    for (unsigned i = 0; i < b->ranks; i++) {
        tol_buffer_destroy(b->in[i]);
        tol_buffer_destroy(b->out[i]);
        tol_stream_destroy(b->streams[i]);
        tol_context_destroy(b->contexts[i]);
    }
    tol_driver_close(b->driver);
}

static bool collectives_bench_read_options(struct bench *b, int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--processes") == 0) {
            b->has_processes = true;
            i--;
            continue;
        }
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        const size_t number = value != NULL ? (size_t)strtoull(value, NULL, 10) : 0;
        if (value == NULL) return false;
        if (strcmp(argv[i], "--library") == 0) {
            b->library = value;
        } else if (strcmp(argv[i], "--json") == 0) {
            b->json = value;
        } else if (strcmp(argv[i], "--max") == 0 && number > 0 && number <= 1 << 16) {
            b->max_bytes = number << 20;
        } else if (strcmp(argv[i], "--turns") == 0 && number > 0 && number <= TURNS_MAX) {
            b->turns = (unsigned)number;
        } else {
            return false;
        }
    }
    return true;
}

static tol_status collectives_bench_run(struct bench *b) {
    char reason[200] = "the soft device is no device of NCCL's";
    if (!b->is_soft) b->nccl = kn_nccl_open(b->ranks, reason, sizeof reason);
    /* NCCL makes contexts current without the runtime's knowledge. */
    if (tol_context_bind(b->contexts[0]) != TOL_OK) return TOL_DRIVER_ERROR;
    printf("%u of %s; NCCL: ", b->ranks, tol_context_device(b->contexts[0])->name);
    if (b->nccl != NULL) {
        printf("version %d, without multicast\n", kn_nccl_version(b->nccl));
    } else {
        printf("%s\n", reason);
    }
    printf("%-15s %-5s %11s %10s %10s %9s %10s %10s %9s %7s\n", "", "", "bytes", "us", "alone us",
           "bus GB/s", "NCCL us", "alone us", "bus GB/s", "of NCCL");
    const tol_status status = try_rows(b);
    return status == TOL_OK ? try_choices(b) : status;
}

int main(int argc, char **argv) {
    struct bench b = {.turns = 0};
    int code = 1;
    if (!collectives_bench_read_options(&b, argc, argv)) {
        fprintf(stderr, "usage: bench-collectives [--library PATH] [--json FILE] [--max MIB] "
                        "[--turns N] [--processes]\n");
        return 2;
    }
    setenv("TOLLENS_SOFT_DEVICES", "2", 0);
    if (b.has_processes && !try_processes(&b)) return 1;
    tol_status status = collectives_bench_open_devices(&b);
    if (status == TOL_OK && b.ranks < 2) {
        printf("there is one device only\n");
        code = 3;
    } else if (status == TOL_OK) {
        b.file = b.json != NULL ? fopen(b.json, "w") : NULL;
        if (b.file != NULL) fprintf(b.file, "{\"ranks\": %u, \"rows\": [\n", b.ranks);
        status = collectives_bench_run(&b);
        if (b.file != NULL) fprintf(b.file, "\n]}\n");
        code = status != TOL_OK || b.failures > 0;
        printf("%u rows do not hold what is demanded\n", b.failures);
        if ((b.file == NULL) != (b.json == NULL) || (b.file != NULL && fclose(b.file) != 0)) {
            fprintf(stderr, "bench-collectives: %s cannot be written\n", b.json);
            code = 2;
        }
    }
    if (status != TOL_OK) fprintf(stderr, "bench-collectives: %s\n", tol_message());
    close_devices(&b);
    return code;
}
