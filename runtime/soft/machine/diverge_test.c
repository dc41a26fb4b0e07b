/*
 * Divergence: lanes that diverge, reconverge, wait for each other and exit. The results of every
 * kernel are compared with what each thread would compute alone; kernels that need forward progress
 * must end.
 */
#include "test/test_soft.h"

TestSuite(diverge, .init = test_soft_open, .fini = test_soft_close);

enum { THREADS = 70 }; /* two warps and a part of one */

Test(diverge, nested_branches) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0;\n"
                         "setp.lt.u32 %p2, %r1, 20; mov.u32 %r10, 0;\n"
                         "@%p1 bra EVEN;\n"
                         "  @%p2 bra ODD_LOW;\n"
                         "    add.u32 %r10, %r10, 1; bra ODD_END;\n"
                         "  ODD_LOW: add.u32 %r10, %r10, 2;\n"
                         "  ODD_END: add.u32 %r10, %r10, 10; bra END;\n"
                         "EVEN:\n"
                         "  @!%p2 bra EVEN_END;\n"
                         "    rem.u32 %r6, %r1, 3; setp.eq.u32 %p3, %r6, 0;\n"
                         "    @%p3 add.u32 %r10, %r10, 3;\n"
                         "    @!%p3 add.u32 %r10, %r10, 4;\n"
                         "  EVEN_END: add.u32 %r10, %r10, 20;\n"
                         "END: activemask.b32 %r11; popc.b32 %r11, %r11;\n"
                         "shl.b32 %r11, %r11, 8; or.b32 %r10, %r10, %r11;\n"
                         "st.global.u32 [%rd2], %r10;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t expected = i % 2 ? (i < 20 ? 12 : 11) : (i < 20 ? (i % 3 ? 24 : 23) : 20);
        cr_assert_eq(out[i] & 0xff, expected, "thread %u: %u", i, out[i]);
        cr_assert_eq(out[i] >> 8, i < 64 ? 32 : THREADS - 64, "they have met again");
    }
}

Test(diverge, loops_of_different_lengths) {
    /* Collatz: a length of its own for each thread, and a branch in the loop. */
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("add.u32 %r5, %r1, 1; mov.u32 %r6, 0;\n"
                         "LOOP: setp.eq.u32 %p1, %r5, 1; @%p1 bra DONE;\n"
                         "add.u32 %r6, %r6, 1; and.b32 %r7, %r5, 1; setp.ne.u32 %p2, %r7, 0;\n"
                         "@%p2 bra ODD;\n"
                         "shr.u32 %r5, %r5, 1; bra LOOP;\n"
                         "ODD: mad.lo.u32 %r5, %r5, 3, 1; bra LOOP;\n"
                         "DONE: st.global.u32 [%rd2], %r6;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t n = i + 1, steps = 0;
        for (; n != 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
        cr_assert_eq(out[i], steps, "thread %u: %u, not %u", i, out[i], steps);
    }
}

Test(diverge, break_and_continue) {
    /* for (j = 0; j < 50; j++) { if ((i + j) % 4 == 0) continue; s += j; if (s > 5 * i) break; } */
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r5, 0; mov.u32 %r6, 0; mul.lo.u32 %r9, %r1, 5;\n"
                         "LOOP: setp.ge.u32 %p1, %r5, 50; @%p1 bra DONE;\n"
                         "add.u32 %r7, %r1, %r5; and.b32 %r7, %r7, 3; setp.eq.u32 %p2, %r7, 0;\n"
                         "@%p2 bra NEXT;\n"
                         "add.u32 %r6, %r6, %r5; setp.gt.u32 %p3, %r6, %r9; @%p3 bra DONE;\n"
                         "NEXT: add.u32 %r5, %r5, 1; bra LOOP;\n"
                         "DONE: shl.b32 %r5, %r5, 16; or.b32 %r6, %r6, %r5;\n"
                         "st.global.u32 [%rd2], %r6;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t j = 0, s = 0;
        for (; j < 50; j++) {
            if ((i + j) % 4 == 0) continue;
            s += j;
            if (s > 5 * i) break;
        }
        cr_assert_eq(out[i], j << 16 | s, "thread %u: 0x%x", i, out[i]);
    }
}

Test(diverge, exits_under_a_predicate) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r5, 1; st.global.u32 [%rd2], %r5;\n"
                         "rem.u32 %r6, %r1, 3; setp.eq.u32 %p1, %r6, 0; @%p1 exit;\n"
                         "mov.u32 %r5, 2; st.global.u32 [%rd2], %r5;\n"
                         "rem.u32 %r6, %r1, 5; setp.ne.u32 %p1, %r6, 0; @!%p1 bra LEAVE;\n"
                         "activemask.b32 %r5; st.global.u32 [%rd2], %r5;\n"
                         "ret;\nLEAVE: exit;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t left = 0;
        for (uint32_t j = i / 32 * 32; j < i / 32 * 32 + 32 && j < THREADS; j++) {
            left |= (uint32_t)(j % 3 != 0 && j % 5 != 0) << j % 32;
        }
        cr_assert_eq(out[i], i % 3 == 0 ? 1 : i % 5 == 0 ? 2 : left, "thread %u: 0x%x", i, out[i]);
    }
}

/* A write under a guard leaves what was there: a register that only the first turn of a loop writes
 * keeps its value, though each turn has a value of its own before it. */
Test(diverge, a_register_that_one_turn_writes_keeps_its_value) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r6, 0;\n"
                         "LOOP: mad.lo.u32 %r7, %r1, 3, %r6; st.global.u32 [%rd2], %r7;\n"
                         "setp.eq.u32 %p1, %r6, 0; @%p1 add.u32 %r5, %r1, 1000;\n"
                         "add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3; @%p2 bra LOOP;\n"
                         "st.global.u32 [%rd2], %r5;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], i + 1000, "thread %u: %u", i, out[i]);
    }
}

/* Exits inside a loop's body, while others wait where the loop ends. */
Test(diverge, exits_inside_a_loop) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r5, 0; and.b32 %r8, %r1, 7;\n"
                         "LOOP: add.u32 %r5, %r5, 1; st.global.u32 [%rd2], %r5;\n"
                         "setp.eq.u32 %p1, %r5, 10; setp.gt.u32 %p2, %r8, 4;\n"
                         "and.pred %p3, %p1, %p2; @%p3 exit;\n"
                         "setp.lt.u32 %p4, %r8, 2; setp.eq.u32 %p5, %r5, 5;\n"
                         "and.pred %p4, %p4, %p5; @%p4 bra DONE;\n"
                         "setp.lt.u32 %p1, %r5, 20; @%p1 bra LOOP;\n"
                         "DONE: add.u32 %r5, %r5, 100; st.global.u32 [%rd2], %r5;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t expected = i % 8 > 4 ? 10 : i % 8 < 2 ? 105 : 120;
        cr_assert_eq(out[i], expected, "thread %u: %u", i, out[i]);
    }
}

/* A loop with two entries, which no structured program has: lanes jump into its middle. */
Test(diverge, irreducible_flow) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r5, 0; mov.u32 %r6, 0; and.b32 %r7, %r1, 1;\n"
                         "setp.eq.u32 %p1, %r7, 0; @%p1 bra SECOND;\n"
                         "FIRST: add.u32 %r6, %r6, 1; add.u32 %r5, %r5, 1;\n"
                         "setp.gt.u32 %p2, %r5, %r1; @%p2 bra DONE;\n"
                         "SECOND: add.u32 %r6, %r6, 100; add.u32 %r5, %r5, 2;\n"
                         "setp.le.u32 %p2, %r5, %r1; @%p2 bra FIRST;\n"
                         "DONE: st.global.u32 [%rd2], %r6;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t n = 0, sum = 0;
        bool first = i % 2 == 1;
        for (;;) {
            if (first) {
                sum++, n++;
                if (n > i) break;
            }
            sum += 100, n += 2;
            if (n > i) break;
            first = true;
        }
        cr_assert_eq(out[i], sum, "thread %u: %u, not %u", i, out[i], sum);
    }
}

/* A branch back into a loop with no other way out than an exit: no place to meet again. */
Test(diverge, a_loop_that_only_an_exit_leaves) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r5, 0;\n"
                         "LOOP: add.u32 %r5, %r5, 3; st.global.u32 [%rd2], %r5;\n"
                         "setp.gt.u32 %p1, %r5, %r1; @%p1 exit;\n"
                         "and.b32 %r6, %r5, 1; setp.eq.u32 %p2, %r6, 0; @%p2 bra LOOP;\n"
                         "add.u32 %r5, %r5, 1; bra LOOP;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t n = 3;
        while (n <= i) n += n % 2 ? 4 : 3;
        cr_assert_eq(out[i], n, "thread %u: %u, not %u", i, out[i], n);
    }
}

/* More ways to part than there are joins: 32 lanes, each of which takes 32 branches at its own
 * place of a binary tree written out as a loop over bits. */
Test(diverge, lanes_part_to_the_last_one) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r5, 0; mov.u32 %r6, 0;\n"
                         "BIT: shr.u32 %r7, %r1, %r5; and.b32 %r7, %r7, 1;\n"
                         "setp.eq.u32 %p1, %r7, 0; add.u32 %r5, %r5, 1;\n"
                         "setp.ge.u32 %p2, %r5, 5; @%p1 bra ZERO;\n"
                         "mad.lo.u32 %r6, %r6, 3, 2; @!%p2 bra BIT; bra DONE;\n"
                         "ZERO: mad.lo.u32 %r6, %r6, 3, 1; @!%p2 bra BIT;\n"
                         "DONE: activemask.b32 %r8; setp.eq.u32 %p1, %r8, -1;\n"
                         "@!%p1 mov.u32 %r6, 0; st.global.u32 [%rd2], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t n = 0;
        for (int bit = 0; bit < 5; bit++) n = 3 * n + 1 + (i >> bit & 1);
        cr_assert_eq(out[i], n, "thread %u: %u, not %u", i, out[i], n);
    }
}

Test(diverge, an_indirect_meeting_place_of_many_loops) {
    /* Three nested loops with bounds from the thread's number; 64 joins do not last for all the
     * branches that are open at a time. */
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r10, 0; mov.u32 %r5, 0;\n"
                         "A: setp.gt.u32 %p1, %r5, %r1; @%p1 bra A_END; mov.u32 %r6, 0;\n"
                         "B: add.u32 %r11, %r1, %r5; and.b32 %r11, %r11, 7;\n"
                         "setp.ge.u32 %p2, %r6, %r11; @%p2 bra B_END; mov.u32 %r7, 0;\n"
                         "C: xor.b32 %r12, %r6, %r1; and.b32 %r12, %r12, 3;\n"
                         "setp.ge.u32 %p3, %r7, %r12; @%p3 bra C_END;\n"
                         "mad.lo.u32 %r10, %r10, 7, %r7; add.u32 %r7, %r7, 1; bra C;\n"
                         "C_END: add.u32 %r10, %r10, 1; add.u32 %r6, %r6, 1; bra B;\n"
                         "B_END: add.u32 %r5, %r5, 1; bra A;\n"
                         "A_END: st.global.u32 [%rd2], %r10;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t n = 0;
        for (uint32_t a = 0; a <= i; a++) {
            for (uint32_t b = 0; b < ((i + a) & 7); b++) {
                for (uint32_t c = 0; c < ((b ^ i) & 3); c++) n = 7 * n + c;
                n++;
            }
        }
        cr_assert_eq(out[i], n, "thread %u: %u, not %u", i, out[i], n);
    }
}

/* A lock that lanes of one warp fight for. A machine that runs the spinning lanes until they have
 * the lock, or the holder only when all have it, never ends. */
Test(diverge, a_spin_lock_inside_a_warp) {
    uint32_t out[2] = {0};
    TEST_RUN(TEST_KERNEL("SPIN: atom.global.cas.b32 %r5, [%rd1], 0, 1;\n"
                         "setp.ne.u32 %p1, %r5, 0; @%p1 bra SPIN;\n"
                         "ld.volatile.global.u32 %r6, [%rd1+4]; add.u32 %r6, %r6, 1;\n"
                         "st.volatile.global.u32 [%rd1+4], %r6; membar.gl;\n"
                         "atom.global.exch.b32 %r7, [%rd1], 0;\n"),
             2, 64, out);
    cr_assert_eq(out[1], 128, "%u", out[1]);
}

/* The same with the critical section inside the loop, as careful programs write it. */
Test(diverge, a_lock_taken_inside_the_loop) {
    uint32_t out[2] = {0};
    TEST_RUN(TEST_KERNEL("mov.pred %p2, 0;\n"
                         "SPIN: atom.global.cas.b32 %r5, [%rd1], 0, 1;\n"
                         "setp.ne.u32 %p1, %r5, 0; @%p1 bra AGAIN;\n"
                         "ld.volatile.global.u32 %r6, [%rd1+4]; add.u32 %r6, %r6, 1;\n"
                         "st.volatile.global.u32 [%rd1+4], %r6; membar.gl;\n"
                         "atom.global.exch.b32 %r7, [%rd1], 0; setp.eq.u32 %p2, 0, 0;\n"
                         "AGAIN: @!%p2 bra SPIN;\n"),
             4, 64, out);
    cr_assert_eq(out[1], 256, "%u", out[1]);
}

/* Lane by lane hands a token to the next, the last lane first: each spins until it is its turn. */
Test(diverge, a_token_goes_from_lane_to_lane) {
    uint32_t out[33] = {0};
    TEST_RUN(TEST_KERNEL("sub.u32 %r5, 31, %r1;\n"
                         "WAIT: ld.volatile.global.u32 %r6, [%rd1+128];\n"
                         "setp.ne.u32 %p1, %r6, %r5; @%p1 bra WAIT;\n"
                         "st.global.u32 [%rd2], %r6; membar.cta; add.u32 %r6, %r6, 1;\n"
                         "st.volatile.global.u32 [%rd1+128], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], 31 - i, "lane %u: %u", i, out[i]);
}

/* One lane produces, the others consume; each of the two sides is once the branch that is taken. */
#define PRODUCER(lane)                                                                             \
    TEST_KERNEL("setp.eq.u32 %p1, %r1, " lane "; @%p1 bra PRODUCE;\n"                              \
                "WAIT: ld.volatile.global.u32 %r6, [%rd1+128];\n"                                  \
                "setp.eq.u32 %p2, %r6, 0; @%p2 bra WAIT; bra END;\n"                               \
                "PRODUCE: mov.u32 %r6, 77; st.volatile.global.u32 [%rd1+128], %r6;\n"              \
                "END: st.global.u32 [%rd2], %r6;\n")
#define CONSUMERS(lane)                                                                            \
    TEST_KERNEL("setp.ne.u32 %p1, %r1, " lane "; @%p1 bra WAIT;\n"                                 \
                "mov.u32 %r6, 77; st.volatile.global.u32 [%rd1+128], %r6; bra END;\n"              \
                "WAIT: ld.volatile.global.u32 %r6, [%rd1+128];\n"                                  \
                "setp.eq.u32 %p2, %r6, 0; @%p2 bra WAIT;\n"                                        \
                "END: st.global.u32 [%rd2], %r6;\n")

Test(diverge, a_producer_and_consumers_in_one_warp) {
    static const char *const texts[] = {PRODUCER("0"), PRODUCER("31"), CONSUMERS("0"),
                                        CONSUMERS("31")};
    for (size_t t = 0; t < 4; t++) {
        uint32_t out[33] = {0};
        TEST_RUN(texts[t], 1, 32, out);
        for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], 77, "lane %u: %u", i, out[i]);
    }
}

/* Both sides of a branch shuffle with the full mask: two instructions, one exchange (CUDA C++
 * Programming Guide, "Independent Thread Scheduling"). */
Test(diverge, a_shuffle_joins_both_sides_of_a_branch) {
    uint32_t out[64] = {0};
    TEST_RUN(TEST_KERNEL("mul.lo.u32 %r5, %r1, %r1; setp.lt.u32 %p1, %r3, 16; mov.u32 %r9, %r3;\n"
                         "rem.u32 %r3, %r3, 32; setp.lt.u32 %p1, %r3, 16; @%p1 bra LOW;\n"
                         "add.u32 %r6, %r5, 5; shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;\n"
                         "add.u32 %r7, %r7, 1000000; bra END;\n"
                         "LOW: shfl.sync.bfly.b32 %r8|%p2, %r5, 16, 31, -1; mov.u32 %r7, %r8;\n"
                         "@!%p2 mov.u32 %r7, 0;\n"
                         "END: st.global.u32 [%rd2], %r7;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t other = i ^ 16;
        uint32_t expected = i % 32 < 16 ? other * other + 5 : other * other + 1000000;
        cr_assert_eq(out[i], expected, "lane %u: %u, not %u", i, out[i], expected);
    }
}

Test(diverge, votes_and_matches_join_both_sides_of_a_branch) {
    uint32_t out[3 * 32] = {0};
    TEST_RUN(
        TEST_KERNEL("mad.lo.u32 %r4, %r1, 8, 0; cvt.u64.u32 %rd3, %r4; add.u64 %rd2, %rd2, %rd3;\n"
                    "and.b32 %r5, %r1, 3; setp.eq.u32 %p2, %r5, 0; setp.lt.u32 %p1, %r1, 9;\n"
                    "@%p1 bra LOW;\n"
                    "vote.sync.ballot.b32 %r6, %p2, -1; match.any.sync.b32 %r7, %r5, -1;\n"
                    "redux.sync.add.u32 %r8, %r1, -1; bar.warp.sync -1; bra END;\n"
                    "LOW: vote.sync.ballot.b32 %r6, !%p2, -1;\n"
                    "xor.b32 %r9, %r5, 3; match.any.sync.b32 %r7, %r9, -1;\n"
                    "redux.sync.add.u32 %r8, %r1, -1; bar.warp.sync -1;\n"
                    "END: st.global.u32 [%rd2], %r6; st.global.u32 [%rd2+4], %r7;\n"
                    "st.global.u32 [%rd2+8], %r8;\n"),
        1, 32, out);
    uint32_t ballot = 0, value[32];
    for (uint32_t i = 0; i < 32; i++) {
        ballot |= (uint32_t)(i < 9 ? i % 4 != 0 : i % 4 == 0) << i;
        value[i] = i < 9 ? i % 4 ^ 3 : i % 4;
    }
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t same = 0;
        for (uint32_t j = 0; j < 32; j++) same |= (uint32_t)(value[i] == value[j]) << j;
        cr_assert_eq(out[3 * i], ballot, "lane %u: 0x%x", i, out[3 * i]);
        cr_assert_eq(out[3 * i + 1], same, "lane %u: 0x%x", i, out[3 * i + 1]);
        cr_assert_eq(out[3 * i + 2], 31 * 16, "lane %u: %u", i, out[3 * i + 2]);
    }
}

/* Tiles of eight lanes, each with its own member mask, at one instruction and at one time: what
 * tiled groups of a warp do. */
Test(diverge, each_lane_brings_its_own_member_mask) {
    uint32_t out[6 * 64] = {0};
    TEST_RUN(
        TEST_KERNEL("mul.lo.u32 %r4, %r1, 20; cvt.u64.u32 %rd3, %r4; add.u64 %rd2, %rd2, %rd3;\n"
                    "mov.u32 %r4, %laneid; and.b32 %r5, %r4, 24; mov.u32 %r6, 255;\n"
                    "shl.b32 %r6, %r6, %r5; mul.lo.u32 %r7, %r1, 3;\n"
                    "and.b32 %r8, %r7, 1; setp.ne.u32 %p1, %r8, 0;\n"
                    "vote.sync.ballot.b32 %r10, %p1, %r6; st.global.u32 [%rd2], %r10;\n"
                    "redux.sync.max.u32 %r11, %r7, %r6; st.global.u32 [%rd2+4], %r11;\n"
                    "and.b32 %r9, %r1, 3; match.any.sync.b32 %r12, %r9, %r6;\n"
                    "st.global.u32 [%rd2+8], %r12;\n"
                    "shfl.sync.down.b32 %r13, %r7, 1, 0x1807, %r6; bar.warp.sync %r6;\n"
                    "st.global.u32 [%rd2+12], %r13;\n"
                    "elect.sync %r14|%p2, %r6; selp.u32 %r15, 256, 0, %p2;\n"
                    "or.b32 %r14, %r14, %r15; st.global.u32 [%rd2+16], %r14;\n"
                    "setp.eq.u32 %p3, %r5, 16; vote.sync.any.pred %p4, %p3, %r6;\n"
                    "selp.u32 %r15, 1, 0, %p4; st.global.u32 [%rd2+20], %r15;\n"),
        1, 64, out);
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t *word = &out[6 * i];
        uint32_t tile = i % 32 / 8 * 8, base = i / 8 * 8, ballot = 0, same = 0;
        for (uint32_t j = 0; j < 8; j++) {
            ballot |= (3 * (base + j) & 1) << (tile + j);
            same |= (uint32_t)((base + j) % 4 == i % 4) << (tile + j);
        }
        cr_assert_eq(word[0], ballot, "lane %u: 0x%x", i, word[0]);
        cr_assert_eq(word[1], 3 * (base + 7), "lane %u: %u", i, word[1]);
        cr_assert_eq(word[2], same, "lane %u: 0x%x", i, word[2]);
        cr_assert_eq(word[3], 3 * (i % 8 == 7 ? i : i + 1), "lane %u: %u", i, word[3]);
        cr_assert_eq(word[4], tile | (i % 8 == 0 ? 256u : 0), "lane %u: 0x%x", i, word[4]);
        cr_assert_eq(word[5], tile == 16, "lane %u: %u", i, word[5]);
    }
}

/* Some tiles are whole and go on; the members of one come from both sides of a branch. */
Test(diverge, a_tile_may_wait_while_others_go_on) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r1, 24; mov.u32 %r6, 255; shl.b32 %r6, %r6, %r5;\n"
                         "setp.lt.u32 %p1, %r1, 12; @%p1 bra LOW;\n"
                         "redux.sync.add.u32 %r7, %r1, %r6; add.u32 %r7, %r7, 1000; bra END;\n"
                         "LOW: redux.sync.add.u32 %r7, %r1, %r6;\n"
                         "END: st.global.u32 [%rd2], %r7;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t base = i / 8 * 8, expected = 8 * base + 28 + (i < 12 ? 0 : 1000);
        cr_assert_eq(out[i], expected, "lane %u: %u, not %u", i, out[i], expected);
    }
}

/* Two lanes shuffle with each other, one early and one late; a third spins for what they make. The
 * exchange must not wait until nothing else can run. */
Test(diverge, a_spinning_lane_does_not_hold_up_an_exchange) {
    uint32_t out[33] = {0};
    TEST_RUN(TEST_KERNEL("setp.eq.u32 %p1, %r1, 2; @%p1 bra SPIN;\n"
                         "setp.gt.u32 %p1, %r1, 2; @%p1 bra END;\n"
                         "setp.eq.u32 %p2, %r1, 0; @%p2 bra ZERO;\n"
                         "shfl.sync.idx.b32 %r5, %r1, 0, 31, 3; bra TELL;\n"
                         "ZERO: add.u32 %r6, %r1, 40; shfl.sync.idx.b32 %r5, %r6, 1, 31, 3;\n"
                         "bra TELL;\n"
                         "TELL: st.global.u32 [%rd2], %r5; membar.cta; mov.u32 %r7, 9;\n"
                         "st.volatile.global.u32 [%rd1+128], %r7; bra END;\n"
                         "SPIN: ld.volatile.global.u32 %r5, [%rd1+128];\n"
                         "setp.eq.u32 %p3, %r5, 0; @%p3 bra SPIN; st.global.u32 [%rd2], %r5;\n"
                         "END:\n"),
             1, 32, out);
    cr_assert(out[0] == 1 && out[1] == 40 && out[2] == 9, "%u %u %u", out[0], out[1], out[2]);
}

/* Members that have exited are not waited for. */
Test(diverge, exited_lanes_are_not_waited_for) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL("setp.lt.u32 %p1, %r1, 10; @%p1 bra STAY;\n"
                         "mov.u32 %r5, 0;\n"
                         "SLOW: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 10000; @%p2 bra SLOW;\n"
                         "exit;\n"
                         "STAY: vote.sync.ballot.b32 %r6, 1, -1; st.global.u32 [%rd2], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 10; i++) cr_assert_eq(out[i], 0x3ff, "lane %u: 0x%x", i, out[i]);
}

/* Guards on what waits: only some lanes come, with a mask that says so. */
Test(diverge, a_guarded_exchange_is_of_the_guards_lanes) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; mov.u32 %r6, 7;\n"
                         "@%p1 shfl.sync.up.b32 %r6, %r1, 2, 0, 0x55555555;\n"
                         "@!%p1 redux.sync.min.u32 %r6, %r1, 0xaaaaaaaa;\n"
                         "st.global.u32 [%rd2], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) {
        cr_assert_eq(out[i], i % 2 ? 1 : i < 2 ? i : i - 2, "lane %u: %u", i, out[i]);
    }
}
