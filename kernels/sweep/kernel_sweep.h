/*
 * Kernel sweep: runs every kernel of every operation once or a few times, in one process, at the
 * smallest shapes that reach all its paths. It is meant to run under tools that slow a process down
 * a hundred times.
 *
 * A group is one file of cases. A case runs one variant of an operation by name, on outputs that
 * begin as NaN between guard zones, and compares the result with the oracle. The launches are
 * counted from the driver's calls (launched.h) and compared with the entries of the images.
 * One thread. Internal: not installed.
 */
#ifndef KN_KERNEL_SWEEP_H
#define KN_KERNEL_SWEEP_H

#include "decode/paged.h"
#include "deviation.h"
#include "choose/kernel_set.h"
#include "rounds.h"

#include <time.h>

struct sweep {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    const char *filter; /* run the cases with this in their names; NULL: all */
    uint64_t random;    /* state of kn_random */
    char name[160];     /* of the current case */
    size_t launches;    /* of all kernels, before the current case */
    size_t cases, wrong;
    size_t skipped; /* cases that the device is too old for */
    size_t unread;  /* cases that copied nothing to the host, so that nothing is compared */
    struct rounds rounds;
    bool says_entries; /* print what each case launched and the processor's time that it took */
    clock_t begun;     /* of the current case */
};

/* Begins a case and sets its name. false: the filter excludes it. */
bool sweep_begin(struct sweep *sweep, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends a case and prints its line. touched: bytes written outside the output. A case that launched
 * nothing is wrong. On devices that are not of compute capability 9.0 one that is refused is
 * skipped. */
void sweep_judge(struct sweep *sweep, tol_status status, const struct kn_deviation *deviation,
                 size_t touched);

/* ---- the groups ------------------------------------------------------------------------------ */

void sweep_gemm(struct sweep *sweep);
void sweep_grouped(struct sweep *sweep);
void sweep_attention(struct sweep *sweep);
void sweep_packed(struct sweep *sweep);
void sweep_pages(struct sweep *sweep);
void sweep_e4m3(struct sweep *sweep);
void sweep_quant(struct sweep *sweep);
void sweep_rows(struct sweep *sweep);
void sweep_decoder(struct sweep *sweep);
void sweep_checksum(struct sweep *sweep);
void sweep_seal(struct sweep *sweep);
void sweep_collective(struct sweep *sweep);
void sweep_model(struct sweep *sweep);
/* What a cache makes of element i of a value: in one of bytes, 32 share a scale. */
double sweep_cached(const float *values, size_t i, enum kn_cache cache);
/* Called by sweep_attention: it is of its group. */
void sweep_combine(struct sweep *sweep);
/* Called by sweep_model: they are of its group. */
void sweep_rounded(struct sweep *sweep);
void sweep_draw(struct sweep *sweep);
void sweep_halves(struct sweep *sweep);

#endif
