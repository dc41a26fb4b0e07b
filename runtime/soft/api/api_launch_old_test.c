/*
 * Launches as before CUDA 4.
 */
#include "test/test_api.h"

#include <criterion/criterion.h>

TestSuite(api_launch_old);

#define TEXT                                                                                       \
    ".version 7.0\n.target sm_70\n.address_size 64\n.extern .shared .align 4 .b8 pad[];\n"         \
    ".visible .entry k(.param .u64 out, .param .u32 n, .param .f32 x) {\n"                         \
    ".reg .u64 %a, %o; .reg .u32 %r<6>; .reg .f32 %f;\n"                                           \
    "ld.param.u64 %a, [out]; ld.param.u32 %r0, [n]; ld.param.f32 %f, [x];\n"                       \
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.y;\n"                          \
    "mov.u32 %r5, %nctaid.x; mad.lo.u32 %r3, %r3, %r5, %ctaid.x;\n"                                \
    "mad.lo.u32 %r1, %r3, %r2, %r1; mul.wide.u32 %o, %r1, 4; add.u64 %a, %a, %o;\n"                \
    "cvt.rzi.u32.f32 %r4, %f; add.u32 %r4, %r4, %r0; mov.u32 %r5, %dynamic_smem_size;\n"           \
    "add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r1; st.global.u32 [%a], %r4; ret; }\n"

Test(api_launch_old, parameters_and_the_shape_are_kept_with_the_function) {
    enum { THREADS = 8, WIDTH = 3, HEIGHT = 2, COUNT = THREADS * WIDTH * HEIGHT };
    CUdeviceptr out = 0;
    CUstream stream = NULL;
    unsigned found[COUNT];
    api_context(0);
    CUfunction k = api_function(TEXT, "k");
    OK(cuMemAlloc_v2(&out, sizeof found));
    OK(cuMemsetD8_v2(out, 0, sizeof found));
    OK(cuFuncSetBlockShape(k, THREADS, 1, 1));
    OK(cuFuncSetSharedSize(k, 1024));
    OK(cuParamSetv(k, 0, &out, sizeof out));
    OK(cuParamSeti(k, 8, 20000));
    OK(cuParamSetf(k, 12, 300000.0f));
    OK(cuParamSetSize(k, 16));
    OK(cuLaunchGrid(k, WIDTH, HEIGHT));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(found, out, sizeof found));
    for (unsigned i = 0; i < COUNT; i++) cr_assert_eq(found[i], 321024 + i, "%u: %u", i, found[i]);
    OK(cuParamSeti(k, 8, 50000)); /* the others stay as they were */
    OK(cuFuncSetSharedSize(k, 0));
    OK(cuLaunch(k));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(found, out, sizeof found));
    for (unsigned i = 0; i < COUNT; i++) {
        cr_assert_eq(found[i], (i < THREADS ? 350000 : 321024) + i, "%u: %u", i, found[i]);
    }
    OK(cuLaunchGridAsync(k, 2, 1, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(found, out, sizeof found));
    cr_assert_eq(found[THREADS], 350000 + THREADS);
}

Test(api_launch_old, what_cannot_be_is_refused) {
    unsigned char much[8192] = {0};
    api_context(0);
    CUfunction k = api_function(TEXT, "k");
    REFUSED(cuFuncSetBlockShape(k, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuFuncSetBlockShape(NULL, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuParamSetSize(k, 4097), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuParamSeti(k, -1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuParamSeti(k, 4093, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuParamSetv(k, 0, NULL, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuParamSetv(k, 0, much, sizeof much), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLaunchGrid(k, 0, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLaunch(k),
            CUDA_ERROR_INVALID_VALUE); /* its parameters have 16 bytes, and none came */
    OK(cuFuncSetBlockShape(k, 2048, 1, 1));
    OK(cuParamSetSize(k, 16));
    REFUSED(cuLaunch(k), CUDA_ERROR_INVALID_VALUE); /* a block has 1024 threads at most */
}
