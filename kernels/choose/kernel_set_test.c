/*
 * Kernel sets: kernels out of the library, loaded once, also by several threads.
 */
#include "choose/kernel_set.h"

#include "test/test_device.h"

#include <pthread.h>

TestSuite(kernel_set, .fini = test_end);

KN_IMAGES(vector_add);

static const struct kn_variant add = {
    .name = "add", .entry = "vector_add", .images = kn_images_vector_add};

Test(kernel_set, a_kernel_of_the_library_runs) {
    enum { COUNT = 1000 };
    float values[COUNT], sums[COUNT];
    struct kn_kernels *kernels = NULL;
    const struct kn_variants variants = {"add", &add, 1};
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *in = NULL, *out = NULL;
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(kn_kernels_pick(kernels, &variants, NULL, NULL, &variant, &kernel));
    cr_assert(variant == &add && kn_kernels_context(kernels) == test_context());
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), COUNT, sizeof(float), &in));
    MUST(tol_buffer_create(test_context(), COUNT, sizeof(float), &out));
    for (int i = 0; i < COUNT; i++) values[i] = (float)i;
    MUST(tol_buffer_write(in, values, sizeof values));
    MUST(tol_launch(stream, kernel, tol_launch_linear(COUNT, 128),
                    TOL_ARGUMENTS(tol_buffer_address(in), tol_buffer_address(in),
                                  tol_buffer_address(out), (int)COUNT)));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(out, sums, sizeof sums));
    for (int i = 0; i < COUNT; i++) cr_assert(sums[i] == 2 * values[i], "element %d", i);
    kn_kernels_destroy(kernels);
}

struct finder {
    struct kn_kernels *kernels;
    const struct tol_kernel *kernel;
    tol_status status;
};

static void *find(void *user) {
    struct finder *finder = user;
    finder->status = kn_kernels_find(finder->kernels, &add, &finder->kernel);
    return NULL;
}

Test(kernel_set, threads_find_the_same_kernel) {
    enum { THREADS = 8 };
    struct finder finders[THREADS];
    pthread_t threads[THREADS];
    struct kn_kernels *kernels = NULL;
    MUST(kn_kernels_create(test_context(), &kernels));
    for (int i = 0; i < THREADS; i++) {
        finders[i] = (struct finder){.kernels = kernels};
        cr_assert(pthread_create(&threads[i], NULL, find, &finders[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        cr_assert(finders[i].status == TOL_OK && finders[i].kernel != NULL);
        cr_assert(finders[i].kernel == finders[0].kernel, "thread %d has another kernel", i);
    }
    kn_kernels_destroy(kernels);
}

/* Kernels of one file come from one module: what was unpacked for the first is not asked again. */
Test(kernel_set, a_file_of_kernels_is_unpacked_once) {
    struct kn_image images[2] = {kn_images_vector_add[0], {.packed = NULL}};
    const struct kn_variant first = {.name = "first", .entry = "vector_add", .images = images};
    const struct kn_variant second = {.name = "second", .entry = "vector_add", .images = images};
    struct kn_kernels *kernels = NULL, *others = NULL;
    const struct tol_kernel *one = NULL, *two = NULL;
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(kn_kernels_create(test_context(), &others));
    MUST(kn_kernels_find(kernels, &first, &one));
    images[0].packed_bytes /= 2;
    MUST(kn_kernels_find(kernels, &second, &two));
    cr_assert(one == two);
    MUST_FAIL(kn_kernels_find(others, &second, &two), TOL_INVALID_MODULE, "damaged");
    kn_kernels_destroy(kernels);
    kn_kernels_destroy(others);
}

KN_IMAGES(softmax_6_cluster);

/* A cluster has memory for itself: twice the memory a block, at most as many clusters; and a shape
 * that was asked before has its own answer again. */
Test(kernel_set, the_driver_says_how_many_clusters_run_at_once) {
    static const struct kn_variant four = {.name = "four",
                                           .entry = "softmax_cluster_bf16_4",
                                           .images = kn_images_softmax_6_cluster,
                                           .compute_capability_min = 90,
                                           .shared_bytes = 200 << 10};
    const struct tol_device *device = tol_context_device(test_context());
    struct kn_kernels *kernels = NULL;
    const struct tol_kernel *kernel = NULL;
    if (device->compute_capability < 90) cr_skip_test("before 9.0");
    MUST(kn_kernels_create(test_context(), &kernels));
    struct tol_launch_shape shape = {4, 1, 1, 512, 1, 1, 100 << 10}, large = shape;
    large.shared_bytes = 200 << 10;
    cr_assert(kn_kernels_clusters(kernels, &four, &shape) == 0, "the set has no such kernel yet");
    MUST(kn_kernels_find(kernels, &four, &kernel));
    for (int turn = 0; turn < 2; turn++) {
        const unsigned two = kn_kernels_clusters(kernels, &four, &shape);
        const unsigned one = kn_kernels_clusters(kernels, &four, &large);
        cr_assert(one >= 1 && one <= two, "%u and %u clusters", one, two);
        cr_assert(two * 4 <= 2 * (unsigned)device->multiprocessors + 3, "%u clusters", two);
    }
    kn_kernels_destroy(kernels);
}

Test(kernel_set, what_cannot_be_loaded_is_refused_each_time) {
    static const struct kn_variant missing = {
        .name = "missing", .entry = "no_such_kernel", .images = kn_images_vector_add};
    static const struct kn_variant greedy = {.name = "greedy",
                                             .entry = "vector_add",
                                             .images = kn_images_vector_add,
                                             .shared_bytes = 1 << 30};
    struct kn_kernels *kernels = NULL;
    const struct tol_kernel *kernel = NULL;
    MUST(kn_kernels_create(test_context(), &kernels));
    for (int turn = 0; turn < 2; turn++) {
        MUST_FAIL(kn_kernels_find(kernels, &missing, &kernel), TOL_NOT_FOUND, "no_such_kernel");
        MUST_FAIL(kn_kernels_find(kernels, &greedy, &kernel), TOL_OVER_LIMIT, "1073741824");
    }
    cr_assert(kernel == NULL);
    kn_kernels_destroy(kernels);
    MUST_FAIL(kn_kernels_create(NULL, &kernels), TOL_INVALID_ARGUMENT, "needs a context");
    kn_kernels_destroy(NULL);
}
