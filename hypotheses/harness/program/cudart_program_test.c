/*
 * A program that nvcc built for the CUDA runtime, unchanged, under `tollens soft`: it prints what
 * it must, and each of its planted mistakes is found where it was made.
 *
 * The program is a fixture; TOLLENS_CUDART_PROGRAM names another build of the same sources.
 */
#include "harness/session.h"
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECKED                                                                                    \
    "\"$T\" soft --check memory,init,sync,race,stream,leak --error-exitcode 9 -- \"$P\" "

static void begin(void) {
    char path[4300];
    const char *other = getenv("TOLLENS_CUDART_PROGRAM");
    program_begin();
#if defined(PROGRAM_IS_SANITIZED)
    cr_skip_test("the fixture cannot load libraries that the sanitizers are in");
#elif !defined(__linux__) || !defined(__x86_64__)
    if (other == NULL) cr_skip_test("the fixture is a program for Linux on x86-64");
#endif
    cr_assert(hyp_session_root() != NULL);
    snprintf(path, sizeof path, "%s/fixtures/cudart/program.elf", hyp_session_root());
    setenv("P", other != NULL ? other : path, 1);
    snprintf(path, sizeof path, "%s/fixtures/cudart", hyp_session_root());
    setenv("F", path, 1);
}

TestSuite(cudart_program, .init = begin, .fini = program_end);

Test(cudart_program, it_prints_what_it_must_and_nothing_is_found) {
    cr_assert(program_shell(CHECKED ">\"$D/output\"") == 0, "%s", program_output);
    cr_assert(program_says("tollens soft: 0 findings"), "%s", program_output);
    cr_assert(program_shell("diff \"$F/output.txt\" \"$D/output\"") == 0, "%s", program_output);
}

Test(cudart_program, a_part_runs_alone) {
    cr_assert(program_shell(CHECKED "managed") == 0, "%s", program_output);
    cr_assert(program_says("  after: 42, 0\n"), "%s", program_output);
    cr_assert(program_shell(CHECKED "nothing") == 1, "%s", program_output);
}

Test(cudart_program, an_access_out_of_bounds_is_found) {
    cr_assert(program_shell(CHECKED "out_of_bounds") == 9, "%s", program_output);
    cr_assert(program_says("illegal address in kernel _Z12write_beyondPii") &&
                  program_says("planted.cu:6: a store of 4 bytes") &&
                  program_says("0 bytes past the end of allocation 1 of 400 bytes") &&
                  program_says("  cudaErrorIllegalAddress\n"),
              "%s", program_output);
}

Test(cudart_program, a_race_is_found) {
    cr_assert(program_shell(CHECKED "race") == 9, "%s", program_output);
    cr_assert(program_says("data race in kernel _Z18sum_unsynchronisedPKiPi") &&
                  program_says("planted.cu:14: a load of 4 bytes"),
              "%s", program_output);
}

Test(cudart_program, a_missing_wait_is_found) {
    cr_assert(program_shell(CHECKED "missing_wait") == 9, "%s", program_output);
    cr_assert(program_says("missing order of streams: a memset of 256 bytes") &&
                  program_says("kernel _Z10double_allPi") && program_says("planted.cu:49 and ") &&
                  program_says("planted.cu:50\n"),
              "%s", program_output);
}

Test(cudart_program, a_leak_is_found) {
    cr_assert(program_shell(CHECKED "leak") == 9, "%s", program_output);
    cr_assert(program_says("1 finding: 1 leak") &&
                  program_says("leak: 256 bytes of device memory") &&
                  program_says("cuMemAlloc_v2, at ") && program_says("planted.cu:60\n"),
              "%s", program_output);
}
