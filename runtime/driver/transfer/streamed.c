/*
 * One loop per vector width; memcpy copies the bytes before the first and after the last whole
 * cache line.
 */
#include "streamed.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* Below this the caches do better. */
enum { LINE = 64, STREAM_MIN = 4096 };

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

/* Both are multiples of a line, and to is aligned to one. */
typedef void copy_lines(char *to, const char *from, size_t bytes);

static void copy_16(char *to, const char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += LINE) {
        const __m128i a = _mm_loadu_si128((const __m128i_u *)(from + i));
        const __m128i b = _mm_loadu_si128((const __m128i_u *)(from + i + 16));
        const __m128i c = _mm_loadu_si128((const __m128i_u *)(from + i + 32));
        const __m128i d = _mm_loadu_si128((const __m128i_u *)(from + i + 48));
        _mm_stream_si128((void *)(to + i), a);
        _mm_stream_si128((void *)(to + i + 16), b);
        _mm_stream_si128((void *)(to + i + 32), c);
        _mm_stream_si128((void *)(to + i + 48), d);
    }
}

__attribute__((target("avx2"))) static void copy_32(char *to, const char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += LINE) {
        const __m256i a = _mm256_loadu_si256((const __m256i_u *)(from + i));
        const __m256i b = _mm256_loadu_si256((const __m256i_u *)(from + i + 32));
        _mm256_stream_si256((void *)(to + i), a);
        _mm256_stream_si256((void *)(to + i + 32), b);
    }
}

__attribute__((target("avx512f"))) static void copy_64(char *to, const char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += LINE) {
        _mm512_stream_si512((void *)(to + i), _mm512_loadu_si512(from + i));
    }
}

enum tol_stream_copy_width tol_stream_copy_widest(void) {
    static _Atomic(int) known; /* the width + 1 */
    int width = atomic_load_explicit(&known, memory_order_relaxed) - 1;
    if (width >= 0) return (enum tol_stream_copy_width)width;
    __builtin_cpu_init();
    width = __builtin_cpu_supports("avx512f") ? TOL_STREAM_COPY_64
            : __builtin_cpu_supports("avx2")  ? TOL_STREAM_COPY_32
                                              : TOL_STREAM_COPY_16;
    atomic_store_explicit(&known, width + 1, memory_order_relaxed);
    return (enum tol_stream_copy_width)width;
}

void tol_stream_copy_as(enum tol_stream_copy_width width, void *to, const void *from,
                        size_t bytes) {
    static copy_lines *const loops[] = {copy_16, copy_32, copy_64};
    char *out = to;
    const char *in = from;
    const size_t head = (LINE - (uintptr_t)out % LINE) % LINE;
    if (width == TOL_STREAM_COPY_PLAIN || bytes < STREAM_MIN) {
        memcpy(to, from, bytes);
        return;
    }
    const size_t lines = (bytes - head) / LINE * LINE;
    memcpy(out, in, head);
    loops[width - TOL_STREAM_COPY_16](out + head, in + head, lines);
    memcpy(out + head + lines, in + head + lines, bytes - head - lines);
    _mm_sfence();
}

#else

enum tol_stream_copy_width tol_stream_copy_widest(void) {
    return TOL_STREAM_COPY_PLAIN;
}

void tol_stream_copy_as(enum tol_stream_copy_width width, void *to, const void *from,
                        size_t bytes) {
    (void)width;
    memcpy(to, from, bytes);
}

#endif

void tol_stream_copy(void *to, const void *from, size_t bytes) {
    tol_stream_copy_as(tol_stream_copy_widest(), to, from, bytes);
}
