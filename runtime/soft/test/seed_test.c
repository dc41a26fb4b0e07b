/*
 * Orders of a seed: the same seed gives the same order, others give others, and all results are
 * correct.
 */
#include "test_soft.h"

#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 6, THREADS = 128, WORDS = 1 + BLOCKS * THREADS };

/* Each thread takes a number from the counter in out[0]: even and odd lanes part before, and every
 * other warp loops, so that blocks, warps, splits and turns all show in who got which. */
static const char numbers[] =
    TEST_KERNEL("and.b32 %r10, %r3, 1; setp.eq.u32 %p1, %r10, 0; mov.u32 %r11, 0;\n"
                "and.b32 %r13, %r3, 32; mul.lo.u32 %r13, %r13, 200;\n"
                "@%p1 bra even;\n"
                "atom.global.add.u32 %r12, [%rd1], 1; bra store;\n"
                "even: add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, %r13; @%p3 bra even;\n"
                "atom.global.add.u32 %r12, [%rd1], 1;\n"
                "store: st.global.u32 [%rd2+4], %r12;\n");

/* A child process runs a kernel with a seed and sends what it wrote. */
static void run_with(const char *seed, const char *kernel, uint32_t out[WORDS]) {
    int ends[2], status = 0;
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        setenv("TOLLENS_SOFT_SEED", seed, 1);
        setenv("TOLLENS_SOFT_WORKERS", "1", 1);
        memset(out, 0, WORDS * sizeof *out);
        CUresult result = test_run(kernel, BLOCKS, THREADS, out, WORDS * sizeof *out);
        bool sent = write(ends[1], out, WORDS * sizeof *out) == (ssize_t)(WORDS * sizeof *out);
        _exit(result == CUDA_SUCCESS && sent ? 0 : 1);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], out, WORDS * sizeof *out);
    close(ends[0]);
    cr_assert(waitpid(child, &status, 0) == child && status == 0, "seed %s: %d", seed, status);
    cr_assert_eq(got, (ssize_t)(WORDS * sizeof *out));
}

/* Who gets which number with a seed. */
static void order_of(const char *seed, uint32_t out[WORDS]) {
    run_with(seed, numbers, out);
    /* Whatever the order, each number was given once. */
    static bool seen[BLOCKS * THREADS];
    memset(seen, 0, sizeof seen);
    cr_assert_eq(out[0], BLOCKS * THREADS);
    for (int i = 1; i < WORDS; i++) {
        cr_assert(out[i] < BLOCKS * THREADS && !seen[out[i]], "seed %s: %d got %u", seed, i,
                  out[i]);
        seen[out[i]] = true;
    }
}

/* The blocks in the order of the first number that one of their threads got. */
static void blocks_of(const uint32_t out[WORDS], int order[BLOCKS]) {
    uint32_t first[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) {
        first[b] = UINT32_MAX;
        for (int t = 0; t < THREADS; t++) {
            uint32_t number = out[1 + b * THREADS + t];
            if (number < first[b]) first[b] = number;
        }
    }
    for (int b = 0; b < BLOCKS; b++) {
        order[b] = 0;
        for (int other = 0; other < BLOCKS; other++) order[b] += first[other] < first[b];
    }
}

Test(seed, the_same_seed_gives_the_same_order) {
    static uint32_t one[WORDS], other[WORDS];
    static const char *const seeds[] = {"0", "1", "18446744073709551615"};
    for (int i = 0; i < 3; i++) {
        order_of(seeds[i], one);
        order_of(seeds[i], other);
        cr_assert_eq(memcmp(one, other, sizeof one), 0, "seed %s", seeds[i]);
    }
}

Test(seed, other_seeds_give_other_orders) {
    enum { SEEDS = 6 };
    static uint32_t out[SEEDS][WORDS];
    static int blocks[SEEDS][BLOCKS];
    unsigned moved = 0, sides = 0;
    for (int i = 0; i < SEEDS; i++) {
        char seed[16];
        snprintf(seed, sizeof seed, "%d", i);
        order_of(seed, out[i]);
        blocks_of(out[i], blocks[i]);
        for (int k = 0; k < i; k++) {
            cr_assert_neq(memcmp(out[i], out[k], sizeof out[0]), 0, "seeds %d and %d", i, k);
        }
        moved += memcmp(blocks[i], blocks[0], sizeof blocks[0]) != 0;
        /* Threads 0 and 1 of block 0 are on two sides of a branch. */
        sides += out[i][1 + 0] < out[i][1 + 1];
    }
    cr_assert(moved >= SEEDS - 2, "%u seeds moved blocks", moved);
    cr_assert(sides > 0 && sides < SEEDS, "in %u the taken side was first", sides);
}

Test(seed, no_seed_is_the_usual_order) {
    static uint32_t out[WORDS];
    int blocks[BLOCKS];
    order_of("0", out);
    blocks_of(out, blocks);
    for (int b = 0; b < BLOCKS; b++) cr_assert_eq(blocks[b], b);
}

#define UPDATE(way)                                                                                \
    TEST_KERNEL("ld." way ".global.u32 %r10, [%rd1]; add.u32 %r10, %r10, 1;\n"                     \
                "st." way ".global.u32 [%rd1], %r10;\n")

/* Each warp adds one to a word by a strong load and a strong store. With a seed, other warps run
 * between the two. */
Test(seed, an_update_that_is_not_atomic_loses_some) {
    enum { WARPS = BLOCKS * THREADS / 32 };
    static const char *const seeds[] = {"0", "1", "2", "3"};
    static const char *const updates[] = {UPDATE("volatile"), UPDATE("relaxed.gpu")};
    static uint32_t out[WORDS];
    for (int update = 0; update < 2; update++) {
        for (int i = 0; i < 4; i++) {
            run_with(seeds[i], updates[update], out);
            cr_assert(i == 0 ? out[0] == WARPS : out[0] >= 1 && out[0] < WARPS,
                      "update %d, seed %s: %u of %d are left", update, seeds[i], out[0], WARPS);
        }
    }
}

/* The requested number of seeds, usually two, beginning after TOLLENS_TEST_SEED (0). corpus_gemm
 * has its own tests with seeds. */
Test(seed, the_corpus_is_right_in_every_order) {
    const char *wanted = getenv("TOLLENS_TEST_SEEDS");
    const char *behind = getenv("TOLLENS_TEST_SEED");
    const long seeds = wanted != NULL ? strtol(wanted, NULL, 10) : 2;
    const unsigned long before = behind != NULL ? strtoul(behind, NULL, 10) % 1000000 : 0;
    static char *own[1024]; /* the environment, without what tells Criterion that it is a worker */
    test_capture(stdout);
    test_capture(stderr);
    for (long i = 1; i <= seeds; i++) {
        char seed[24], program[] = "/proc/self/exe", filter[] = "--filter=corpus_!(gemm)/*";
        char *arguments[] = {program, filter, NULL};
        pid_t child = 0;
        int status = 0;
        snprintf(seed, sizeof seed, "%lu", before + (unsigned long)i);
        setenv("TOLLENS_SOFT_SEED", seed, 1);
        size_t count = 0;
        for (char **name = environ; *name != NULL && count < 1023; name++) {
            if (strncmp(*name, "BXFI_", 5) != 0) own[count++] = *name;
        }
        own[count] = NULL;
        cr_assert_eq(posix_spawn(&child, program, NULL, NULL, arguments, own), 0);
        cr_assert(waitpid(child, &status, 0) == child && status == 0, "seed %s:\n%s", seed,
                  test_captured(stderr));
    }
    cr_assert(strstr(test_captured(stderr), "Failing: 0") != NULL, "%s", test_captured(stderr));
}
