/*
 * Kernels of one product by a warpgroup. Source: PTX ISA 9.0, section 9.7.15.5.
 */
#include "test_wgmma.h"

#include "test_soft.h"

#include <stdarg.h>

void wgmma_put(struct wgmma_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(text->bytes + text->length, sizeof text->bytes - text->length, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
    cr_assert_lt(text->length, sizeof text->bytes);
}

static void put_list(struct wgmma_text *text, const char *name, unsigned count) {
    for (unsigned i = 0; i < count; i++) wgmma_put(text, "%s%%%s%u", i == 0 ? "{" : ",", name, i);
    wgmma_put(text, "}");
}

void wgmma_put_head(struct wgmma_text *text, unsigned registers, bool single) {
    text->length = 0;
    wgmma_put(
        text,
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 out)\n{\n.shared .align 1024 .b8 s[%d];\n"
        ".reg .pred %%p<9>; .reg .b32 %%r<20>; .reg .b32 %%a<4>; .reg .b64 %%rd<20>; .reg .%s "
        "%%d<%d>;\nld.param.u64 %%rd1, [out]; mov.u32 %%r1, %%tid.x; mul.lo.u32 %%r2, %%r1, 16;\n"
        "mov.u32 %%r3, s;\n"
        "COPY: cvt.u64.u32 %%rd2, %%r2; add.u64 %%rd2, %%rd2, %%rd1;\n"
        "ld.global.v4.u32 {%%r10,%%r11,%%r12,%%r13}, [%%rd2]; add.u32 %%r4, %%r3, %%r2;\n"
        "st.shared.v4.u32 [%%r4], {%%r10,%%r11,%%r12,%%r13}; add.u32 %%r2, %%r2, 2048;\n"
        "setp.lt.u32 %%p1, %%r2, %d; @%%p1 bra COPY;\n"
        "fence.proxy.async; bar.sync 0; setp.eq.u32 %%p2, 0, 0;\n"
        "mad.wide.u32 %%rd3, %%r1, 16, %%rd1; mad.wide.u32 %%rd4, %%r1, %d, %%rd1;\n"
        "ld.global.v4.b32 {%%a0,%%a1,%%a2,%%a3}, [%%rd3+%d];\n",
        SHARED, single ? "f32" : "b32", D_MAX, SHARED, (int)sizeof(uint32_t) * D_MAX,
        (int)offsetof(struct wgmma_data, a));
    for (unsigned i = 0; i < registers; i++) {
        wgmma_put(text, "ld.global.b32 %%d%u, [%%rd4+%u];\n", i,
                  (unsigned)offsetof(struct wgmma_data, d) + i * 4);
    }
}

void wgmma_put_tail(struct wgmma_text *text, unsigned registers) {
    for (unsigned i = 0; i < registers; i++) {
        wgmma_put(text, "st.global.b32 [%%rd4+%u], %%d%u;\n",
                  (unsigned)offsetof(struct wgmma_data, d) + i * 4, i);
    }
    wgmma_put(text, "ret;\n}\n");
}

/* The descriptor of a separate factor of rows x k elements. Atoms of eight rows (K-major) or eight
 * k (else), as wide as the swizzle, follow each other. */
static uint64_t descriptor_of(struct wgmma_layout l, unsigned at, unsigned rows) {
    static const unsigned modes[] = {0, 3, 2, 1}; /* by swizzle / 32, 128 apart */
    uint64_t mode = l.swizzle == 128 ? 1 : l.swizzle == 64 ? 2 : modes[l.swizzle / 32];
    uint64_t leading, stride;
    if (!l.mn_major) {
        leading = l.swizzle == 0 ? rows * 16 : 16;
        stride = l.swizzle == 0 ? 128 : 8 * l.swizzle;
    } else if (l.swizzle == 0) {
        stride = 128;
        leading = rows / 8 * 128;
    } else {
        stride = 8 * l.swizzle; /* from eight k to the next eight */
        leading = 16 * l.swizzle;
    }
    return (at >> 4) | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
}

/* The byte where an element begins; for single bits, the byte that contains it. Derived from the
 * pictures of the layouts, without descriptors. */
unsigned wgmma_byte_of(struct wgmma_layout l, unsigned at, unsigned rows, unsigned bits,
                       unsigned row, unsigned k) {
    unsigned width = l.swizzle, place;
    if (!l.mn_major) {
        unsigned byte = k * bits / 8; /* in the row of 32 bytes */
        if (width == 0) return at + byte / 16 * (rows * 16) + row * 16 + byte % 16;
        place = row * width + byte;
    } else {
        unsigned byte = row * bits / 8; /* along M or N */
        if (width == 0) {
            return at + k / 8 * (rows / 8 * 128) + byte / 16 * 128 + k % 8 * 16 + byte % 16;
        }
        place = byte / width * (16 * width) + k * width + byte % width;
    }
    unsigned line = (at + place) / 128 % (width / 16);
    return at + (place ^ line * 16);
}

void wgmma_place_of_d(unsigned thread, unsigned element, unsigned *row, unsigned *column) {
    *row = thread / 32 * 16 + thread % 32 / 4 + (element / 2 % 2) * 8;
    *column = thread % 4 * 2 + element % 2 + element / 4 * 8;
}

void wgmma_put_product(struct wgmma_text *text, const struct wgmma_shape *s, bool a_in_registers,
                       struct wgmma_layout la, struct wgmma_layout lb,
                       const struct wgmma_signs *signs) {
    unsigned registers = s->half_sums ? s->n / 4 : s->n / 2;
    bool whole = s->kind == 's' || s->kind == 'u' || s->kind == '1', half = s->bits == 16;
    wgmma_put(text, "wgmma.mma_async.sync.aligned.m64n%uk%u%s ", s->n, s->k, s->types);
    put_list(text, "d", registers);
    if (a_in_registers) {
        wgmma_put(text, ", {%%a0,%%a1,%%a2,%%a3}, ");
    } else {
        wgmma_put(text, ", %%rd5, ");
    }
    wgmma_put(text, "%%rd6, %%p3");
    if (!whole) wgmma_put(text, ", %d, %d", signs->a, signs->b);
    if (half && !a_in_registers) wgmma_put(text, ", %d", la.mn_major);
    if (half) wgmma_put(text, ", %d", lb.mn_major);
    wgmma_put(text, ";\n");
}

/* s is at the beginning of shared memory. */
void wgmma_put_descriptors(struct wgmma_text *text, const struct wgmma_shape *s,
                           struct wgmma_layout la, struct wgmma_layout lb, bool accumulates) {
    wgmma_put(text, "mov.u64 %%rd5, 0x%llx; mov.u64 %%rd6, 0x%llx; setp.ne.u32 %%p3, %d, 0;\n",
              (unsigned long long)descriptor_of(la, A_AT, 64),
              (unsigned long long)descriptor_of(lb, B_AT, s->n), accumulates);
}
