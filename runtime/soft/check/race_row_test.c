/*
 * The race check against a model, on drawn kernels: warps of two blocks load and store adjacent,
 * spread or equal elements of a few rows, with barriers in between. Two accesses of a byte race if
 * one is a store, their threads differ, and no barrier of their block lies between them.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

enum { KERNELS = 1500, ACCESSES = 8, LANES = 32, WARPS = 3, BYTES = 1024, TEXT = 8000 };

static void open_checked(void) {
    setenv("TOLLENS_SOFT_CHECK", "memory,race", 1);
    test_soft_open();
}

TestSuite(race_row, .init = open_checked);

/* One instruction of some lanes of a warp. */
struct access {
    unsigned block, warp, epoch; /* epoch: barriers before it */
    unsigned bytes, begin, step; /* lane i accesses begin + i * step */
    uint32_t lanes;
    bool writes;
};

static uint32_t random_below(uint64_t *seed, uint32_t count) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % count;
}

static struct access draw(uint64_t *seed, unsigned epoch, bool is_shared) {
    const uint32_t masks[] = {UINT32_MAX, UINT32_MAX, 0x0000ffff, 0xfffffffe,
                              random_below(seed, 1u << 30) | 1};
    struct access a = {.block = is_shared ? 0 : random_below(seed, 8) == 0,
                       .warp = random_below(seed, WARPS),
                       .epoch = epoch,
                       .bytes = 1u << random_below(seed, 4),
                       .lanes = masks[random_below(seed, 5)],
                       .writes = random_below(seed, 3) == 0};
    if (random_below(seed, 2) == 0) a.bytes = 4;
    a.step = a.bytes;
    if (random_below(seed, 8) == 0) a.step = 2 * a.bytes;
    if (random_below(seed, 5) == 0 && !a.writes) a.step = 0;
    /* Often where a row begins. */
    a.begin = random_below(seed, 3) != 0 ? 128 * random_below(seed, 4)
                                         : a.bytes * random_below(seed, 512 / a.bytes);
    return a;
}

/* A read of the same lanes, an element before or after, as of a stencil. */
static struct access beside(const struct access *read, uint64_t *seed) {
    struct access a = *read;
    if (random_below(seed, 2) == 0) {
        a.begin += a.bytes;
    } else if (a.begin >= a.bytes) {
        a.begin -= a.bytes;
    }
    return a;
}

static bool is_race(const struct access *one, const struct access *other) {
    if (!one->writes && !other->writes) return false;
    if (one->block == other->block && one->epoch != other->epoch) return false;
    for (unsigned i = 0; i < LANES; i++) {
        for (unsigned k = 0; k < LANES; k++) {
            const bool same = one->block == other->block && one->warp == other->warp && i == k;
            const unsigned x = one->begin + i * one->step, y = other->begin + k * other->step;
            if (same || (one->lanes >> i & 1) == 0 || (other->lanes >> k & 1) == 0) continue;
            if (x < y + other->bytes && y < x + one->bytes) return true;
        }
    }
    return false;
}

/* Of shared memory, every block has its own and does the same. */
static size_t put_access(char *text, size_t room, const struct access *a, bool is_shared) {
    const char *r = a->bytes == 8 ? "%rd9" : "%r9", *space = is_shared ? "shared" : "global";
    char what[40];
    if (a->writes) {
        snprintf(what, sizeof what, "st.%s.u%u [%%rd8], %s", space, 8 * a->bytes, r);
    } else {
        snprintf(what, sizeof what, "ld.%s.u%u %s, [%%rd8]", space, 8 * a->bytes, r);
    }
    return (size_t)snprintf(
        text, room,
        "shr.u32 %%r8, %u, %%r6; and.b32 %%r8, %%r8, 1; setp.eq.u32 %%p1, %%r8, 1;\n"
        "setp.eq.and.u32 %%p1, %%r5, %u, %%p1; mov.u32 %%r7, %u;\n"
        "setp.eq.and.u32 %%p1, %%r4, %s, %%p1; mad.wide.u32 %%rd8, %%r6, %u, %%rd3;\n"
        "add.u64 %%rd8, %%rd8, %u; @%%p1 %s;\n",
        a->lanes, a->warp, a->block, is_shared ? "%r4" : "%r7", a->step, a->begin, what);
}

/* %rd3 is the memory, %r4 the block, %r5 the warp and %r6 the lane. */
static void put_kernel(char text[TEXT], const struct access *accesses, bool is_shared) {
    size_t at = (size_t)snprintf(
        text, TEXT,
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        ".reg .b32 %%r<10>; .reg .b64 %%rd<10>; .reg .pred %%p<3>;\n"
        ".shared .align 16 .b8 s[%u];\n"
        "%s mov.u32 %%r9, 5; mov.u64 %%rd9, 5; mov.u32 %%r4, %%ctaid.x;\n"
        "mov.u32 %%r5, %%tid.x; and.b32 %%r6, %%r5, 31; shr.u32 %%r5, %%r5, 5;\n",
        BYTES, is_shared ? "mov.u64 %rd3, s;" : "ld.param.u64 %rd3, [out];");
    for (unsigned i = 0; i < ACCESSES; i++) {
        if (i > 0 && accesses[i].epoch != accesses[i - 1].epoch) {
            at += (size_t)snprintf(text + at, TEXT - at, "bar.sync 0;\n");
        }
        at += put_access(text + at, TEXT - at, &accesses[i], is_shared);
    }
    snprintf(text + at, TEXT - at, "ret;\n}\n");
}

static bool expected(const struct access *accesses) {
    for (unsigned i = 0; i < ACCESSES; i++) {
        for (unsigned k = 0; k < i; k++) {
            if (is_race(&accesses[k], &accesses[i])) return true;
        }
    }
    return false;
}

static unsigned compare(uint64_t *seed, unsigned number) {
    static uint8_t memory[BYTES];
    static char text[TEXT];
    struct access accesses[ACCESSES];
    const bool is_shared = random_below(seed, 2) == 0;
    unsigned epoch = 0;
    for (unsigned i = 0; i < ACCESSES; i++) {
        accesses[i] = draw(seed, epoch, is_shared);
        if (i > 0 && !accesses[i - 1].writes && random_below(seed, 2) == 0) {
            accesses[i] = beside(&accesses[i - 1], seed);
            accesses[i].epoch = epoch;
        }
        epoch += random_below(seed, 10) < 5;
    }
    put_kernel(text, accesses, is_shared);
    test_capture(stderr);
    TEST_RUN(text, 2, WARPS * LANES, memory);
    const char *said = test_captured(stderr);
    const bool races = expected(accesses);
    cr_assert_eq(strstr(said, "data race") != NULL, races, "kernel %u: %s expected, not: %s\n%s",
                 number, races ? "a race" : "none", said, text);
    return races;
}

Test(race_row, drawn_kernels_race_where_the_model_says) {
    uint64_t seed = 1;
    unsigned races = 0;
    for (unsigned i = 0; i < KERNELS; i++) races += compare(&seed, i);
    cr_assert(races > KERNELS / 5 && races < KERNELS * 4 / 5, "%u of %d race", races, KERNELS);
}
