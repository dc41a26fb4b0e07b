/*
 * The bytes that kernels have read and written, if the driver reports them.
 */
#include "core/check.h"
#include "core/libcuda_state.h"
#include "watch_state.h"

static void on_kernel(const struct tol_accesses *accesses, void *user) {
    struct tol_watch *watch = user;
    struct watch_visit visit;
    watch_visit_begin(&visit, watch, NULL);
    visit.deed.now_ns = watch->options.now_ns();
    visit.deed.kernel_name = accesses->kernel;
    watch_lock_read(&watch->lock);
    struct watch_kernel *kernel = watch_kernel_find(watch, accesses->function);
    for (size_t i = 0; i < accesses->count; i++) {
        const struct tol_access *access = &accesses->accesses[i];
        const CUdeviceptr end = access->address + access->bytes;
        size_t index = 0;
        struct watch_block *block = watch_block_from(watch, access->address, &index);
        for (; block != NULL && block->begin < end;
             block = ++index < watch->block_count ? watch->blocks[index] : NULL) {
            const CUdeviceptr first =
                                  access->address > block->begin ? access->address : block->begin,
                              last = end < block->end ? end : block->end;
            watch_visit_add(&visit,
                            &(struct watch_found){block, kernel,
                                                  access->is_write ? WATCH_STORED : WATCH_LOADED,
                                                  last - first, 1},
                            true);
        }
    }
    (void)watch_visit_judge(&visit); /* it has happened: there is nothing to refuse */
    watch_visit_count(&visit, false);
    watch_lock_read_end(&watch->lock);
    watch_visit_end(&visit);
}

tol_status tol_watch_accesses(struct tol_watch *watch, struct tol_driver *driver) {
    tol_status status = TOL_OK;
    TOL_CHECK(watch != NULL && driver != NULL, TOL_INVALID_ARGUMENT, "watch or driver is NULL");
    TOL_CHECK(watch->teller == NULL, TOL_INVALID_ARGUMENT, "the watch receives accesses already");
    TOL_CHECK(driver->tell_accesses != NULL, TOL_UNSUPPORTED,
              "%s does not report what kernels access; the soft device does",
              tol_driver_path(driver));
    TOL_CHECK(driver->tell_accesses(on_kernel, watch) == CUDA_SUCCESS, TOL_INVALID_ARGUMENT,
              "another watch of this process receives accesses");
    watch->teller = driver->tell_accesses;
out:
    return status;
}
