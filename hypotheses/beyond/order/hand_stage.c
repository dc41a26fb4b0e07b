/*
 * The kernels, the owners, and what went wrong.
 */
#include "order_faults.h"
#include "hand_stage.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A stamp is a word at the beginning of each granule: the owner's key, and the position. The
 * numbers are odd, so that an owner can be computed from its key. */
#define KEY_STEP 0x85ebca6bu
#define POSITION_STEP 0x9e3779b1u

enum { SLOW_NS = 100000, STAMPS_MAX = 4096, REPORT_WORDS = 4, BLOCK = 64 };

/* slow ends after a time, or after a number of iterations, whatever the timer reads. */
static const char kernels[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry slow(.param .u32 ns) {\n"
    "  .reg .u64 %t<4>; .reg .u32 %n<2>; .reg .pred %p, %q;\n"
    "  ld.param.u32 %n0, [ns];\n  cvt.u64.u32 %t0, %n0;\n  mov.u64 %t1, %globaltimer;\n"
    "  mov.u32 %n1, 0;\n"
    "LOOP:\n  mov.u64 %t2, %globaltimer;\n  sub.u64 %t3, %t2, %t1;\n"
    "  setp.ge.u64 %p, %t3, %t0;\n  @%p bra DONE;\n  add.u32 %n1, %n1, 1;\n"
    "  setp.lt.u32 %q, %n1, 1000000;\n  @%q bra LOOP;\n"
    "DONE:\n  ret;\n}\n"
#define POSITION                                                                                   \
    "  ld.param.u64 %a0, [at];\n  ld.param.u32 %r0, [count];\n  ld.param.u32 %r1, [step];\n"       \
    "  ld.param.u32 %r2, [key];\n"                                                                 \
    "  mov.u32 %r3, %ctaid.x;\n  mov.u32 %r4, %ntid.x;\n  mov.u32 %r5, %tid.x;\n"                  \
    "  mad.lo.u32 %r3, %r3, %r4, %r5;\n  setp.ge.u32 %p, %r3, %r0;\n  @%p ret;\n"                  \
    "  mul.wide.u32 %a1, %r3, %r1;\n  add.u64 %a1, %a0, %a1;\n"                                    \
    "  mad.lo.u32 %r2, %r3, 0x9e3779b1, %r2;\n"
    ".visible .entry stamp(.param .u64 at, .param .u32 count, .param .u32 step, .param .u32 key) "
    "{\n"
    "  .reg .u64 %a<2>; .reg .u32 %r<6>; .reg .pred %p;\n" POSITION
    "  st.global.u32 [%a1], %r2;\n  ret;\n}\n"
    ".visible .entry check(.param .u64 at, .param .u32 count, .param .u32 step, .param .u32 key,\n"
    "                      .param .u64 report) {\n"
    "  .reg .u64 %a<3>; .reg .u32 %r<8>; .reg .pred %p;\n" POSITION
    "  ld.global.u32 %r6, [%a1];\n  setp.eq.u32 %p, %r6, %r2;\n  @%p ret;\n"
    "  ld.param.u64 %a2, [report];\n  atom.global.add.u32 %r7, [%a2], 1;\n"
    "  setp.ne.u32 %p, %r7, 0;\n  @%p ret;\n"
    "  st.global.u32 [%a2+4], %r3;\n  st.global.u32 [%a2+8], %r6;\n  st.global.u32 [%a2+12], %r2;\n"
    "  ret;\n}\n";

/* ---- the stage ------------------------------------------------------------------------------- */

bool hand_stage_begin(struct hyp_attack *attack, struct hand_stage *s) {
    *s = (struct hand_stage){.attack = attack};
    order_fault_begin(attack);
    return HYP_OK(attack, tol_module_load(attack->context, kernels, sizeof kernels - 1, NULL,
                                          &s->module)) &&
           HYP_OK(attack, tol_module_kernel(s->module, "slow", &s->slow)) &&
           HYP_OK(attack, tol_module_kernel(s->module, "stamp", &s->stamp)) &&
           HYP_OK(attack, tol_module_kernel(s->module, "check", &s->check)) &&
           HYP_OK(attack,
                  tol_buffer_create(attack->context, HAND_WALKERS * REPORT_WORDS, 4, &s->report)) &&
           HYP_OK(attack,
                  tol_buffer_fill_at(s->report, 0, 0, 4, (size_t)HAND_WALKERS * REPORT_WORDS));
}

void hand_stage_end(struct hand_stage *s) {
    tol_buffer_destroy(s->report);
    tol_module_destroy(s->module);
}

struct tol_pool *hand_pool(struct hand_stage *s, const struct tol_pool_options *options,
                           bool *lacks) {
    struct tol_pool *pool = NULL;
    const tol_status status = tol_pool_create(s->attack->context, options, &pool);
    *lacks = status == TOL_UNSUPPORTED;
    if (!*lacks && !hyp_attack_ok(s->attack, status, "tol_pool_create")) return NULL;
    return pool;
}

/* ---- walkers --------------------------------------------------------------------------------- */

static bool hand_trouble(struct hand_walker *w, const char *call, const char *message) {
    if (w->trouble[0] == '\0') {
        snprintf(w->trouble, sizeof w->trouble, "%s: %.400s", call, message);
    }
    return false;
}

static bool hand_ok(struct hand_walker *w, tol_status status, const char *call) {
    return status == TOL_OK || hand_trouble(w, call, tol_message());
}

/* A call of the driver's own functions. */
static bool hand_raw(struct hand_walker *w, CUresult result, const char *call) {
    char text[32];
    snprintf(text, sizeof text, "error %d", (int)result);
    return result == CUDA_SUCCESS || hand_trouble(w, call, text);
}

/* SplitMix64, as hyp_random; each walker has its own. */
uint64_t hand_draw(struct hand_walker *w, uint64_t limit) {
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % limit;
}

bool hand_walker_begin(struct hand_stage *s, struct hand_walker *w, unsigned place,
                       struct tol_pool *pool) {
    *w = (struct hand_walker){
        .stage = s, .pool = pool, .place = place, .random = hyp_random(s->attack)};
    bool ok =
        HYP_OK(s->attack, tol_context_bind(s->attack->context)) &&
        HYP_CHECK(s->attack,
                  s->attack->raw->cuEventCreate(&w->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS,
                  "an event cannot be created");
    for (int i = 0; ok && i < HAND_STREAMS; i++) {
        ok = HYP_OK(s->attack, tol_stream_create(s->attack->context, NULL, &w->streams[i]));
    }
    return ok;
}

void hand_walker_end(struct hand_walker *w) {
    while (w->count > 0) (void)hand_give(w, &w->hands[w->count - 1]);
    for (int i = 0; i < HAND_STREAMS; i++) tol_stream_destroy(w->streams[i]);
    if (w->event != NULL) (void)w->stage->attack->raw->cuEventDestroy_v2(w->event);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* How a block is stamped: all of its granules, or every second one, and so on. */
static unsigned hand_stamps(size_t bytes, unsigned *step) {
    const size_t granules = (bytes + TOL_POOL_ALIGNMENT - 1) / TOL_POOL_ALIGNMENT;
    size_t stride = 1;
    while (granules / stride > STAMPS_MAX) stride *= 2;
    *step = (unsigned)(stride * TOL_POOL_ALIGNMENT);
    return (unsigned)((granules + stride - 1) / stride);
}

static bool hand_slow(struct hand_walker *w, unsigned stream) {
    return hand_ok(w,
                   tol_launch(w->streams[stream], w->stage->slow, tol_launch_linear(1, 1),
                              TOL_ARGUMENTS((unsigned)SLOW_NS)),
                   "a slow kernel");
}

bool hand_stamp(struct hand_walker *w, struct hand *hand, bool is_slow) {
    unsigned step = 0;
    const unsigned count = hand_stamps(hand->bytes, &step);
    hand->owner = atomic_fetch_add(&w->stage->owners, 1) + 1;
    return (!is_slow || hand_slow(w, hand->stream)) &&
           hand_ok(w,
                   tol_launch(w->streams[hand->stream], w->stage->stamp,
                              tol_launch_linear(count, BLOCK),
                              TOL_ARGUMENTS(hand->at, count, step, hand->owner * KEY_STEP)),
                   "a stamp");
}

bool hand_check(struct hand_walker *w, const struct hand *hand, bool is_slow) {
    unsigned step = 0;
    const unsigned count = hand_stamps(hand->bytes, &step);
    const CUdeviceptr report =
        tol_buffer_address(w->stage->report) + 4ull * REPORT_WORDS * w->place;
    return (!is_slow || hand_slow(w, hand->stream)) &&
           hand_ok(w,
                   tol_launch(w->streams[hand->stream], w->stage->check,
                              tol_launch_linear(count, BLOCK),
                              TOL_ARGUMENTS(hand->at, count, step, hand->owner * KEY_STEP, report)),
                   "a check");
}

bool hand_follow(struct hand_walker *w, unsigned stream, unsigned first) {
    const struct tol_driver_table *raw = w->stage->attack->raw;
    return hand_raw(w, raw->cuEventRecord(w->event, tol_stream_handle(w->streams[first])),
                    "cuEventRecord") &&
           hand_raw(w, raw->cuStreamWaitEvent(tol_stream_handle(w->streams[stream]), w->event, 0),
                    "cuStreamWaitEvent");
}

bool hand_wait(struct hand_walker *w, unsigned stream) {
    const struct tol_driver_table *raw = w->stage->attack->raw;
    return hand_raw(w, raw->cuStreamSynchronize(tol_stream_handle(w->streams[stream])),
                    "cuStreamSynchronize");
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct hand *hand_take(struct hand_walker *w, size_t bytes, unsigned stream, bool is_host) {
    w->lacks = false;
    if (w->count == HAND_LIVE || w->trouble[0] != '\0') return NULL;
    struct hand *hand = &w->hands[w->count];
    *hand = (struct hand){.bytes = bytes, .stream = stream};
    const tol_status status =
        tol_pool_allocate(w->pool, bytes, is_host ? NULL : w->streams[stream], &hand->block);
    w->lacks = status == TOL_OUT_OF_DEVICE_MEMORY;
    if (w->lacks || !hand_ok(w, status, "tol_pool_allocate")) return NULL;
    hand->at = tol_pool_address(w->pool, hand->block);
    if (order_fault_now("block_given_twice_one_in")) {
        hand->is_given_too = tol_pool_free(w->pool, hand->block, w->streams[stream]) == TOL_OK;
    }
    w->count++;
    return hand_stamp(w, hand, false) ? hand : NULL;
}

bool hand_give(struct hand_walker *w, struct hand *hand) {
    const struct hand given = *hand;
    *hand = w->hands[--w->count];
    if (given.is_given_too) return true;
    return hand_ok(w, order_fault_free(w->pool, given.block, w->streams[given.stream]),
                   "tol_pool_free");
}

/* ---- what went wrong ------------------------------------------------------------------------- */

/* The owner that wrote a word at a position of its block. */
static unsigned hand_owner_of(unsigned word, unsigned position) {
    unsigned inverse = KEY_STEP; /* right to 3 bits; each step doubles them */
    for (int i = 0; i < 4; i++) inverse *= 2 - KEY_STEP * inverse;
    return (word - position * POSITION_STEP) * inverse;
}

bool hand_settle(struct hand_stage *s, struct hand_walker *walkers, unsigned count,
                 const char *what) {
    unsigned reports[HAND_WALKERS * REPORT_WORDS] = {0};
    const struct tol_driver_table *raw = s->attack->raw;
    bool ok = HYP_OK(s->attack, tol_context_bind(s->attack->context)) &&
              HYP_CHECK(s->attack, raw->cuCtxSynchronize() == CUDA_SUCCESS,
                        "%s: the work of the context has failed", what) &&
              HYP_CHECK(s->attack,
                        raw->cuMemcpyDtoH_v2(reports, tol_buffer_address(s->report),
                                             sizeof reports) == CUDA_SUCCESS,
                        "%s: the report cannot be read", what);
    for (unsigned i = 0; i < count; i++) {
        const unsigned *report = &reports[(size_t)REPORT_WORDS * i];
        const unsigned owners = atomic_load(&s->owners), position = report[1];
        const unsigned other = hand_owner_of(report[2], position);
        ok = HYP_CHECK(s->attack, walkers[i].trouble[0] == '\0', "%s: %s", what,
                       walkers[i].trouble) &&
             ok;
        ok = HYP_CHECK(s->attack, report[0] == 0,
                       "%s: %u words of blocks are not their owners'; the first, in granule %u of "
                       "the block of owner %u, is 0x%08x%s",
                       what, report[0], position, hand_owner_of(report[3], position), report[2],
                       other > 0 && other <= owners ? ", a stamp of another owner" : "") &&
             ok;
    }
    return ok;
}
