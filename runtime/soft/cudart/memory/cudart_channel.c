/*
 * Channel descriptors. As in "Texture Object Management" of the CUDA Runtime API 13.0.
 */
#include "cudart_array.h"
#include "cudart/cudart_export.h"

/* This call has no failure, and returns its result. */
CUDART_VISIBLE cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                           cudaChannelFormatKind kind);

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
    return (cudaChannelFormatDesc){x, y, z, w, kind};
}

static const struct plain {
    CUarray_format format;
    cudaChannelFormatKind kind;
    int bits;
} plain[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8},
    {CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16},
    {CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32},
    {CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8},
    {CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16},
    {CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32},
    {CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16},
    {CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32},
};
enum { PLAIN = sizeof plain / sizeof plain[0] };

/* The normalised formats follow each other in both lists: three numbers of channels of 8 bits, then
 * of 16, unsigned and then signed. */
enum { NORMALISED = CU_AD_FORMAT_SNORM_INT16X4 - CU_AD_FORMAT_UNORM_INT8X1 + 1 };

static int normalised_bits(int which) {
    return which % 6 < 3 ? 8 : 16;
}

static unsigned normalised_channels(int which) {
    return 1u << which % 3;
}

/* The number of channels, 1, 2 or 4, if they have equal widths and the rest are empty; else 0. */
static unsigned count_channels(const cudaChannelFormatDesc *desc) {
    const int bits[] = {desc->x, desc->y, desc->z, desc->w};
    unsigned count = 0;
    while (count < 4 && bits[count] != 0 && bits[count] == bits[0]) count++;
    for (unsigned i = count; i < 4; i++) {
        if (bits[i] != 0) return 0;
    }
    return count == 3 ? 0 : count;
}

cudaError_t cudart_channel_format(const cudaChannelFormatDesc *desc, CUarray_format *format,
                                  unsigned *channels) {
    if (desc->f == cudaChannelFormatKindNV12 ||
        (desc->f >= cudaChannelFormatKindUnsignedBlockCompressed1 &&
         desc->f <= cudaChannelFormatKindUnsignedNormalized1010102)) {
        return cudaErrorNotSupported;
    }
    *channels = count_channels(desc);
    if (*channels == 0) return cudaErrorInvalidChannelDescriptor;
    const int which = desc->f - cudaChannelFormatKindUnsignedNormalized8X1;
    if (which >= 0 && which < NORMALISED) {
        *format = CU_AD_FORMAT_UNORM_INT8X1 + which;
        return desc->x == normalised_bits(which) && *channels == normalised_channels(which)
                   ? cudaSuccess
                   : cudaErrorInvalidChannelDescriptor;
    }
    for (int i = 0; i < PLAIN; i++) {
        if (plain[i].kind != desc->f || plain[i].bits != desc->x) continue;
        *format = plain[i].format;
        return cudaSuccess;
    }
    return cudaErrorInvalidChannelDescriptor;
}

static cudaChannelFormatDesc channel_describe(int bits, unsigned channels,
                                              cudaChannelFormatKind kind) {
    return (cudaChannelFormatDesc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                                   channels > 2 ? bits : 0, kind};
}

cudaError_t cudart_channel_of(CUarray_format format, unsigned channels,
                              cudaChannelFormatDesc *desc) {
    const int which = format - CU_AD_FORMAT_UNORM_INT8X1;
    if (which >= 0 && which < NORMALISED) {
        *desc = channel_describe(normalised_bits(which), normalised_channels(which),
                                 cudaChannelFormatKindUnsignedNormalized8X1 + which);
        return cudaSuccess;
    }
    for (int i = 0; i < PLAIN; i++) {
        if (plain[i].format != format) continue;
        *desc = channel_describe(plain[i].bits, channels, plain[i].kind);
        return cudaSuccess;
    }
    return cudaErrorNotSupported;
}
