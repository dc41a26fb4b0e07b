/*
 * Peer driver: functions of libcuda for memory of other devices and other processes, which the
 * runtime itself does not use, in a table of their own. The driver is one that is loaded already,
 * or, in the other process, one by its path. A driver may lack some: they are NULL.
 *
 * Errors: the functions return the driver's codes. Threads: as the driver's.
 */
#ifndef HYP_PEER_DRIVER_H
#define HYP_PEER_DRIVER_H

#include "cuda_abi.h"

#include <stdbool.h>

/* CUipcMemHandle, CUipcEventHandle and CUmemPoolPtrExportData have one layout: 64 opaque bytes. */
struct peer_handle {
    char reserved[64];
};

/* Values of cuda.h that the runtime has no use for. */
enum {
    PEER_HANDLE_POSIX_FD = 1,       /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
    PEER_ACCESS_READ = 1,           /* CU_MEM_ACCESS_FLAGS_PROT_READ */
    PEER_IPC_LAZY_ENABLE = 1,       /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
    PEER_P2P_ATOMICS_SUPPORTED = 3, /* CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED */
};

struct peer_driver {
#define PEER_CALL(name, parameters) CUresult(CUDAAPI *name) parameters;
#include "peer_calls.def"
#undef PEER_CALL
};

/* Fills the table from the library at path. Returns the number of functions that it lacks, or -1
 * if it cannot be loaded. */
int peer_driver_open(const char *path, struct peer_driver *driver);

/* Pinned memory of a device in whole granules, mapped at an address of its own. */
struct peer_mapping {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t bytes;
};

/* Creates memory of at least bytes on a device, exportable as a file descriptor if is_shared, and
 * reserves an address for it. Undo with peer_mapping_end, also after a failure. */
CUresult peer_mapping_create(const struct peer_driver *driver, int device, size_t bytes,
                             bool is_shared, struct peer_mapping *mapping);

/* Reserves an address for memory that was imported; mapping->handle and ->bytes are set. */
CUresult peer_mapping_place(const struct peer_driver *driver, struct peer_mapping *mapping);

/* Gives a device access with CU_MEM_ACCESS_FLAGS_... */
CUresult peer_mapping_allow(const struct peer_driver *driver, const struct peer_mapping *mapping,
                            int device, int flags);
void peer_mapping_end(const struct peer_driver *driver, struct peer_mapping *mapping);

#endif
