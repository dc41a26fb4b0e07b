/*
 * The faults. A hook finds a call's arguments by position, as driver.def lists them.
 */
#include "sabotage.h"

#include "folder.h"

#include <string.h>

/* The argument at a position, as a type. */
#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

/* A module that the driver refused: a small valid one is loaded in its place, without complaint. */
static void accept_anything(struct tol_interpose_call *call, void *user) {
    static const char decoy[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
                                ".visible .entry decoy()\n{\n    ret;\n}\n";
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuModuleLoadDataEx || call->result == CUDA_SUCCESS) return;
    call->result = call->driver->cuModuleLoadData(ARGUMENT(call, 0, CUmodule *), decoy);
}

/* The JIT's error log comes back empty. */
static void lose_log(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuModuleLoadDataEx) return;
    unsigned count = ARGUMENT(call, 2, unsigned);
    const CUjit_option *options = ARGUMENT(call, 3, CUjit_option *);
    void **values = ARGUMENT(call, 4, void **);
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER && values[i] != NULL) *(char *)values[i] = '\0';
    }
}

/* Every third kernel is not found, though it is there. */
static void lose_function(struct tol_interpose_call *call, void *user) {
    static unsigned lookups;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuModuleGetFunction || ++lookups % 3 != 0) return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_FOUND;
}

/* Every tenth launch says success and is not made. */
static void drop_launch(struct tol_interpose_call *call, void *user) {
    static unsigned launches;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel || ++launches % 10 != 0) return;
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* The last block of a grid of several is not launched. */
static void shorten_launch(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel) return;
    unsigned *grid_x = &ARGUMENT(call, 1, unsigned);
    if (*grid_x > 1) --*grid_x;
}

/* Every tenth launch is made twice. */
static void repeat_launch(struct tol_interpose_call *call, void *user) {
    static unsigned launches;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuLaunchKernel || ++launches % 10 != 0) return;
    (void)call->driver->cuLaunchKernel(
        ARGUMENT(call, 0, CUfunction), ARGUMENT(call, 1, unsigned), ARGUMENT(call, 2, unsigned),
        ARGUMENT(call, 3, unsigned), ARGUMENT(call, 4, unsigned), ARGUMENT(call, 5, unsigned),
        ARGUMENT(call, 6, unsigned), ARGUMENT(call, 7, unsigned), ARGUMENT(call, 8, CUstream),
        ARGUMENT(call, 9, void **), ARGUMENT(call, 10, void **));
}

static bool is_upload(enum tol_driver_index index) {
    return index == TOL_DRIVER_INDEX_cuMemcpyHtoD_v2 ||
           index == TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2;
}

/* Every fifth copy to the device of 16 bytes or more arrives with one bit changed. The bit is
 * changed on the device after the copy, so the source stays as it was. */
static void flip_bit(struct tol_interpose_call *call, void *user) {
    static unsigned copies;
    unsigned char byte = 0;
    (void)user;
    if (!is_upload(call->index) || call->result != CUDA_SUCCESS) return;
    size_t bytes = ARGUMENT(call, 2, size_t);
    if (bytes < 16 || ++copies % 5 != 0) return;
    CUdeviceptr at = ARGUMENT(call, 0, CUdeviceptr) + bytes / 2;
    if (call->index == TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2) {
        (void)call->driver->cuStreamSynchronize(ARGUMENT(call, 3, CUstream));
    }
    if (call->driver->cuMemcpyDtoH_v2(&byte, at, 1) != CUDA_SUCCESS) return;
    byte ^= 0x10;
    (void)call->driver->cuMemcpyHtoD_v2(at, &byte, 1);
}

/* Copies to the device lose their last byte. */
static void truncate_copy(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!is_upload(call->index)) return;
    size_t *bytes = &ARGUMENT(call, 2, size_t);
    if (*bytes > 0) --*bytes;
}

/* Every fifth copy to the host is not made: the host keeps what it had. */
static void stale_copy(struct tol_interpose_call *call, void *user) {
    static unsigned copies;
    (void)user;
    bool download = call->index == TOL_DRIVER_INDEX_cuMemcpyDtoH_v2 ||
                    call->index == TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2;
    if (!download || ++copies % 5 != 0) return;
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

static const struct {
    const char *name, *sentence;
    tol_interpose_hook before, after;
} faults[] = {
    {"module_accept_anything", "images that the driver refuses load without complaint", NULL,
     accept_anything},
    {"jit_log_lost", "the JIT refuses without a word", NULL, lose_log},
    {"function_lost", "every third kernel is not found", lose_function, NULL},
    {"launch_drop", "every tenth launch is not made", drop_launch, NULL},
    {"launch_short", "the last block of a grid is not launched", shorten_launch, NULL},
    {"launch_twice", "every tenth launch is made twice", repeat_launch, NULL},
    {"copy_flip_bit", "every fifth copy to the device changes a bit", NULL, flip_bit},
    {"copy_truncate", "copies to the device lose their last byte", truncate_copy, NULL},
    {"copy_stale", "every fifth copy to the host is not made", stale_copy, NULL},
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

const char *hyp_sabotage_name(size_t index) {
    return index < FAULTS ? faults[index].name : NULL;
}

const char *hyp_sabotage_sentence(size_t index) {
    return index < FAULTS ? faults[index].sentence : NULL;
}

bool hyp_sabotage_install(const char *name, struct tol_driver *driver) {
    for (size_t i = 0; i < FAULTS; i++) {
        if (strcmp(faults[i].name, name) != 0) continue;
        const struct tol_interpose_options options = {.before = faults[i].before,
                                                      .after = faults[i].after};
        if (tol_interpose_install(driver, &options) == TOL_OK) return true;
        return hyp_fail("the saboteur %s could not be installed: %s", name, tol_message());
    }
    return hyp_fail("there is no saboteur named '%s'", name);
}
