/*
 * Device: the properties of one GPU, read from the driver into a plain struct.
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

/* The lowest compute capability that a context accepts: 7.5 (Turing), the oldest that the nvcc of
 * CUDA 13 compiles for, and so the oldest that the library of kernels has code for. */
enum { TOL_COMPUTE_CAPABILITY_MIN = 75 };

/* The properties of a device. */
struct tol_device {
    char name[128];
    char pci_bus_id[32];    /* "0000:3b:00.0"; "" if the driver reports none */
    int ordinal;            /* the driver's device number, from 0 */
    int compute_capability; /* 10 * major + minor: 90 for an H200 */
    uint64_t memory_bytes;  /* total memory */
    int multiprocessors;
    int warp_threads;
    int block_threads_max;
    int block_max[3]; /* x, y, z */
    int grid_max[3];  /* x, y, z */
    int multiprocessor_threads_max;
    int multiprocessor_blocks_max;
    int shared_bytes_per_block;       /* default limit */
    int shared_bytes_per_block_optin; /* limit for tol_kernel_allow_shared */
    int shared_bytes_per_multiprocessor;
    int registers_per_block;
    int constant_bytes;
    int l2_bytes;
    int clock_khz; /* nominal; 0 if the driver does not report it */
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
    bool soft;     /* the soft device, which runs kernels on the CPU (tol_driver_is_soft) */
    char uuid[48]; /* "GPU-" and 36 characters, as nvidia-smi prints it; of a part of a GPU (MIG)
                    * the part's own 16 bytes, with "GPU-" before them too */
};

/* Gets the number of devices. TOL_DRIVER_ERROR: the driver does not report it. */
TOL_API tol_status tol_device_count(const struct tol_driver *driver, int *count);

/*
 * Reads the properties of device ordinal into *device, which is written only on success. It reads
 * devices below TOL_COMPUTE_CAPABILITY_MIN too; only a context refuses them.
 * TOL_NO_DEVICE: ordinal is negative or not below the count; the message has both numbers.
 */
TOL_API tol_status tol_device_read(const struct tol_driver *driver, int ordinal,
                                   struct tol_device *device);

#ifdef __cplusplus
}
#endif
#endif
