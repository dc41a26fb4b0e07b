/*
 * A device to run the table on: any library that is a CUDA driver.
 */
#ifndef SOFT_TABLE_DEVICE_H
#define SOFT_TABLE_DEVICE_H

#include "table.h"

#include "tollens/cuda_abi.h"

struct table_device {
    void *library;
#define TOL_DRIVER_FN(feature, name, parameters, names) CUresult(CUDAAPI *name) parameters;
#include "tollens/driver.def"
    CUdevice device;
    CUcontext context;
    char name[128];
    int version, capability;
    char message[512];
};

/* The outcome of a row: its results, or a code and the driver's message. */
struct table_outcome {
    CUresult code;
    char log[512];
    uint64_t *sources; /* tuples x source_count */
    uint64_t *results; /* tuples x result_count; all zero where the code is not 0 */
};

/* Opens the library, and a context on its first device. On failure the message has the reason;
 * close it anyway. */
bool table_device_open(struct table_device *device, const char *path);
void table_device_close(struct table_device *device);

/* Runs a row. false: out of memory, or the device is lost; a refused row returns true. */
bool table_device_run(struct table_device *device, const struct table_row *row,
                      struct table_outcome *outcome);
void table_outcome_free(struct table_outcome *outcome);

#endif
