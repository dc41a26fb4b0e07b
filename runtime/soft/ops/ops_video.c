/*
 * The video instructions: arithmetic on bytes and half-words of registers, with saturation and a
 * second operation. Source: PTX ISA 9.0, sections 9.7.19 (video).
 *
 * in->mode has the modifiers of an instruction, with the fields of code.h. Current GPUs have no
 * such units: a driver compiles one instruction to several, and where these differ from the manual,
 * this follows an H200 (fixtures/ptx/instructions/h200.record.gz).
 */
#include "op_body.h"

static inline uint32_t ops_video_field(uint32_t mode, unsigned shift) {
    return mode >> shift & 7;
}

static inline int64_t ops_video_extended(uint32_t bits, unsigned width, bool is_signed) {
    unsigned shift = 64 - width;
    uint64_t top = (uint64_t)bits << shift;
    return is_signed ? (int64_t)top >> shift : (int64_t)(top >> shift);
}

/* A word, one of its bytes (1 to 4) or one of its half-words (5, 6). */
static int64_t ops_video_selected(uint32_t word, uint32_t part, bool is_signed) {
    if (part == 0) return ops_video_extended(word, 32, is_signed);
    if (part < 5) return ops_video_extended(word >> (8 * (part - 1)) & 0xff, 8, is_signed);
    return ops_video_extended(word >> (16 * (part - 5)) & 0xffff, 16, is_signed);
}

static int64_t ops_video_clamped(int64_t x, unsigned width, bool is_signed) {
    int64_t high = (int64_t)(1ull << (is_signed ? width - 1 : width)) - 1;
    int64_t low = is_signed ? -high - 1 : 0;
    return x > high ? high : x < low ? low : x;
}

static bool ops_video_compared(int64_t x, int64_t y, uint32_t comparison) {
    switch (comparison) {
    case 0:
        return x == y;
    case 1:
        return x != y;
    case 2:
        return x < y;
    case 3:
        return x <= y;
    case 4:
        return x > y;
    default:
        return x >= y;
    }
}

static int64_t ops_video_shifted(int64_t x, int64_t by, uint32_t mode) {
    if (mode & SOFT_VIDEO_CLAMP) {
        by = by > 32 ? 32 : by;
    } else {
        by &= 31;
    }
    if ((mode & SOFT_VIDEO_OPERATION) != SOFT_VIDEO_SHL) return x >> by;
    return (int64_t)((uint64_t)x << by << 30) >> 30; /* 34 bits, the highest of them the sign */
}

static int64_t ops_video_computed(int64_t x, int64_t y, uint32_t mode) {
    switch (mode & SOFT_VIDEO_OPERATION) {
    case SOFT_VIDEO_ADD:
        return x + y;
    case SOFT_VIDEO_SUB:
        return x - y;
    case SOFT_VIDEO_ABSDIFF:
        return x > y ? x - y : y - x;
    case SOFT_VIDEO_MIN:
        return x < y ? x : y;
    case SOFT_VIDEO_MAX:
        return x > y ? x : y;
    case SOFT_VIDEO_AVRG:
        return (x + y + (x + y >= 0)) >> 1;
    case SOFT_VIDEO_SET:
        return ops_video_compared(x, y, ops_video_field(mode, SOFT_VIDEO_COMPARE_SHIFT));
    default:
        return ops_video_shifted(x, y, mode);
    }
}

/* Whole words of sums and differences are kept from falling below zero, not from growing too large.
 * Parts take negative numbers for large ones. Shifts are held to 32 bits wherever they go. */
static int64_t ops_video_saturated(int64_t x, unsigned width, uint32_t mode) {
    bool is_signed = (mode & SOFT_VIDEO_D_SIGNED) != 0;
    uint32_t operation = mode & SOFT_VIDEO_OPERATION;
    if (operation == SOFT_VIDEO_SHL || operation == SOFT_VIDEO_SHR) {
        return ops_video_clamped(x, 32, is_signed);
    }
    if (width < 32) {
        uint32_t high = (1u << (is_signed ? width - 1 : width)) - 1;
        return (uint32_t)x > high ? high : (uint32_t)x;
    }
    if (is_signed || operation == SOFT_VIDEO_MIN || operation == SOFT_VIDEO_MAX) {
        return ops_video_clamped(x, 32, is_signed);
    }
    return x < 0 ? 0 : (uint32_t)x;
}

/* Whether the second operation takes c for less than the result. */
static bool third_is_less(int64_t result, uint32_t c, uint32_t mode) {
    bool is_signed = (mode & SOFT_VIDEO_D_SIGNED) != 0;
    uint32_t low = (uint32_t)result;
    switch (mode & SOFT_VIDEO_OPERATION) {
    case SOFT_VIDEO_ADD:
    case SOFT_VIDEO_SUB:
        if (is_signed) return (int32_t)c < (int32_t)low;
        return (c & low) >> 31 != 0 || c < low; /* of two with the highest bit, always c */
    case SOFT_VIDEO_SET:
        is_signed = (mode & SOFT_VIDEO_A_SIGNED) != 0 && (mode & SOFT_VIDEO_B_SIGNED) != 0;
        break;
    default:
        break;
    }
    return ops_video_extended(c, 32, is_signed) < result;
}

/* One value: the operation, saturation, then the second operation, or the part that is written put
 * into c. The upper half-word takes the upper half of the result, which is not moved there. */
static uint32_t ops_video_scalar(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
    uint32_t part = ops_video_field(mode, SOFT_VIDEO_D_SHIFT);
    int64_t x = ops_video_selected(a, ops_video_field(mode, SOFT_VIDEO_A_SHIFT),
                                   (mode & SOFT_VIDEO_A_SIGNED) != 0);
    int64_t y = ops_video_selected(b, ops_video_field(mode, SOFT_VIDEO_B_SHIFT),
                                   (mode & SOFT_VIDEO_B_SIGNED) != 0);
    int64_t result = ops_video_computed(x, y, mode);
    unsigned width = part == 0 ? 32 : part < 5 ? 8 : 16;
    if (mode & SOFT_VIDEO_SAT) result = ops_video_saturated(result, width, mode);
    uint32_t low = (uint32_t)result;
    if (part == 5) return (c & 0xffff0000) | (low & 0xffff);
    if (part == 6) return (c & 0xffff) | (low & 0xffff0000);
    if (part != 0) {
        unsigned at = 8 * ((part - 1) % 4);
        return (c & ~(0xffu << at)) | (low & 0xff) << at;
    }
    switch (ops_video_field(mode, SOFT_VIDEO_SECOND_SHIFT)) {
    case 1:
        return low + c;
    case 2:
        return third_is_less(result, c, mode) ? c : low;
    case 3:
        return third_is_less(result, c, mode) ? low : c;
    default:
        return low;
    }
}

/* Two half-words or four bytes, or some of them: put in their places in c, or all added to it. */
static uint32_t ops_video_packed(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
    unsigned width = (mode & SOFT_VIDEO_BYTES) != 0 ? 8 : 16;
    uint32_t lanes = mode >> SOFT_VIDEO_LANES_SHIFT & SOFT_VIDEO_LANES;
    uint32_t mask = (1u << width) - 1, all = c, sum = c;
    for (unsigned at = 0; at < 32; at += width) {
        if ((lanes >> at / width & 1) == 0) continue;
        int64_t x = ops_video_extended(a >> at & mask, width, (mode & SOFT_VIDEO_A_SIGNED) != 0);
        int64_t y = ops_video_extended(b >> at & mask, width, (mode & SOFT_VIDEO_B_SIGNED) != 0);
        int64_t result = ops_video_computed(x, y, mode);
        if (mode & SOFT_VIDEO_SAT) {
            result = ops_video_clamped(result, width, (mode & SOFT_VIDEO_D_SIGNED) != 0);
        }
        all = (all & ~(mask << at)) | ((uint32_t)result & mask) << at;
        sum += (uint32_t)result;
    }
    return ops_video_field(mode, SOFT_VIDEO_SECOND_SHIFT) == 1 ? sum : all;
}

/* The product and c, shifted down by the scale; .po adds one more. Whole words are signed, whatever
 * their types say; these choose how the result saturates, and a scaled one is not below zero if
 * neither is signed. */
static uint32_t ops_video_multiplied(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
    bool a_signed = (mode & SOFT_VIDEO_A_SIGNED) != 0, b_signed = (mode & SOFT_VIDEO_B_SIGNED) != 0;
    uint32_t a_part = ops_video_field(mode, SOFT_VIDEO_A_SHIFT),
             b_part = ops_video_field(mode, SOFT_VIDEO_B_SHIFT);
    int64_t x = ops_video_selected(a, a_part, a_signed || a_part == 0);
    int64_t y = ops_video_selected(b, b_part, b_signed || b_part == 0);
    int64_t product = (mode & SOFT_VIDEO_MINUS_PRODUCT) != 0 ? -(x * y) : x * y;
    int64_t third = ops_video_extended(c, 32, true);
    if ((mode & SOFT_VIDEO_MINUS_C) != 0) third = -third;
    int64_t sum = product + third + ((mode & SOFT_VIDEO_PO) != 0);
    unsigned shift = ops_video_field(mode, SOFT_VIDEO_SCALE_SHIFT) == 1   ? 7
                     : ops_video_field(mode, SOFT_VIDEO_SCALE_SHIFT) == 2 ? 15
                                                                          : 0;
    bool is_signed =
        a_signed || b_signed || (mode & (SOFT_VIDEO_MINUS_PRODUCT | SOFT_VIDEO_MINUS_C)) != 0;
    int64_t result = is_signed ? sum >> shift : (int64_t)((uint64_t)sum >> shift);
    return (uint32_t)(mode & SOFT_VIDEO_SAT ? ops_video_clamped(result, 32, is_signed) : result);
}

OP3(video, u32, u32, u32, u32, ops_video_scalar(x, y, z, in->mode))
OP3(video_packed, u32, u32, u32, u32, ops_video_packed(x, y, z, in->mode))
OP3(video_mad, u32, u32, u32, u32, ops_video_multiplied(x, y, z, in->mode))
