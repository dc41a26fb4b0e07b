/*
 * Traces of others: RMM's logs and PyTorch's snapshots are known by their content, and what is not
 * replayed is counted and named.
 */
#include "files/atomic_file.h"
#include "program/shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { UNSERVED = 1, NO_TRACE = 2 };

TestSuite(trace_formats, .init = program_begin, .fini = program_end);

/* Replays file "t", whose name says nothing. */
static int formats_replay(const char *options) {
    char command[300];
    snprintf(command, sizeof command, "\"$T\" replay \"$D/t\" %s", options);
    return program_shell(command);
}

static void formats_expect(int code, const char *const *words, size_t count) {
    cr_assert_eq(formats_replay(""), code, "%s", program_output);
    for (size_t i = 0; i < count; i++) {
        cr_assert(program_says(words[i]), "'%s' is not in: %s", words[i], program_output);
    }
}
#define EXPECT(code, ...)                                                                          \
    formats_expect(code, (const char *const[]){__VA_ARGS__},                                       \
                   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- RMM ------------------------------------------------------------------------------------- */

#define RMM "Thread,Time,Action,Pointer,Size,Stream\n"

Test(trace_formats, an_rmm_log_is_known_by_its_first_line) {
    program_write("t", RMM "2342727,15:47:02.841961,allocate,0x10012400000,1048576,0\r\n"
                           "2342728,15:47:02.841970,allocate,10012600000,2000,0x7f8a38001020\n"
                           "2342727,15:47:02:841977,free,0x10012400000,1048576,0\n"
                           "2342727,what time,allocate failure,(nil),35184372088832,0\n");
    EXPECT(UNSERVED,
           "/t, an RMM log: 4 events of 2 threads and 2 streams: 2 allocations, 1 free, 0 trims",
           "2000 bytes");
    cr_assert(!program_says("left out") && !program_says("at once"), "%s", program_output);
}

Test(trace_formats, an_rmm_log_says_what_was_left_out) {
    program_write("t", RMM "1,1,allocate,0x0,0,0\n"
                           "1,1,free,0x0,0,0\n"
                           "1,1,free,0xaa00,64,0\n"
                           "1,1,allocate,0xbb00,1000,0\n"
                           "1,1,allocate,0xbb00,3000,2\n"
                           "1,1,free,0xbb00,3000,0\n"
                           "1,1,free,0xbb00,3000,0\n"
                           "1,1,allocate,0xcc00,10");
    EXPECT(0, "4 events of 1 thread and 2 streams: 2 allocations, 2 frees",
           "allocations of zero bytes, left out: 1, the first in line 2\n",
           "frees of blocks that were not live, left out: 2, the first in line 4\n",
           "allocations at the address of a live block, which is freed first: 1, the first in line "
           "6\n",
           "incomplete last lines, left out: 1, the first in line 9\n", "(67108864 / 0 bytes)");
}

Test(trace_formats, an_rmm_log_may_have_any_number_of_streams_and_threads) {
    program_shell("awk 'BEGIN { print \"Thread,Time,Action,Pointer,Size,Stream\"; "
                  "for (i = 1; i <= 1500; i++) printf(\"%d,1,allocate,%x,5000,%x\\n\", "
                  "4000000 + i, i * 65536, i + 16777216) }' >\"$D/t\"");
    EXPECT(0, "1500 events of 256 threads and 1024 streams",
           "threads that took the place of one that had been silent, because a replay has at most "
           "256 at once: 1244, the first in line 258\n",
           "streams that took the place of one that had been silent, because a replay has at most "
           "1,024 at once: 476, the first in line 1026\n",
           " / 7500000 bytes)");
}

Test(trace_formats, a_bad_line_of_an_rmm_log_is_refused_by_its_number) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"Thread", "line 1: the line is cut off"},
        {"Thread,Time,Action,Pointer,Size\n", "line 1: the first line of an RMM log must be"},
        {RMM, "has no event to replay"},
        {RMM "1,1,free,0xaa00,64,0\n", "has no event to replay"},
        {RMM "1,1,allocate,0xaa,5\n", "line 2: a line must have 6 fields"},
        {RMM "1,1,allocate,0xaa,5,0,0\n", "line 2: a line must have 6 fields"},
        {RMM "1,1,steal,0xaa,5,0\n",
         "line 2: the action must be allocate, allocate failure or free, not 'steal'"},
        {RMM "1,1,allocate,(nil),5,0\n", "line 2: this is not a number: '(nil)'"},
        {RMM "1,1,allocate,-1,5,0\n", "line 2: this is not a number: '-1'"},
        {RMM "1,1,allocate,0x,5,0\n", "line 2: this is not a number: '0x'"},
        {RMM "x,1,allocate,0xaa,5,0\n", "line 2: this is not a number: 'x'"},
        {RMM "1,1,allocate,0xaa,5,zero\n", "line 2: this is not a number: 'zero'"},
        {RMM "1,1,allocate,0xaa,281474976710656,0\n", "line 2: the number is too large"},
        {RMM "1,1,allocate,0x10000000000000000,5,0\n", "line 2: the number is too large"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        program_write("t", cases[i].text);
        cr_assert_eq(formats_replay(""), NO_TRACE, "%zu: %s", i, program_output);
        cr_assert(program_says(cases[i].says), "%s: %s", cases[i].says, program_output);
    }
}

/* 2^17 blocks of 2^46 bytes are 2^63 bytes: a sum of 64 bits would wrap around with a few more. */
Test(trace_formats, a_log_of_impossible_sizes_is_refused) {
    program_shell("awk 'BEGIN { print \"Thread,Time,Action,Pointer,Size,Stream\"; "
                  "for (i = 1; i <= 131072; i++) printf(\"1,1,allocate,%x,70368744177664,0\\n\", "
                  "i * 65536) }' >\"$D/t\"");
    EXPECT(NO_TRACE, "line 65537: more than 2^62 bytes would be live");
}

Test(trace_formats, a_byte_0_in_an_rmm_log_is_no_end_of_the_file) {
    program_shell("printf '"
                  "Thread,Time,Action,Pointer,Size,Stream\\n1,1,allocate,0xaa,5,0\\n"
                  "1,1,\\0000allocate,0xbb,5,0\\n1,1,free,0xaa,5,0\\n' >\"$D/t\"");
    EXPECT(NO_TRACE, "line 3: the line is cut off");
}
