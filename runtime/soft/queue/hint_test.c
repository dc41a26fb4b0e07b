/*
 * Hints for caches, schedulers and profilers: they change no result, and are accepted wherever
 * ptxas accepts them.
 */
#include "test/test_soft.h"

#include <string.h>

TestSuite(hint, .init = test_soft_open, .fini = test_soft_close);

/* The text with a statement in it, for sm_90. */
static const char *text_of(const char *statement) {
    static char text[4000];
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90a\n.address_size 64\n.global .align 128 .b8 g[1024];\n"
             ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %%r<20>; .reg .b64 %%rd<10>;\n"
             ".reg .f32 %%f<10>; .reg .pred %%p<4>;\nmov.u64 %%rd1, g; ld.param.u64 %%rd2, [out];\n"
             "mov.u32 %%r1, 5; mov.u32 %%r2, 6; mov.u32 %%r3, 7; mov.u32 %%r4, 8; mov.f32 %%f1, "
             "0.5;\n"
             "st.global.v4.u32 [%%rd1], {%%r1,%%r2,%%r3,%%r4}; mov.u64 %%rd3, 0;\n"
             "%s\nld.global.u32 %%r9, [%%rd1]; st.global.u32 [%%rd2], %%r9;\nret;\n}\n",
             statement);
    return text;
}

Test(hint, they_change_nothing) {
    static const char *const statements[] = {
        "createpolicy.fractional.L2::evict_last.b64 %rd3, 1.0;",
        "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %rd3, %f1;",
        "createpolicy.fractional.L2::evict_unchanged.b64 %rd3;",
        "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd3, [%rd1], 64, 1024;",
        "createpolicy.range.L2::evict_normal.b64 %rd3, [%rd1], %r1, %r2;",
        "createpolicy.cvt.L2.b64 %rd3, 0x10F0000000000000;",
        "ld.global.L2::cache_hint.u32 %r9, [%rd1], %rd3;",
        "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%r9,%r10,%r11,%r12}, [%rd1], %rd3;",
        "ld.global.L1::no_allocate.L2::cache_hint.L2::128B.u32 %r9, [%rd1], %rd3;",
        "ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%f2,%f3,%f4,%f5}, [%rd1];",
        "ld.relaxed.gpu.global.L1::no_allocate.u32 %r9, [%rd1];",
        "ld.global.ca.L2::64B.u32 %r9, [%rd1];",
        "st.global.L1::no_allocate.L2::cache_hint.u32 [%rd1], %r1, %rd3;",
        "st.global.wb.L2::cache_hint.u32 [%rd1], %r1, 0;",
        "atom.global.add.L2::cache_hint.u32 %r9, [%rd1], 0, %rd3;",
        "red.global.add.L2::cache_hint.u32 [%rd1], 0, %rd3;",
        "prefetch.global.L2::evict_last [%rd1]; prefetch.L1 [%rd1]; prefetchu.L1 [%rd1];",
        "applypriority.global.L2::evict_normal [%rd1], 128;",
        "discard.global.L2 [%rd1+128], 128;",
        "griddepcontrol.launch_dependents; griddepcontrol.wait;",
        "nanosleep.u32 10; nanosleep.u32 %r1; pmevent 3;",
    };
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        uint32_t out[1] = {0};
        TEST_RUN(text_of(statements[i]), 1, 1, out);
        cr_assert_eq(out[0], 5, "%s: %u", statements[i], out[0]);
    }
}

Test(hint, a_policy_has_its_place) {
    static const char *const cases[][2] = {
        {"ld.global.L2::cache_hint.u32 %r9, [%rd1];", "needs 3 operands here, not 2"},
        {"ld.global.u32 %r9, [%rd1], %rd3;", "needs 2 operands here, not 3"},
        {"ld.global.L2::cache_hint.u32 %r9, [%rd1], %r3;", "32 bits, and 64"},
        {"st.global.u32 [%rd1], %r9, %rd3;", "needs 2 operands here, not 3"},
        {"st.global.L2::cache_hint.u32 [%rd1], %r9;", "needs 3 operands here, not 2"},
        {"createpolicy.fractional.L2::evict_last.b64 %r3, 1.0;", "32 bits, and 64"},
        {"createpolicy.fractional.L2::evict_last.b64 %rd3, 1;", "floating-point number"},
        {"createpolicy.cvt.L2.b64 %rd3;", "expected 2 operands, not 1"},
        {"createpolicy.range.L2::evict_last.b64 %rd3, [%rd1], 64;", "expected 4 operands"},
        /* Other things that this device has not. */
        {"tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, %rd2, {%f1,%f2}];", "separate samplers"},
        {"sust.p.1d.f32.trap [%rd1, {%r2}], %f1;", "'.f32' is not valid here"},
        {"redux.sync.min.f32 %f1, %f2, -1;", "'.f32' is not valid here"},
        {"griddepcontrol.other;", "'.other' is unknown"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(text_of(cases[i][0]), log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(log, "ptx:12:") == log && strstr(log, cases[i][1]) != NULL, "%s", log);
    }
}

/* There are no multicast objects here, so no address of one; the rest came after sm_90, or is not
 * modelled. */
Test(hint, what_this_device_has_not_is_refused_by_name) {
    static const char *const cases[][2] = {
        {"multimem.ld_reduce.relaxed.sys.global.add.u32 %r9, [%rd1];", "multimem.ld_reduce"},
        {"multimem.ld_reduce.weak.global.add.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];", "multimem"},
        {"multimem.st.relaxed.sys.global.u32 [%rd1], %r1;", "multimem.st"},
        {"multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;", "multimem.red"},
        {"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
         "[%r1], [%rd1, {%r1,%r1,%r1,%r1,%r1}], [%r2];",
         "tile::gather4"},
        {"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
         "[%rd1, {%r1,%r1,%r1,%r1,%r1}], [%r1];",
         "tile::scatter4"},
        {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
         "cta_group::1 [%r1], [%rd1, {%r1,%r1}], [%r2];",
         "cta_group::1"},
        {"fma.rn.oob.bf16 %r1, %r1, %r1, %r1;", "oob"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(text_of(cases[i][0]), log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(log, "ptx:12:") == log && strstr(log, cases[i][1]) != NULL, "%s", log);
        cr_assert(strstr(log, "not supported by this device") != NULL, "%s", log);
    }
    const int multicast_supported = 132;
    int multicast = 1;
    cr_assert_eq(cuDeviceGetAttribute(&multicast, (CUdevice_attribute)multicast_supported, 0),
                 CUDA_SUCCESS);
    cr_assert_eq(multicast, 0);
}
