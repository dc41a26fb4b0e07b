/*
 * Device: what the driver says about one GPU, read once into a plain struct.
 *
 * All functions are thread-safe and need no context. Source: spec 004 CRT-002, D-31.
 */
#ifndef TOLLENS_DEVICE_H
#define TOLLENS_DEVICE_H

#include "driver.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The oldest compute capability a context accepts: 7.0, Volta, the first with independent thread
 * scheduling. */
enum { TOL_COMPUTE_CAPABILITY_MIN = 70 };

struct tol_device {
    char name[128];
    char pci_bus_id[32];    /* "0000:3b:00.0"; "" where the driver gives none */
    int ordinal;            /* the driver's number for it, from 0 */
    int compute_capability; /* 10 * major + minor: 90 for an H200 */
    uint64_t memory_bytes;  /* all of it, in use or not */
    int multiprocessors;
    int warp_threads;
    int block_threads_max;
    int block_max[3]; /* x, y, z */
    int grid_max[3];  /* x, y, z */
    int multiprocessor_threads_max;
    int multiprocessor_blocks_max;
    int shared_bytes_per_block;       /* without asking for more */
    int shared_bytes_per_block_optin; /* after tol_kernel_allow_shared */
    int shared_bytes_per_multiprocessor;
    int registers_per_block;
    int constant_bytes;
    int l2_bytes;
    int clock_khz; /* nominal; 0 where the driver no longer says */
    int memory_clock_khz;
    int memory_bus_bits;
    int copy_engines;
    bool concurrent_kernels;
    bool ecc;
    bool unified_addressing;
    bool cooperative_launch;
    bool virtual_memory_management;
    bool memory_pools;
    bool cluster_launch;
};

/* How many devices the driver sees. TOL_DRIVER_ERROR when it cannot say. */
TOL_API tol_status tol_device_count(const struct tol_driver *driver, int *count);

/*
 * Reads device ordinal into *device, which is written only on success. Devices below
 * TOL_COMPUTE_CAPABILITY_MIN are described too; only a context refuses them.
 * TOL_NO_DEVICE: ordinal is not below the count; the message has both numbers.
 */
TOL_API tol_status tol_device_read(const struct tol_driver *driver, int ordinal,
                                   struct tol_device *device);

#ifdef __cplusplus
}
#endif
#endif
