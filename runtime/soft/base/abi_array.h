/*
 * The structures of CUDA arrays, textures and surfaces, as abi.h has the others, which includes
 * this file.
 *
 * Source: CUDA Driver API 13.0, "Data types used by CUDA driver".
 */

typedef struct {
    size_t Width, Height;
    CUarray_format Format;
    unsigned int NumChannels;
} SOFT_ABI(CUDA_ARRAY_DESCRIPTOR);

typedef struct {
    size_t Width, Height, Depth;
    CUarray_format Format;
    unsigned int NumChannels;
    unsigned int Flags;
} SOFT_ABI(CUDA_ARRAY3D_DESCRIPTOR);

typedef struct {
    struct {
        unsigned int width, height, depth;
    } tileExtent;
    unsigned int miptailFirstLevel;
    unsigned long long miptailSize;
    unsigned int flags;
    unsigned int reserved[4];
} SOFT_ABI(CUDA_ARRAY_SPARSE_PROPERTIES);

typedef struct {
    size_t size, alignment;
    unsigned int reserved[4];
} SOFT_ABI(CUDA_ARRAY_MEMORY_REQUIREMENTS);

typedef struct {
    CUresourcetype resType;
    union {
        struct {
            CUarray hArray;
        } array;
        struct {
            CUmipmappedArray hMipmappedArray;
        } mipmap;
        struct {
            CUdeviceptr devPtr;
            CUarray_format format;
            unsigned int numChannels;
            size_t sizeInBytes;
        } linear;
        struct {
            CUdeviceptr devPtr;
            CUarray_format format;
            unsigned int numChannels;
            size_t width, height, pitchInBytes;
        } pitch2D;
        struct {
            int reserved[32];
        } reserved;
    } res;
    unsigned int flags;
} SOFT_ABI(CUDA_RESOURCE_DESC);

typedef struct {
    CUaddress_mode addressMode[3];
    CUfilter_mode filterMode;
    unsigned int flags;
    unsigned int maxAnisotropy;
    CUfilter_mode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    float borderColor[4];
    int reserved[12];
} SOFT_ABI(CUDA_TEXTURE_DESC);

typedef struct {
    CUresourceViewFormat format;
    size_t width, height, depth;
    unsigned int firstMipmapLevel, lastMipmapLevel;
    unsigned int firstLayer, lastLayer;
    unsigned int reserved[16];
} SOFT_ABI(CUDA_RESOURCE_VIEW_DESC);
