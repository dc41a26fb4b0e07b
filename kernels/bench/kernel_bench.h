/*
 * Kernel bench: what an operation of kernels/ costs, beside the best that the same run can show.
 *
 * An operation is a file that says what to time:
 *
 *     static tol_status run(struct kn_bench *bench) { ... kn_bench_measure(bench, &row, ...); }
 *     KN_BENCH(softmax, run)
 *
 * and is there when its object is linked (KERNELS_BENCH in ci/sources.py). Each row has a ceiling:
 * for what is bound by memory a copy on the device, measured first; for a product of matrices
 * cuBLAS, where a library is found; or a row that was measured before it.
 * One thread. Internal: not installed.
 */
#ifndef KN_KERNEL_BENCH_H
#define KN_KERNEL_BENCH_H

#include "kernel_set.h"
#include "number.h"

enum { KN_BENCH_SETS_MAX = 64 };

/* What is timed once; what it was found to take. */
struct kn_bench_row {
    const char *operation; /* "gemm" */
    char shape[64];        /* "f32 4096 x 4096 x 4096 nn" */
    char variant[32];      /* "vector"; "cublas" */
    double operations;     /* floating-point ones, of a launch; 0: not told */
    double bytes;          /* that must come from and go to device memory; 0: not told */
    double ceiling_us;     /* what a launch would take at its ceiling; 0: there is none */
    const char *ceiling;   /* what that is: "copy", "cublas" */
    double alike_us;       /* what something takes that only moves as many bytes; 0: not told */
    const char *alike;     /* what that is: "reading as much" (alike.h) */
    double us;             /* the median: kn_bench_measure fills it in */
};

struct kn_bench {
    struct tol_context *context;
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    bool is_small;                /* the soft device: shapes that show that it works */
    const char *cublas;           /* a path, or NULL: the loader's own ways */
    const char *filter;           /* rows whose "operation shape variant" has this in it; or NULL */
    double copy_bytes_per_us;     /* read and written, of a copy on the device */
    struct kn_bench_state *state; /* rows so far, events */
};

/* Whether a row is wanted; nothing needs to be made for one that is not. */
bool kn_bench_wants(const struct kn_bench *bench, const struct kn_bench_row *row);

/*
 * Times a launch and keeps the row: the median over batches, each between two events and of so many
 * launches that it takes a fifth of a millisecond at least. turn counts the launches, so that what
 * is launched can go round buffers that together are larger than the L2 cache. A row without a
 * ceiling that has bytes and no operations gets the copy's.
 */
tol_status kn_bench_measure(struct kn_bench *bench, struct kn_bench_row *row,
                            tol_status (*launch)(void *user, size_t turn), void *user);

/* How many sets of buffers of so many bytes are together at least three times the L2 cache. */
size_t kn_bench_sets(const struct kn_bench *bench, size_t set_bytes);

/* A buffer of elements of a type, normally distributed, the same for a seed. Destroy it. */
tol_status kn_bench_buffer(struct kn_bench *bench, enum kn_type type, size_t count, uint64_t seed,
                           struct tol_buffer **buffer);

/* Registers an operation when the program starts. */
struct kn_bench_operation {
    const char *name;
    tol_status (*run)(struct kn_bench *bench);
    struct kn_bench_operation *next;
};
void kn_bench_register(struct kn_bench_operation *operation);
#define KN_BENCH(name_, run_)                                                                      \
    __attribute__((constructor)) static void register_bench(void) {                                \
        static struct kn_bench_operation operation = {.name = #name_, .run = run_};                \
        kn_bench_register(&operation);                                                             \
    }

#endif
