/*
 * Rooflines: the least time in which a device can do a number of operations, or move a number of
 * bytes. A figure below it was not measured right.
 *
 * Sources: NVIDIA H100 Tensor Core GPU Architecture (whitepaper), operations of a multiprocessor in
 * a cycle; the driver, for clocks, multiprocessors, the memory's bus and the L2 cache. Pure; any
 * thread. Internal: not installed.
 */
#ifndef KN_BENCH_LIMITS_H
#define KN_BENCH_LIMITS_H

#include "tollens.h"

/* What does the operations at best. Zero is the fastest, for rows that do not say. */
enum kn_bench_rate {
    KN_RATE_BYTES,  /* tensor cores, e4m3 or whole numbers of 8 bits */
    KN_RATE_HALVES, /* tensor cores, fp16 or bf16 */
    KN_RATE_TF32,   /* tensor cores, tf32 */
    KN_RATE_FLOATS, /* fused multiply-adds of fp32 */
    KN_RATES
};

/* A batch of launches, which use sets of buffers in turn. */
struct kn_bench_work {
    enum kn_bench_rate rate;
    double operations; /* of a launch; 0: none are known */
    size_t turns;      /* sets of buffers; 0: what is moved is not known */
    double turn_bytes; /* of one set: what a launch must read or write, each byte counted once */
    size_t launches;
};

/* Microseconds that a launch of the batch takes at least, of all that is known; 0 on the soft
 * device, and where nothing is known: operations on compute capabilities other than 9.0, bytes
 * where the driver reports no memory clock, or where all sets fit into the L2 cache. */
double kn_bench_least_us(const struct tol_device *device, const struct kn_bench_work *work);

#endif
