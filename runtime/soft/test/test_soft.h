/*
 * Shared by the soft device's tests: runs PTX texts on the linked soft device.
 *
 * Each test runs in a separate process, so it may set TOLLENS_SOFT_ variables before its first
 * call.
 */
#ifndef SOFT_TEST_SOFT_H
#define SOFT_TEST_SOFT_H

#include "tollens/cuda_abi.h"
#include "api/export.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A kernel around a body of instructions: k(out), in which %rd1 is out, %rd2 the place of this
 * thread's word in it, and %r1 the thread's number in the grid. More registers are declared than a
 * body needs. The body begins on line TEST_BODY_LINE; end each of its lines with \n. */
#define TEST_KERNEL(body) TEST_KERNEL_WITH("", body)
/* The same with declarations before it, in one line, so that TEST_BODY_LINE holds. */
#define TEST_KERNEL_WITH(declarations, body)                                                       \
    ".version 8.0\n.target sm_90\n.address_size 64\n" declarations "\n"                            \
    ".visible .entry k(.param .u64 out)\n{\n"                                                      \
    ".reg .b16 %h<10>; .reg .b32 %r<60>; .reg .b64 %rd<30>; .reg .f32 %f<20>; .reg .f64 %fd<20>; " \
    ".reg .pred %p<20>;\n"                                                                         \
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; " \
    "mad.lo.u32 %r1, %r1, %r2, %r3; mad.wide.u32 %rd2, %r1, 4, %rd1;\n" body "ret;\n}\n"
enum { TEST_BODY_LINE = 9 };

/* Opens the soft device and makes its first device current; safe to call again. test_soft_close is
 * for .fini: it releases everything, so that leaks are detected. */
void test_soft_open(void);
void test_soft_close(void);

/* Loads a text; the test fails, with the log, if it is refused. */
CUmodule test_load(const char *ptx);
CUfunction test_function(CUmodule module, const char *name);

/* Loads a text that must be refused: returns the result and the log. */
CUresult test_refused(const char *ptx, char *log, size_t bytes);

/* Runs kernel k(out) of a text and returns the code of the wait. out is copied to the device before
 * and back after. */
CUresult test_run(const char *ptx, unsigned blocks, unsigned threads, void *out, size_t bytes);

/* Runs k(out) of an otherwise unchecked text and demands success. */
#define TEST_RUN(ptx, blocks, threads, out)                                                        \
    do {                                                                                           \
        CUresult test_result = test_run(ptx, blocks, threads, out, sizeof out);                    \
        cr_assert_eq(test_result, CUDA_SUCCESS, "%d: %s", (int)test_result, test_log());           \
    } while (0)

/* The driver's log as one text. Static. */
const char *test_log(void);

/* Redirects stderr, or stdout, to a file; and reads what was written since. Static. */
void test_capture(FILE *stream);
const char *test_captured(FILE *stream);

/* The text of a file under fixtures/ptx. Free it. */
char *test_fixture(const char *folder, const char *name);

/* Calls visit for each text of a folder of fixtures/ptx, files sorted by name. Returns how many.
 * The name is the file's, or that of one of several texts of a file (table/joined_text.h). */
size_t test_each_fixture(const char *folder, void (*visit)(const char *name, const char *text));

#endif
