/*
 * The ways to copy from a staging block, which the device has just written: no cache of the thread
 * that copies has a line of it, and the destination's lines may be in another one's.
 */
#include "reads.h"

#include "streamed.h"

#include <string.h>

/* A page of the hardware's prefetching, and how far ahead of it software begins: some 100 ns at
 * 10 GB/s. */
enum { LINE = 64, PAGE = 4096, AHEAD = 1024 };

void tol_read_design_default(struct tol_read_design *design) {
    *design = (struct tol_read_design){.part_bytes = (size_t)16 << 10,
                                       .piece_bytes = (size_t)512 << 10,
                                       .helper_bytes = (size_t)1 << 20,
                                       .queues_first = true};
}

#if defined(__x86_64__)

static void copy_string(void *to, const void *from, size_t bytes) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

#else

static void copy_string(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

#endif

/* A line at a time, which the compiler does not turn into a call of memcpy. */
static void copy_vector(char *to, const char *from, size_t bytes) {
    size_t at = 0;
    for (; at + LINE <= bytes; at += LINE) {
        memcpy(to + at, from + at, LINE);
#if defined(__GNUC__)
        __asm__ volatile("" : : : "memory");
#endif
    }
    memcpy(to + at, from + at, bytes - at);
}

static void copy_ahead(char *to, const char *from, size_t bytes) {
    size_t at = 0;
    for (; at + AHEAD + LINE <= bytes; at += LINE) {
        __builtin_prefetch(from + at + AHEAD, 0, 3);
        __builtin_prefetch(to + at + AHEAD, 1, 3);
        memcpy(to + at, from + at, LINE);
    }
    memcpy(to + at, from + at, bytes - at);
}

static void copy_streamed_ahead(char *to, const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE) {
        const size_t left = bytes - at, now = left < PAGE ? left : PAGE;
        const size_t next = left - now < PAGE ? left - now : PAGE;
        for (size_t i = 0; i < next; i += LINE) {
            __builtin_prefetch(from + at + now + i, 0, 2);
        }
        tol_stream_copy(to + at, from + at, now);
    }
}

void tol_read_copy_as(enum tol_read_copy copy, void *to, const void *from, size_t bytes) {
    switch (copy) {
    case TOL_READ_VECTOR:
        copy_vector(to, from, bytes);
        break;
    case TOL_READ_STRING:
        copy_string(to, from, bytes);
        break;
    case TOL_READ_AHEAD:
        copy_ahead(to, from, bytes);
        break;
    case TOL_READ_STREAMED_AHEAD:
        copy_streamed_ahead(to, from, bytes);
        break;
    default:
        memcpy(to, from, bytes);
        break;
    }
}
