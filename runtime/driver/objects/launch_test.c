/*
 * Launches: shapes, limits, arguments, and results of whole kernels.
 */
#include "test/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(launch, .fini = test_end);

static struct tol_stream *new_stream(void) {
    struct tol_stream *stream = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    return stream;
}

static struct tol_buffer *new_buffer(size_t count, size_t element_bytes) {
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), count, element_bytes, &buffer));
    return buffer;
}

Test(launch, shapes_cover_all_threads) {
    struct tol_launch_shape shape = tol_launch_linear(1000, 256);
    cr_assert(shape.grid_x == 4 && shape.grid_y == 1 && shape.grid_z == 1 && shape.block_x == 256);
    cr_assert(tol_launch_linear(1024, 256).grid_x == 4);
    cr_assert(tol_launch_linear(1, 256).grid_x == 1);
    cr_assert(tol_launch_linear(0, 256).grid_x == 0);
    cr_assert(tol_launch_linear(5, 0).block_x == 0);
    cr_assert(tol_launch_linear(1ull << 60, 1).grid_x == UINT32_MAX, "too many stays too many");
    shape = tol_launch_plane(33, 17, 16, 16);
    cr_assert(shape.grid_x == 3 && shape.grid_y == 2 && shape.block_y == 16);
    shape = tol_launch_volume(5, 6, 7, 2, 3, 4);
    cr_assert(shape.grid_x == 3 && shape.grid_y == 2 && shape.grid_z == 2 && shape.block_z == 4);
}

Test(launch, adds_vectors) {
    enum { COUNT = 10007 };
    struct tol_kernel *add = test_kernel("vector_add");
    struct tol_stream *stream = new_stream();
    struct tol_buffer *a = new_buffer(COUNT, 4), *b = new_buffer(COUNT, 4),
                      *c = new_buffer(COUNT, 4);
    static float va[COUNT], vb[COUNT], vc[COUNT];
    for (int i = 0; i < COUNT; i++) va[i] = (float)i * 0.25f, vb[i] = 1000 - (float)i;
    MUST(tol_buffer_write(a, va, sizeof va));
    MUST(tol_buffer_write(b, vb, sizeof vb));
    MUST(tol_launch(
        stream, add, tol_launch_linear(COUNT, 128),
        TOL_ARGUMENTS(tol_buffer_address(a), tol_buffer_address(b), tol_buffer_address(c), COUNT)));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(c, vc, sizeof vc));
    for (int i = 0; i < COUNT; i++) cr_assert(vc[i] == va[i] + vb[i], "element %d", i);
    tol_buffer_destroy(a);
    tol_buffer_destroy(b);
    tol_buffer_destroy(c);
    tol_stream_destroy(stream);
}

Test(launch, transposes_what_divides_nothing) {
    enum { ROWS = 45, COLUMNS = 70 };
    struct tol_kernel *transpose = test_kernel("transpose");
    struct tol_stream *stream = new_stream();
    struct tol_buffer *in = new_buffer(ROWS * COLUMNS, 4), *out = new_buffer(ROWS * COLUMNS, 4);
    static float sent[ROWS][COLUMNS], back[COLUMNS][ROWS];
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) sent[r][c] = (float)(r * 1000 + c);
    }
    MUST(tol_buffer_write(in, sent, sizeof sent));
    MUST(tol_launch(
        stream, transpose,
        ((struct tol_launch_shape){(COLUMNS + 31) / 32, (ROWS + 31) / 32, 1, 32, 8, 1, 0}),
        TOL_ARGUMENTS(tol_buffer_address(in), tol_buffer_address(out), (int)ROWS, (int)COLUMNS)));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(out, back, sizeof back));
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) cr_assert(back[c][r] == sent[r][c], "%d, %d", r, c);
    }
    tol_buffer_destroy(in);
    tol_buffer_destroy(out);
    tol_stream_destroy(stream);
}

Test(launch, reduces_exactly) {
    enum { COUNT = 100003 };
    struct tol_kernel *reduce = test_kernel("reduce");
    struct tol_stream *stream = new_stream();
    struct tol_buffer *in = new_buffer(COUNT, 4), *sum = new_buffer(1, 8);
    int *values = malloc(COUNT * sizeof *values);
    long long expected = 0, found = 0;
    for (int i = 0; i < COUNT; i++)
        expected += values[i] = (int)(((unsigned)i * 2654435761u) >> 4) - (1 << 27);
    static const unsigned blocks[] = {32, 96, 256, 1024};
    MUST(tol_buffer_write(in, values, COUNT * sizeof *values));
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        MUST(tol_buffer_fill_at(sum, 0, 0, 4, 2));
        MUST(tol_launch(stream, reduce, ((struct tol_launch_shape){7, 1, 1, blocks[i], 1, 1, 0}),
                        TOL_ARGUMENTS(tol_buffer_address(in), tol_buffer_address(sum), COUNT)));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(sum, &found, sizeof found));
        cr_assert(found == expected, "%lld, not %lld, in blocks of %u", found, expected, blocks[i]);
    }
    free(values);
    tol_buffer_destroy(in);
    tol_buffer_destroy(sum);
    tol_stream_destroy(stream);
}

Test(launch, counts_every_value) {
    enum { COUNT = 50021 };
    struct tol_kernel *histogram = test_kernel("histogram");
    struct tol_stream *stream = new_stream();
    struct tol_buffer *in = new_buffer(COUNT, 1), *counts = new_buffer(256, 4);
    static unsigned char values[COUNT];
    unsigned expected[256] = {0}, found[256];
    for (unsigned i = 0; i < COUNT; i++) expected[values[i] = (unsigned char)(i * i >> 5)]++;
    MUST(tol_buffer_write(in, values, sizeof values));
    MUST(tol_buffer_fill_at(counts, 0, 0, 4, 256));
    MUST(tol_launch(stream, histogram, ((struct tol_launch_shape){5, 1, 1, 160, 1, 1, 0}),
                    TOL_ARGUMENTS(tol_buffer_address(in), tol_buffer_address(counts), COUNT)));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(counts, found, sizeof found));
    cr_assert(memcmp(expected, found, sizeof found) == 0);
    tol_buffer_destroy(in);
    tol_buffer_destroy(counts);
    tol_stream_destroy(stream);
}

/* Refused by us: the driver is not called at all, which the interposer would count. */
Test(launch, shapes_beyond_the_limits_never_reach_the_driver) {
    struct tol_device limits;
    MUST(tol_device_read(test_driver(), 0, &limits));
    MUST(tol_interpose_install(test_driver(), NULL));
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = new_stream();
    CUdeviceptr address = 0;
    unsigned long long count = 0;
    const unsigned most = (unsigned)limits.block_threads_max;
    const struct tol_launch_shape bad[] = {
        {0, 1, 1, 1, 1, 1, 0},
        {1, 0, 1, 1, 1, 1, 0},
        {1, 1, 0, 1, 1, 1, 0},
        {1, 1, 1, 0, 1, 1, 0},
        {1, 1, 1, 1, 0, 1, 0},
        {1, 1, 1, 1, 1, 0, 0},
        {1, 1, 1, most + 1, 1, 1, 0},
        {1, 1, 1, most, 2, 1, 0},
        {1, 1, 1, 1, 1, (unsigned)limits.block_max[2] + 1, 0},
        {1, (unsigned)limits.grid_max[1] + 1, 1, 1, 1, 1, 0},
        {1, 1, (unsigned)limits.grid_max[2] + 1, 1, 1, 1, 0},
        {(unsigned)limits.grid_max[0] + 1u, 1, 1, 1, 1, 1, 0},
        {1, 1, 1, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0},
        {1, 1, 1, 1, 1, 1, (unsigned)limits.shared_bytes_per_block_optin + 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        MUST_FAIL(tol_launch(stream, fill, bad[i], TOL_ARGUMENTS(address, 0u, count)),
                  TOL_OVER_LIMIT, "fill");
    }
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel) == 0);
    tol_stream_destroy(stream);
}

Test(launch, arguments_must_fit_the_parameters) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = new_stream();
    struct tol_buffer *buffer = new_buffer(4, 4);
    CUdeviceptr address = tol_buffer_address(buffer);
    unsigned long long count = 4;
    struct tol_launch_shape shape = tol_launch_linear(4, 32);
    if (!tol_driver_has(test_driver(), TOL_FEATURE_PARAM_INFO)) {
        cr_skip_test("this driver does not tell a kernel's parameters");
    }
    MUST_FAIL(tol_launch(stream, fill, shape, TOL_NO_ARGUMENTS), TOL_WRONG_ARGUMENTS,
              "has 3 parameters");
    MUST_FAIL(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, 1u)), TOL_WRONG_ARGUMENTS,
              "given 2");
    MUST_FAIL(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, 1u, count, count)),
              TOL_WRONG_ARGUMENTS, "given 4");
    MUST_FAIL(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, (char)1, count)),
              TOL_WRONG_ARGUMENTS, "argument 1");
    MUST_FAIL(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, 1u, (int)count)),
              TOL_WRONG_ARGUMENTS, "8 bytes");
    MUST(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, 1u, count)));
    MUST(tol_stream_synchronize(stream));
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

/* Goal: no place in a list is overlooked, in lists of odd and even length. Method: one size after
 * the other is wrong; the comparison ignores what follows the list. */
Test(launch, a_wrong_size_is_seen_wherever_it_stands) {
    static const char *const names[] = {"tick_1", "tick_4", "tick_16"};
    static const unsigned counts[] = {1, 4, 16};
    static uint64_t room[17];
    struct tol_stream *stream = new_stream();
    for (size_t k = 0; k < 3; k++) {
        struct tol_kernel *kernel = test_kernel(names[k]);
        unsigned bytes[17] = {8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 77};
        void *values[17];
        if (k == 1) bytes[2] = 8;
        for (int i = 0; i < 17; i++) values[i] = &room[i];
        for (unsigned wrong = 0; wrong < counts[k]; wrong++) {
            char text[32];
            bytes[wrong] += 4;
            snprintf(text, sizeof text, "argument %u", wrong);
            MUST_FAIL(tol_launch(stream, kernel, tol_launch_linear(1, 1),
                                 ((struct tol_arguments){counts[k], values, bytes})),
                      TOL_WRONG_ARGUMENTS, text);
            bytes[wrong] -= 4;
        }
        struct tol_buffer *count = new_buffer(1, 4);
        unsigned zero = 0;
        MUST(tol_buffer_write(count, &zero, sizeof zero));
        room[0] = tol_buffer_address(count);
        MUST(tol_launch(stream, kernel, tol_launch_linear(1, 1),
                        ((struct tol_arguments){counts[k], values, bytes})));
        MUST(tol_stream_synchronize(stream));
        tol_buffer_destroy(count);
    }
    tol_stream_destroy(stream);
}

Test(launch, null_is_refused) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = new_stream();
    MUST_FAIL(tol_launch(NULL, fill, tol_launch_linear(1, 1), TOL_NO_ARGUMENTS),
              TOL_INVALID_ARGUMENT, "stream is NULL");
    MUST_FAIL(tol_launch(stream, NULL, tol_launch_linear(1, 1), TOL_NO_ARGUMENTS),
              TOL_INVALID_ARGUMENT, "kernel is NULL");
    tol_stream_destroy(stream);
}

/* Dynamic shared memory above 48 KiB, to the device's limit. The kernel does not use it; what
 * is tested is that the launch asks for it and the driver agrees. */
Test(launch, dynamic_shared_memory_up_to_the_limit) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = new_stream();
    struct tol_buffer *buffer = new_buffer(64, 4);
    CUdeviceptr address = tol_buffer_address(buffer);
    unsigned long long count = 64;
    unsigned most = (unsigned)tol_context_device(test_context())->shared_bytes_per_block_optin;
    struct tol_launch_shape shape = tol_launch_linear(64, 64);
    shape.shared_bytes = 48 * 1024;
    MUST(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, 1u, count)));
    shape.shared_bytes = most;
    MUST_FAIL(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, 1u, count)), TOL_OVER_LIMIT,
              "fill");
    MUST(tol_kernel_allow_shared(fill, most));
    MUST(tol_launch(stream, fill, shape, TOL_ARGUMENTS(address, 1u, count)));
    MUST(tol_stream_synchronize(stream));
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

/* Free memory would not tell: other tests use the same device at the same time. */
Test(launch, scopes_give_back_what_they_own) {
    MUST(tol_interpose_install(test_driver(), NULL));
    struct tol_context *context = test_context();
    {
        tol_auto_stream struct tol_stream *stream = new_stream();
        tol_auto_buffer struct tol_buffer *buffer = new_buffer(1000, 1000);
        tol_auto_event struct tol_event *event = NULL;
        MUST(tol_event_create(context, false, &event));
        MUST(tol_copy_fill(stream, buffer, 0, 1, 1, 1000));
        MUST(tol_event_record(event, stream));
    }
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuMemAlloc_v2) == 1);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuMemFree_v2) == 1);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuEventCreate) ==
              tol_interpose_count(TOL_DRIVER_INDEX_cuEventDestroy_v2));
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuStreamCreateWithPriority) == 1);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuStreamDestroy_v2) == 1);
    tol_interpose_remove(test_driver());
}
