/*
 * Kernel bench: what an operation of kernels/ costs, beside the best that the same run reaches.
 *
 * An operation is a file that times its shapes:
 *
 *     static tol_status run(struct kn_bench *bench) { ... kn_bench_measure(bench, &row, ...); }
 *     KN_BENCH(softmax, run)
 *
 * Linking its object registers it (KERNELS_BENCH in ci/building/kernel_sources.py). Each
 * row has a ceiling: a copy on the device, measured first, if it is bound by memory; cuBLAS for a
 * product of matrices, if a library is found; or an earlier row. One thread. Internal: not
 * installed.
 */
#ifndef KN_KERNEL_BENCH_H
#define KN_KERNEL_BENCH_H

#include "bench_limits.h"
#include "choose/kernel_set.h"
#include "number.h"

enum { KN_BENCH_SETS_MAX = 64 };

/* One measurement. */
struct kn_bench_row {
    const char *operation;   /* "gemm" */
    char shape[64];          /* "f32 4096 x 4096 x 4096 nn" */
    char variant[32];        /* "vector"; "cublas" */
    double operations;       /* floating-point ones, of a launch; 0: not shown */
    enum kn_bench_rate rate; /* what does them at best, for the roofline */
    double bytes;            /* that must be read from and written to device memory; 0: not shown */
    size_t turns;            /* sets of buffers, which launches use in turn; 0: no roofline */
    double turn_bytes;       /* of a set; 0: as many as bytes */
    char problem[96];        /* what a peer in another process prepares (bench_peer.h); "": none */
    double ggml_us;          /* of ggml's product, in another run; 0: not shown */
    double ceiling_us;       /* of a launch at its ceiling; 0: there is none */
    double of_ceiling[3];    /* ceiling_us / us, and its interval; with a peer only */
    const char *ceiling;     /* its name: "copy", "cublas" */
    double alike_us;         /* of moving as many bytes and nothing else; 0: not shown */
    const char *alike;       /* its name: "reading as much" (alike.h) */
    double us;               /* the median, set by kn_bench_measure */
    char beside[24];     /* what the peer in another process is, "cudnn"; "": it has no figure */
    double beside_us;    /* its median */
    double of_beside[3]; /* beside_us / us, and its interval */
    char without[160];   /* why the peer has no figure, although there is one; "" otherwise */
};

struct kn_bench {
    struct tol_context *context;
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    bool is_small;                /* the soft device: small shapes that only show that it works */
    const char *library;          /* the driver's path; NULL: the platform's, or the soft device */
    const char *cublas;           /* a path; NULL: the loader's search */
    const char *filter;           /* rows with this in "operation shape variant"; NULL: all */
    double copy_bytes_per_us;     /* of a copy on the device, read plus written */
    struct kn_bench_state *state; /* rows so far, events */
};

/* Whether the filter admits a row. Rows that it excludes need no buffers. */
bool kn_bench_wants(const struct kn_bench *bench, const struct kn_bench_row *row);

/* What a row is compared with: batches of both alternate, since a device that reaches the limit of
 * its power becomes slower in the course of a run. */
struct kn_bench_peer {
    const char *name; /* "cublas" */
    tol_status (*launch)(void *user, size_t turn);
    void *user;
};

/*
 * Times a launch and keeps the row: the median over batches. A batch is between two events and has
 * enough launches to take a fifth of a millisecond. turn counts the launches, so that they can go
 * round buffers that together exceed the L2 cache. A row with bytes but without operations or a
 * ceiling gets the copy as its ceiling. A figure that the device cannot reach (bench_limits.h)
 * fails the run at its end.
 */
tol_status kn_bench_measure(struct kn_bench *bench, struct kn_bench_row *row,
                            tol_status (*launch)(void *user, size_t turn), void *user);

/*
 * The same beside a peer, whose median becomes the ceiling. of_ceiling is the median of the ratios
 * of neighbouring batches, and the interval that holds the true median with a probability of 0.95,
 * by order statistics. A peer without a launch is none.
 *
 * Both also time the row's problem by the peer in another process, where there is one: its batches
 * are between the others, and its results are checked after them. One that fails takes only its
 * own figures with it.
 */
tol_status kn_bench_compare(struct kn_bench *bench, struct kn_bench_row *row,
                            tol_status (*launch)(void *user, size_t turn), void *user,
                            const struct kn_bench_peer *peer);

/* Prints and keeps a row whose time is the host's, and has no ceiling. */
void kn_bench_keep(struct kn_bench *bench, const struct kn_bench_row *row);

/* ggml's time of a product in the file of --ggml, for a row's ggml_us; 0: there is none. */
double kn_bench_ggml_us(const struct kn_bench *bench, const char *type, size_t m, size_t n,
                        size_t k);

/* The number of sets of set_bytes that together are at least three times the L2 cache. */
size_t kn_bench_sets(const struct kn_bench *bench, size_t set_bytes);

/* Creates a buffer of normally distributed elements, determined by the seed. The caller destroys
 * it. */
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
