/*
 * A probe: context, memory, a kernel over all of it, the bytes back, and what NVML has counted.
 *
 * It is short on purpose, for jobs wait for it: a few MiB, which a device that works does in
 * milliseconds after its context is made. A device that does not is found by the deadline or by the
 * first call that fails. Uncorrected ECC errors are counted since the driver was loaded, so they
 * are a reason only if a page could not be taken out of use; that the driver says by failing calls.
 */
#include "guard_probe.h"

#include "files/atomic_file.h"
#include "harness/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1 << 20, THREADS = 256 };

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          ".visible .entry probe(.param .u64 out, .param .u32 seed) {\n"
                          "  .reg .b32 %r<6>; .reg .b64 %rd<3>;\n"
                          "  ld.param.u64 %rd0, [out];\n"
                          "  ld.param.u32 %r0, [seed];\n"
                          "  mov.u32 %r1, %ctaid.x;\n"
                          "  mov.u32 %r2, %ntid.x;\n"
                          "  mov.u32 %r3, %tid.x;\n"
                          "  mad.lo.u32 %r3, %r1, %r2, %r3;\n"
                          "  mad.wide.u32 %rd1, %r3, 4, %rd0;\n"
                          "  mad.lo.u32 %r4, %r3, 2654435761, %r0;\n"
                          "  st.global.u32 [%rd1], %r4;\n"
                          "  ret;\n}\n";

static tol_status open_context(struct tol_driver **driver, struct tol_context **context) {
    enum hyp_device_kind kind = HYP_DEVICE_AUTO;
    int ordinal = 0;
    if (!hyp_session_device(getenv("TOLLENS_DEVICE"), &kind, &ordinal)) return TOL_INVALID_ARGUMENT;
    tol_status status = hyp_session_open(&kind, driver);
    if (status == TOL_OK) status = tol_context_create(*driver, ordinal, context);
    return status;
}

/* The soft device computes a hundredth of it, which is as much of a test there. */
static tol_status guard_probe_compute(struct tol_context *context, size_t words, unsigned *back) {
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_module struct tol_module *module = NULL;
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    struct tol_kernel *kernel = NULL;
    tol_status status = tol_stream_create(context, NULL, &stream);
    if (status == TOL_OK) status = tol_module_load(context, ptx, sizeof ptx - 1, NULL, &module);
    if (status == TOL_OK) status = tol_module_kernel(module, "probe", &kernel);
    if (status == TOL_OK) status = tol_buffer_create(context, words, sizeof *back, &buffer);
    if (status == TOL_OK) {
        status = tol_launch(stream, kernel, tol_launch_linear(words, THREADS),
                            TOL_ARGUMENTS(tol_buffer_address(buffer), 7u));
    }
    if (status == TOL_OK) status = tol_stream_synchronize(stream);
    if (status == TOL_OK) status = tol_buffer_read(buffer, back, words * sizeof *back);
    return status;
}

static bool guard_probe_check(struct tol_driver *driver, struct tol_context *context) {
    const size_t words = tol_driver_is_soft(driver) ? WORDS / 1024 : WORDS;
    struct tol_health health;
    unsigned *back = calloc(words, sizeof *back);
    if (back == NULL) return hyp_fail("no host memory for a probe");
    const tol_status status = guard_probe_compute(context, words, back);
    size_t wrong = 0;
    for (size_t i = 0; i < words; i++) wrong += back[i] != (unsigned)i * 2654435761u + 7u;
    free(back);
    if (status != TOL_OK) return hyp_fail("%s", hyp_session_message());
    if (wrong > 0) return hyp_fail("%zu of %zu words of a kernel were wrong", wrong, words);
    if (tol_health_check(context, NULL, &health) != TOL_OK) {
        return hyp_fail("%s", hyp_session_message());
    }
    return !health.is_lost || hyp_fail("%s", health.complaint);
}

int hyp_guard_probe(void) {
    tol_auto_driver struct tol_driver *driver = NULL;
    tol_auto_context struct tol_context *context = NULL;
    if (open_context(&driver, &context) != TOL_OK) {
        printf("%s\n", hyp_session_message());
        return 1;
    }
    if (guard_probe_check(driver, context)) return 0;
    printf("%s\n", hyp_error());
    return 1;
}

int hyp_guard_count(void) {
    tol_auto_driver struct tol_driver *driver = NULL;
    enum hyp_device_kind kind = HYP_DEVICE_AUTO;
    int ordinal = 0, count = 0;
    if (!hyp_session_device(getenv("TOLLENS_DEVICE"), &kind, &ordinal)) {
        printf("%s\n", hyp_error());
        return 1;
    }
    tol_status status = hyp_session_open(&kind, &driver);
    if (status == TOL_OK) status = tol_device_count(driver, &count);
    if (status != TOL_OK) {
        printf("%s\n", hyp_session_message());
        return 1;
    }
    for (int i = 0; i < count; i++) {
        printf("%s%s:%d", i > 0 ? "," : "", hyp_device_kind_name(kind), i);
    }
    printf("\n");
    return count > 0 ? 0 : 1;
}
