/*
 * Tests of asserts: a structure is broken on purpose in a child process, which must be aborted by
 * the assert that is expected.
 */
#ifndef SOFT_TEST_ABORT_H
#define SOFT_TEST_ABORT_H

#include <stdbool.h>

/* Runs break_it in a child process. The test fails unless the child is aborted by an assert of this
 * file in whose line text occurs: "warp.c". No device may be open before it. */
void test_must_abort(void (*break_it)(void), const char *file, const char *text);

/* In the child: ends it, so that the test fails, if the structure to break could not be made. */
void test_child_needs(bool condition);

#endif
