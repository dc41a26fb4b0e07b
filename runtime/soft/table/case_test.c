/*
 * Cases on the soft device: results by the manual, and faults that do not affect other cases.
 */
#include "case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *soft_device(void) {
    static char path[4200];
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 64);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) slash[1] = '\0';
    snprintf(path, sizeof path, "%slibtollens-soft.so", own);
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    return path;
}

static const struct {
    const char *line, *said;
} known[] = {
    {"load f32 2d size=64,20 box=8,2 at=4,1", "68..75 132..139 48*-"},
    {"load f32 2d size=64,20 box=8,2 at=60,19", "1276..1279 12*0 48*-"},
    {"load f32 1d size=4 box=8 fill=1", "0..3 4*N 56*-"},
    {"load u8 1d size=304 box=16 at=1", "synchronize 715"},
    {"load u8 1d size=304 box=16 at=256", "256..271 240*-"},
    {"load f16 3d im2col size=8,10,3 channels=8 pixels=3 at=0,9,0", "72..95 104*-"},
    {"store f32 2d size=64,20 box=8,2 at=4,1", "@68 0..7 @132 8..15"},
    {"store f32 2d size=64,20 box=8,2 at=4,20", "nothing written"},
    {"prefetch f32 2d size=64,20 box=8,2 at=4,1", "ok"},
    {"load f32 2d size=64,20 box=8,2 swizzle=4", "encode 1"},
    {"tex.1d.v4.u32.s32 u32x1 4 texels=ramp integer at=2", "0,0,0,0"},
    {"tex.2d.v4.u32.s32 u32x1 4x1 texels=ramp integer at=2,0", "00000002,0,0,0"},
    {"tex.1d.v4.f32.f32 f32x1 4 texels=ramp linear fine=6144,1,1", "3f800000,0,0,0"},
    {"tex.1d.v4.f32.f32 f32x1 4 texels=one,1 linear fine=4096,2048,3",
     "3f000000,0,0,0 3f800000,0,0,0 3f000000,0,0,0"},
    {"tex.level.2d.v4.f32.f32 f32x1 4x4 levels=3 texels=level normalized mixes at=2048,2048 "
     "lod=6144,0",
     "3fc00000,0,0,0"},
    {"suld.b.1d.b32.zero u32x1 4 texels=ramp at=3", "00000003"},
    {"suld.b.1d.b32.trap u32x1 4 texels=ramp at=9", "synchronize 700"},
    {"sured.b.add.2d.u32.zero u32x1 4x2 at=9,9", "nothing written"},
    {"suq.height.b32 f32x1 5x3", "00000003"},
    {"suld.b.1d.b32.none u32x1 4 at=0", "load 218"},
    {"sured.b.add.a1d.u32.zero u32x1 7x0x4", "load 218"},
    {"load f16 3d interleave=1 size=16,6,3 stride=16,128 box=2,4,2 at=1,1,0", "encode 1"},
    {"load f32 3d interleave=1 size=16,6,3 stride=256,1536 box=4,4,2 at=1,1,0",
     "68..83 452..467 8192*-"},
    {"load f32 9d", "not a case"},
    {"load", "too few words"},
};

enum { KNOWN = sizeof known / sizeof known[0] };

static void demand(unsigned processes) {
    char *lines[KNOWN], message[512] = "";
    for (size_t i = 0; i < KNOWN; i++) lines[i] = strdup(known[i].line);
    char *results = calloc(KNOWN, CASE_SAID);
    cr_assert(
        case_run_all(soft_device(), lines, KNOWN, processes, 60, results, message, sizeof message),
        "%s", message);
    for (size_t i = 0; i < KNOWN; i++) {
        cr_expect_str_eq(results + i * CASE_SAID, known[i].said, "%s: %s", known[i].line,
                         results + i * CASE_SAID);
        free(lines[i]);
    }
    free(results);
}

Test(case, what_the_manual_says) {
    demand(1);
}

Test(case, processes_share_the_cases) {
    demand(3);
}

Test(case, no_time_runs_nothing) {
    char *lines[2] = {strdup(known[0].line), strdup(known[1].line)}, message[512] = "";
    char *results = calloc(2, CASE_SAID);
    cr_assert(case_run_all(soft_device(), lines, 2, 1, 0, results, message, sizeof message), "%s",
              message);
    for (int i = 0; i < 2; i++) {
        cr_assert_str_eq(results + i * CASE_SAID, "not run");
        free(lines[i]);
    }
    free(results);
}

Test(case, a_driver_that_is_none_is_said) {
    char *lines[1] = {strdup(known[0].line)}, message[512] = "";
    char *results = calloc(1, CASE_SAID);
    cr_assert(!case_run_all("no-driver.so", lines, 1, 1, 60, results, message, sizeof message));
    cr_assert(strstr(message, "no-driver.so") != NULL, "%s", message);
    free(lines[0]);
    free(results);
}

Test(case, alternatives_are_written_out) {
    static const char *const wanted[] = {"a 1 x", "a 1 y", "a  x", "a  y", "b"};
    char path[] = "/tmp/tollens-cases-XXXXXX";
    int file = mkstemp(path);
    FILE *text = fdopen(file, "w");
    fputs("# a comment\n\na {1|} {x|y}\nb : a result\n", text);
    fclose(text);
    size_t count = 0;
    char **lines = case_read(path, &count);
    unlink(path);
    cr_assert_eq(count, 5, "%zu", count);
    for (size_t i = 0; i < count; i++) {
        cr_assert_str_eq(lines[i], wanted[i]);
        free(lines[i]);
    }
    free(lines);
    cr_assert_null(case_read("/no/such/file", &count));
}
