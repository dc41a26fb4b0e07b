/*
 * Forms of wgmma that ptxas refuses are refused, with the reason.
 */
#include "test/test_soft.h"

#include <string.h>

TestSuite(wgmma_form, .init = test_soft_open, .fini = test_soft_close);

Test(wgmma_form, what_ptxas_refuses_is_refused) {
    static const struct {
        const char *line, *why;
    } cases[] = {
        {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1}, %rd1;", "sp"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3}, %rd1, %rd1, 1, 1, 1, 0, "
         "0;",
         "expected 4 registers"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd1, 1, 2, "
         "1, "
         "0, 0;",
         "the number 1 or -1"},
        {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1,%f2,%f3,%f4}, %rd1, %rd1, 1, 1, "
         "1, 0, 0;",
         "expected 6 operands"},
        {"wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r1}, %rd1, %rd1, 1;", "m64n40k32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024], log[2048];
        snprintf(text, sizeof text,
                 ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
                 ".reg .f32 %%f<9>; .reg .b32 %%r<9>; .reg .b64 %%rd<9>;\n%s\nret;\n}\n",
                 cases[i].line);
        cr_assert_eq(test_refused(text, log, sizeof log), CUDA_ERROR_INVALID_PTX, "%zu", i);
        cr_assert(strstr(log, cases[i].why) != NULL, "%s", log);
    }
}
