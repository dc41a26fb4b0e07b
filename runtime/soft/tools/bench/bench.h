/*
 * Bench: how fast the soft device is. Never a test: machines differ, and so do their loads.
 *
 * A measurement runs in a process of its own, because the device reads its settings once; the
 * parent runs all of them several times over, one after the other, and keeps the best of each. What
 * is compared was so measured side by side.
 */
#ifndef SOFT_BENCH_H
#define SOFT_BENCH_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_KERNELS_MAX = 16 };

struct bench_figure {
    double ms;             /* of one launch and the wait for it; 0: not measured */
    double cpu_ms;         /* what processors have spent on it, all together */
    uint64_t instructions; /* PTX instructions that warps have executed in it */
    double products;       /* of wgmma: multiply-adds in it; else look-ups or atomics, or 0 */
};

/* What one process measures. */
struct bench_figures {
    struct bench_figure kernels[BENCH_KERNELS_MAX];
    double launch_us;  /* an empty launch and the wait for it */
    double enqueue_us; /* a launch, of a thousand with one wait for all */
    double load_ms;    /* of all modules */
    uint64_t modules, module_bytes;
    double slowest_ms; /* of them */
    char slowest[64];
    bool ok;
};

/* ---- bench_kernels.c ---- */

unsigned bench_kernel_count(void);
const char *bench_kernel_name(unsigned kernel);

/* Measures the kernel of that name, or all (NULL). false: a call failed or a result is wrong; the
 * reason was printed on stderr. */
bool bench_kernels(const char *only, struct bench_figures *figures);

/* ---- bench_gemm.c ---- */

/* Measures the product of matrices by tensor maps and wgmma, of 512 rows and columns. The same. */
bool bench_gemm(struct bench_figure *figure);

/* ---- bench_lookups.c ---- */

/* Texture reads and atomics. Measures one of them. The same. */
unsigned bench_lookup_count(void);
const char *bench_lookup_name(unsigned lookup);
bool bench_lookup(unsigned lookup, struct bench_figure *figure);

/* ---- bench_calls.c ---- */

/* Measures launches of an empty kernel. */
bool bench_launches(struct bench_figures *figures);

/* Measures the loading of all PTX under fixtures/ptx that is meant to load. */
bool bench_loads(struct bench_figures *figures);

/* Opens the device and makes it current. */
bool bench_open(void);

/* The text of a file, ended by a zero; NULL if it cannot be read. Free it. */
char *bench_read(const char *path);

/* Now, in seconds; and the time that all threads of this process have run so far. */
double bench_now(void);
double bench_cpu(void);

/* Says on stderr which call has failed. */
bool bench_failed(const char *what, int result);

#endif
