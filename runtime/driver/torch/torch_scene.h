/*
 * What the tests of libtollens-torch.so share: the library, loaded as PyTorch loads it, beside the
 * test program; the driver's functions; what the soft device has found.
 */
#ifndef TOLLENS_TORCH_SCENE_H
#define TOLLENS_TORCH_SCENE_H

#include "test/test_device.h"
#include "tollens/torch.h"

enum { TORCH_KIB = 1 << 10, TORCH_MIB = 1 << 20 };

/* The library's functions, looked up by their names. */
struct torch_library {
    void *(*allocate)(size_t, int, void *);
    void *(*allocate_or_throw)(size_t, int, void *);
    void (*free)(void *, size_t, int, void *);
    void (*record_stream)(void *, void *);
    void (*begin_pool)(int, struct tol_torch_pool_id, void *);
    void (*end_pool)(int, struct tol_torch_pool_id);
    void (*release_pool)(int, struct tol_torch_pool_id);
    void (*empty_cache)(void);
    void (*set_fraction)(double, int);
    void *(*base)(void *, size_t *);
    void (*init)(int);
    size_t (*statistics)(char *, size_t);
    void (*reset_peaks)(int);
    const char *(*last_error)(void);
};

/* Loads the library with the tests' driver, and the soft device's checks of the order of streams
 * with a report. devices: how many the soft device has. To be called first. */
const struct torch_library *torch_scene_open(unsigned devices);

/* The driver's functions, with the context of device 0 current. */
const struct tol_driver_table *torch_scene_driver(void);

/* A non-blocking stream of the program's own, or a block that must be there. */
CUstream torch_scene_stream(void);
CUdeviceptr torch_scene_block(size_t bytes, CUstream stream);
void torch_scene_free(CUdeviceptr address, size_t bytes, CUstream stream);

/* A number of the statistics of a device; the test fails where it is not there. */
unsigned long long torch_scene_number(int device, const char *name);

/* The test fails where the soft device has reported anything since torch_scene_open. */
void torch_scene_must_be_clean(void);

#endif
