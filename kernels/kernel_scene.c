/*
 * What tests of operations begin and end with.
 */
#include "kernel_scene.h"

#include "test/test_device.h"

#include <stdlib.h>

struct kn_kernels *kernels;
struct tol_stream *stream;

void kernel_scene_begin(void) {
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(tol_stream_create(test_context(), NULL, &stream));
}

void kernel_scene_reorder(void) {
    setenv("TOLLENS_SOFT_SEED", "1", 0); /* NOLINT(concurrency-mt-unsafe): there is one thread */
}

void kernel_scene_end(void) {
    tol_stream_destroy(stream);
    kn_kernels_destroy(kernels);
    stream = NULL, kernels = NULL;
    test_end();
}
