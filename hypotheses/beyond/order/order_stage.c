/*
 * The kernel is text, since nothing else uses it. It ends after a number of looks at the timer even
 * if that stands still, so that no fault can make it hang.
 */
#include "order_stage.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, FINDINGS = 4, SLOW_GPU_NS = 300 * 1000, SLOW_SOFT_NS = 20 * 1000 };

static const char ptx[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry pass(.param .u64 from, .param .u32 expected, .param .u64 to,\n"
    "                     .param .u32 written, .param .u64 slow_ns, .param .u64 findings) {\n"
    "  .reg .b32 %r<12>;  .reg .b64 %d<12>;  .reg .pred %p<6>;\n"
    "  ld.param.u64 %d1, [from];  ld.param.u32 %r1, [expected];\n"
    "  ld.param.u64 %d2, [to];  ld.param.u32 %r2, [written];\n"
    "  ld.param.u64 %d3, [slow_ns];  ld.param.u64 %d4, [findings];\n"
    "  mov.u32 %r3, %ctaid.x;  mov.u32 %r4, %ntid.x;  mov.u32 %r5, %tid.x;\n"
    "  mad.lo.u32 %r3, %r3, %r4, %r5;\n" /* the position */
    "  mul.lo.u32 %r4, %r3, 2654435761;  add.u32 %r4, %r4, 1;\n"
    "  mad.lo.u32 %r1, %r1, 2246822519, %r4;\n" /* the expected number */
    "  mad.lo.u32 %r2, %r2, 2246822519, %r4;\n" /* the number to write */
    "  setp.eq.u64 %p1, %d1, 0;  mad.wide.u32 %d1, %r3, 4, %d1;\n"
    "  mov.u32 %r6, %r1;\n"
    "  @!%p1 ld.volatile.global.u32 %r6, [%d1];\n"
    "  mov.u32 %r8, 0;  mov.u64 %d5, %globaltimer;\n"
    "SLOW:\n"
    "  mov.u64 %d6, %globaltimer;  sub.u64 %d6, %d6, %d5;  add.u32 %r8, %r8, 1;\n"
    "  setp.lt.u64 %p2, %d6, %d3;  setp.lt.and.u32 %p2, %r8, 1000000, %p2;\n"
    "  @%p2 bra SLOW;\n"
    "  mov.u32 %r7, %r1;\n"
    "  @!%p1 ld.volatile.global.u32 %r7, [%d1];\n"
    "  setp.ne.u32 %p3, %r6, %r1;  setp.ne.or.u32 %p4, %r7, %r1, %p3;\n"
    "  @!%p4 bra WRITE;\n"
    "  atom.global.add.u32 %r9, [%d4], 1;\n"
    "  setp.ne.u32 %p5, %r9, 0;\n"
    "  @%p5 bra WRITE;\n"
    "  selp.u32 %r6, %r6, %r7, %p3;\n"
    "  st.global.u32 [%d4+4], %r3;  st.global.u32 [%d4+8], %r6;  st.global.u32 [%d4+12], %r1;\n"
    "WRITE:\n"
    "  setp.eq.u64 %p1, %d2, 0;  mad.wide.u32 %d2, %r3, 4, %d2;\n"
    "  @!%p1 st.volatile.global.u32 [%d2], %r2;\n"
    "  ret;\n}\n";

void order_write(uint32_t stamp, volatile uint32_t *words) {
    for (unsigned i = 0; i < ORDER_WORDS; i++) words[i] = order_word(stamp, i);
}

unsigned order_difference(uint32_t stamp, const volatile uint32_t *words) {
    unsigned i = 0;
    while (i < ORDER_WORDS && words[i] == order_word(stamp, i)) i++;
    return i;
}

uint32_t order_stamp(struct order_stage *stage) {
    return ++stage->last_stamp;
}

static bool order_stage_clear(struct order_stage *stage) {
    return HYP_OK(stage->attack, tol_buffer_fill_at(stage->findings, 0, 0, 4, FINDINGS)) &&
           order_stage_settle(stage);
}

bool order_stage_begin(struct hyp_attack *attack, struct order_stage *stage) {
    memset(stage, 0, sizeof *stage);
    stage->attack = attack;
    return HYP_OK(attack,
                  tol_module_load(attack->context, ptx, sizeof ptx - 1, NULL, &stage->module)) &&
           HYP_OK(attack, tol_module_kernel(stage->module, "pass", &stage->pass)) &&
           HYP_OK(attack, tol_buffer_create(attack->context, FINDINGS, 4, &stage->findings)) &&
           order_stage_clear(stage);
}

void order_stage_end(struct order_stage *stage) {
    (void)stage->attack->raw->cuCtxSynchronize();
    tol_buffer_destroy(stage->findings);
    tol_module_destroy(stage->module);
}

struct tol_launch_shape order_shape(void) {
    return tol_launch_linear(ORDER_WORDS, BLOCK);
}

struct tol_arguments order_arguments(const struct order_stage *stage, struct order_pass pass,
                                     struct order_call *call) {
    static const unsigned bytes[] = {8, 4, 8, 4, 8, 8};
    const uint64_t slow_ns = stage->attack->kind == HYP_DEVICE_CUDA ? SLOW_GPU_NS : SLOW_SOFT_NS;
    *call = (struct order_call){.from = pass.from,
                                .to = pass.to,
                                .findings = tol_buffer_address(stage->findings),
                                .expected = pass.expected,
                                .written = pass.written,
                                .slow_ns = pass.is_slow ? slow_ns : 0};
    void *const values[] = {&call->from,    &call->expected, &call->to,
                            &call->written, &call->slow_ns,  &call->findings};
    memcpy(call->values, values, sizeof values);
    return (struct tol_arguments){6, call->values, bytes};
}

tol_status order_launch(const struct order_stage *stage, struct tol_stream *stream,
                        struct order_pass pass) {
    struct order_call call;
    return tol_launch(stream, stage->pass, order_shape(), order_arguments(stage, pass, &call));
}

bool order_stage_settle(struct order_stage *stage) {
    return HYP_CHECK(stage->attack, stage->attack->raw->cuCtxSynchronize() == CUDA_SUCCESS,
                     "the device's work has failed");
}

bool order_stage_judge(struct order_stage *stage, const char *what) {
    uint32_t found[FINDINGS] = {0};
    const CUdeviceptr at = tol_buffer_address(stage->findings);
    if (!HYP_CHECK(stage->attack,
                   stage->attack->raw->cuMemcpyDtoH_v2(found, at, sizeof found) == CUDA_SUCCESS,
                   "the findings of the kernels cannot be read") ||
        (found[0] > 0 && !order_stage_clear(stage))) {
        return false;
    }
    return HYP_CHECK(stage->attack, found[0] == 0,
                     "%s: kernels found %u wrong numbers; the first, at position %u, was %u and "
                     "not %u",
                     what, found[0], found[1], found[2], found[3]);
}
