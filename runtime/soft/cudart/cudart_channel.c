/*
 * Channel descriptors. As in "Texture Object Management" of the CUDA Runtime API 13.0. This call
 * has no failure, and returns its result.
 */
#include "cudart_export.h"

CUDART_VISIBLE cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                           cudaChannelFormatKind kind);

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
    return (cudaChannelFormatDesc){x, y, z, w, kind};
}
