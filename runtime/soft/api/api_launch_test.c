/*
 * Launches: shapes, parameters, attributes, and how many blocks there can be at once.
 */
#include "test/test_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* sum: *to = a + b, from parameters of three sizes. */
static const char *const sum = HEAD ".visible .entry sum(.param .u8 a, .param .u64 to, .param .u32 "
                                    "b) {\n"
                                    "    .reg .u32 %a, %b;\n    .reg .u64 %t;\n"
                                    "    ld.param.u8 %a, [a];\n    ld.param.u32 %b, [b];\n"
                                    "    ld.param.u64 %t, [to];\n    add.u32 %a, %a, %b;\n"
                                    "    st.global.u32 [%t], %a;\n    ret;\n}\n";

static CUresult launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, NULL, NULL, NULL);
}

Test(api_launch, shapes_are_checked) {
    api_context(0);
    CUfunction k = api_function(HEAD ".visible .entry k() { ret; }\n", "k");
    static const struct {
        unsigned shape[7];
        bool fits;
    } rows[] = {
        {{1, 1, 1, 1024, 1, 1, 0}, true},        {{1, 1, 1, 1, 1024, 1, 0}, true},
        {{1, 1, 1, 1, 1, 64, 0}, true},          {{1, 1, 1, 32, 32, 1, 49152}, true},
        {{0, 1, 1, 1, 1, 1, 0}, false},          {{1, 0, 1, 1, 1, 1, 0}, false},
        {{1, 1, 0, 1, 1, 1, 0}, false},          {{1, 1, 1, 0, 1, 1, 0}, false},
        {{1, 1, 1, 1, 0, 1, 0}, false},          {{1, 1, 1, 1, 1, 0, 0}, false},
        {{1, 1, 1, 1025, 1, 1, 0}, false},       {{1, 1, 1, 1, 1025, 1, 0}, false},
        {{1, 1, 1, 1, 1, 65, 0}, false},         {{1, 1, 1, 33, 32, 1, 0}, false},
        {{1, 65536, 1, 1, 1, 1, 0}, false},      {{1, 1, 65536, 1, 1, 1, 0}, false},
        {{0x80000000, 1, 1, 1, 1, 1, 0}, false}, {{1, 1, 1, 1, 1, 1, 49153}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const unsigned *s = rows[i].shape;
        CUresult result = launch(k, s[0], s[1], s[2], s[3], s[4], s[5], s[6]);
        CUresult expected = rows[i].fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        cr_assert_eq(result, expected, "row %zu: %s", i, api_code(result));
    }
    OK(cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
    OK(launch(k, 1, 1, 1, 1, 1, 1, 200000));
    OK(cuCtxSynchronize());
    REFUSED(launch(NULL, 1, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_HANDLE);
}

Test(api_launch, a_kernels_own_bounds_hold) {
    api_context(0);
    CUfunction most = api_function(HEAD ".visible .entry k() .maxntid 64 { ret; }\n", "k");
    CUfunction just = api_function(HEAD ".visible .entry k() .reqntid 16, 2 { ret; }\n", "k");
    OK(launch(most, 1, 1, 1, 64, 1, 1, 0));
    REFUSED(launch(most, 1, 1, 1, 65, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(launch(just, 1, 1, 1, 16, 2, 1, 0));
    REFUSED(launch(just, 1, 1, 1, 32, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(launch(just, 1, 1, 1, 16, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(api_launch, parameters_come_one_by_one_or_in_one_buffer) {
    CUdeviceptr to = 0;
    api_context(0);
    CUfunction function = api_function(sum, "sum");
    OK(cuMemAlloc_v2(&to, 4));
    unsigned char a = 200;
    unsigned b = 1000;
    void *one_by_one[] = {&a, &to, &b};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, one_by_one, NULL));
    a = 0; /* they were copied */
    cr_assert_eq(api_read(to), 1200);

    struct {
        unsigned char a;
        CUdeviceptr to;
        unsigned b;
    } buffer = {7, to, 8};
    size_t bytes = 20;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    cr_assert_eq(api_read(to), 15);

    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, one_by_one, extra),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
            CUDA_ERROR_INVALID_VALUE);
    one_by_one[1] = NULL;
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, one_by_one, NULL),
            CUDA_ERROR_INVALID_VALUE);
    bytes = 19;
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
            CUDA_ERROR_INVALID_VALUE);
    bytes = 20;
    extra[1] = NULL;
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
            CUDA_ERROR_INVALID_VALUE);
    extra[0] = (void *)3;
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
            CUDA_ERROR_INVALID_VALUE);
}

Test(api_launch, streams_and_functions_of_other_contexts_are_refused) {
    CUcontext one = NULL, other = NULL;
    CUstream stream = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&one, 0, 0));
    CUfunction function = api_function(HEAD ".visible .entry k() { ret; }\n", "k");
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamCreate(&stream, 0));
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL),
            CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
            CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuLaunchKernel((CUfunction)stream, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL),
            CUDA_ERROR_INVALID_HANDLE);
}

/* ---- with attributes ---- */

static CUresult launch_with(CUfunction function, CUlaunchAttribute *attributes, unsigned count) {
    CUlaunchConfig config = {.gridDimX = 2,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 32,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = attributes,
                             .numAttrs = count};
    return cuLaunchKernelEx(&config, function, NULL, NULL);
}

Test(api_launch, attributes_are_done_ignored_or_refused) {
    CUevent event = NULL, timed = NULL;
    api_context(0);
    CUfunction k = api_function(HEAD ".visible .entry k() { ret; }\n", "k");
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&timed, 0));
    OK(launch_with(k, NULL, 0));
    REFUSED(launch_with(k, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLaunchKernelEx(NULL, k, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_IGNORE};
    OK(launch_with(k, &a, 1));
    a.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    OK(launch_with(k, &a, 1));
    a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    a.value.programmaticStreamSerializationAllowed = 1;
    OK(launch_with(k, &a, 1));
    a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a.value.clusterDim.x = a.value.clusterDim.y = a.value.clusterDim.z = 1;
    OK(launch_with(k, &a, 1));
    a.value.clusterDim.x = 2;
    OK(launch_with(k, &a, 1));
    a.value.clusterDim.x = 0;
    REFUSED(launch_with(k, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    memset(&a.value, 0, sizeof a.value);
    a.value.programmaticEvent.event = event;
    OK(launch_with(k, &a, 1));
    OK(cuEventSynchronize(event));
    a.value.programmaticEvent.event = timed;
    REFUSED(launch_with(k, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a.value.programmaticEvent.event = (CUevent)k;
    REFUSED(launch_with(k, &a, 1), CUDA_ERROR_INVALID_HANDLE);
    memset(&a.value, 0, sizeof a.value);
    a.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    a.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    REFUSED(launch_with(k, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    a.value.sharedMemCarveout = 101;
    REFUSED(launch_with(k, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a.id = 15;
    REFUSED(launch_with(k, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a.id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY; /* of streams */
    REFUSED(launch_with(k, &a, 1), CUDA_ERROR_INVALID_VALUE);
    /* Without a context this comes first, whatever else is wrong. */
    OK(cuCtxSetCurrent(NULL));
    REFUSED(launch_with(k, &a, 1), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuLaunchKernelEx(NULL, k, NULL, NULL), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(launch_with(k, NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
}

/* ---- grids whose blocks wait for each other ---- */

/* Each block counts itself and waits until all have. */
static const char *const meet =
    HEAD ".visible .entry meet(.param .u64 counter, .param .u32 all) {\n"
         "    .reg .u64 %c;\n    .reg .u32 %n, %v;\n    .reg .pred "
         "%p;\n"
         "    ld.param.u64 %c, [counter];\n"
         "    ld.param.u32 %n, [all];\n"
         "    atom.global.add.u32 %v, [%c], 1;\n"
         "again:\n"
         "    ld.volatile.global.u32 %v, [%c];\n"
         "    setp.lt.u32 %p, %v, %n;\n"
         "    @%p bra again;\n"
         "    ret;\n}\n";

Test(api_launch, cooperating_blocks_are_all_there_at_once) {
    CUdeviceptr counter = 0;
    int each = 0, processors = 0;
    setenv("TOLLENS_SOFT_WORKERS", "2", 1);
    api_context(0);
    CUfunction function = api_function(meet, "meet");
    OK(cuMemAlloc_v2(&counter, 4));
    OK(cuMemsetD32_v2(counter, 0, 1));
    OK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, 1, 0));
    unsigned most = (unsigned)(each * processors);
    void *parameters[] = {&counter, &most};
    OK(cuLaunchCooperativeKernel(function, most, 1, 1, 1, 1, 1, 0, NULL, parameters));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(counter), most);
    REFUSED(cuLaunchCooperativeKernel(function, most + 1, 1, 1, 1, 1, 1, 0, NULL, parameters),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    REFUSED(cuLaunchCooperativeKernel(function, 1, 65535, 65535, 1, 1, 1, 0, NULL, parameters),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUlaunchConfig config = {most + 1, 1, 1, 1, 1, 1, 0, NULL, &a, 1};
    REFUSED(cuLaunchKernelEx(&config, function, parameters, NULL),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

/* ---- occupancy ---- */

Test(api_launch, occupancy_is_what_runs_out_first) {
    int blocks = 0;
    api_context(0);
    CUfunction k = api_function(HEAD ".visible .entry k() { ret; }\n", "k");
    static const struct {
        int threads;
        size_t shared;
        int blocks;
    } rows[] = {
        {1024, 0, 2},   {1023, 0, 2},   {512, 0, 4},    {64, 0, 32},    {1, 0, 32},
        {33, 0, 32},    {96, 0, 21},    {1025, 0, 0},   {64, 48000, 4}, {64, 49152, 4},
        {64, 49153, 0}, {64, 6272, 32}, {64, 6273, 31},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, rows[i].threads,
                                                       rows[i].shared));
        cr_assert_eq(blocks, rows[i].blocks, "%d threads, %zu bytes: %d", rows[i].threads,
                     rows[i].shared, blocks);
    }
    OK(cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, k, 64, 232448, 1));
    cr_assert_eq(blocks, 1);
    REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, k, 64, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 0, 0),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 64, 0),
            CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, k, 64, 0, 2),
            CUDA_ERROR_INVALID_VALUE);
}

/* 100 registers of 1024 threads are more than there are, and such a block runs all the same. */
Test(api_launch, a_block_that_runs_has_room_for_itself) {
    enum { REGISTERS = 100 };
    static char text[16384];
    int blocks = 0, registers = 0;
    size_t at = (size_t)sprintf(text, HEAD ".visible .entry k(.param .u64 p) {\n"
                                           "    .reg .b32 %%r<101>;\n    .reg .b64 %%a;\n"
                                           "    ld.param.u64 %%a, [p];\n");
    for (int i = 0; i < REGISTERS; i++) {
        at += (size_t)sprintf(text + at, "    ld.volatile.global.u32 %%r%d, [%%a+%d];\n", i, 4 * i);
    }
    for (int i = 1; i < REGISTERS; i++) {
        at += (size_t)sprintf(text + at, "    add.u32 %%r0, %%r0, %%r%d;\n", i);
    }
    sprintf(text + at, "    st.global.u32 [%%a], %%r0;\n    ret;\n}\n");
    api_context(0);
    CUfunction k = api_function(text, "k");
    OK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, k));
    cr_assert(registers >= REGISTERS, "%d", registers);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 1024, 0));
    cr_assert(blocks == 1, "%d", blocks);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 64, 0));
    cr_assert(blocks > 5 && blocks < 11, "%d", blocks);
}

/* 100 bytes a thread: 32 blocks of 64 threads take 7424 bytes each, which is too much for 32. */
static size_t CUDAAPI hundred_each(int threads) {
    return (size_t)threads * 100;
}

Test(api_launch, block_sizes_are_suggested) {
    int grid = 0, block = 0, processors = 0;
    api_context(0);
    CUfunction k = api_function(HEAD ".visible .entry k() { ret; }\n", "k");
    OK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, k, NULL, 0, 0));
    cr_assert(block == 1024 && grid == 2 * processors, "%d, %d", block, grid);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, k, NULL, 0, 700));
    cr_assert(block == 512 && grid == 4 * processors, "%d, %d", block, grid);
    /* The most threads that fit with their shared memory. */
    OK(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, k, hundred_each, 0, 0, 0));
    int best = 0, threads = 0;
    for (int t = 32; t <= 1024; t += 32) {
        int blocks = 0;
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, t, hundred_each(t)));
        if (blocks * t >= best) {
            best = blocks * t;
            threads = t;
        }
    }
    cr_assert(block == threads && grid == best / threads * processors, "%d, %d", block, grid);
    REFUSED(cuOccupancyMaxPotentialBlockSize(NULL, &block, k, NULL, 0, 0),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuOccupancyMaxPotentialBlockSize(&grid, NULL, k, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuOccupancyMaxPotentialBlockSize(&grid, &block, k, NULL, 0, -1),
            CUDA_ERROR_INVALID_VALUE);
}

Test(api_launch, shared_memory_left_for_blocks_lets_them_fit) {
    size_t bytes = 0;
    int blocks = 0;
    api_context(0);
    CUfunction k = api_function(HEAD ".visible .entry k() { ret; }\n", "k");
    OK(cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    for (int wanted = 1; wanted <= 32; wanted++) {
        OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, k, wanted, 64));
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 64, bytes));
        cr_assert(blocks >= wanted, "%d blocks with %zu bytes: %d", wanted, bytes, blocks);
        if (wanted == 1) {
            cr_assert_eq(bytes, 232448);
        } else {
            OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 64, bytes + 128));
            cr_assert(blocks < wanted, "%d blocks could have more than %zu", wanted, bytes);
        }
    }
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, k, 3, 1024));
    cr_assert_eq(bytes, 0);
    REFUSED(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, k, 0, 64), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuOccupancyAvailableDynamicSMemPerBlock(NULL, k, 1, 64), CUDA_ERROR_INVALID_VALUE);
}

Test(api_launch, clusters_have_an_occupancy) {
    int number = 0, processors = 0;
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                           .value.clusterDim = {4, 1, 1}};
    CUlaunchConfig config = {4, 1, 1, 1024, 1, 1, 0, NULL, &a, 1};
    api_context(0);
    CUfunction k = api_function(HEAD ".visible .entry k() { ret; }\n", "k");
    OK(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    cr_assert_eq(number, 1);
    OK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuOccupancyMaxPotentialClusterSize(&number, k, &config));
    cr_assert_eq(number, 8);
    OK(cuOccupancyMaxActiveClusters(&number, k, &config));
    cr_assert_eq(number, processors > 2 ? processors * 2 / 4 : 1, "%d", number);
    a.value.clusterDim.x = 16;
    REFUSED(cuOccupancyMaxActiveClusters(&number, k, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(cuFuncSetAttribute(
        k, (CUfunction_attribute)CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    OK(cuOccupancyMaxPotentialClusterSize(&number, k, &config));
    cr_assert_eq(number, 16);
    config.blockDimX = 1025;
    OK(cuOccupancyMaxPotentialClusterSize(&number, k, &config));
    cr_assert_eq(number, 0);
    REFUSED(cuOccupancyMaxActiveClusters(&number, k, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuOccupancyMaxPotentialClusterSize(NULL, k, &config), CUDA_ERROR_INVALID_VALUE);
}
