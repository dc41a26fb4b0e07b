/*
 * Arrays, their objects, and the sampled places.
 */
#include "images_scene.h"

#include "corpus.h"

#include <string.h>

CUarray images_array(CUDA_ARRAY3D_DESCRIPTOR shape, const void *bytes) {
    static const unsigned sizes[] = {
        [CU_AD_FORMAT_UNSIGNED_INT8] = 1,  [CU_AD_FORMAT_UNSIGNED_INT16] = 2,
        [CU_AD_FORMAT_UNSIGNED_INT32] = 4, [CU_AD_FORMAT_SIGNED_INT8] = 1,
        [CU_AD_FORMAT_SIGNED_INT16] = 2,   [CU_AD_FORMAT_SIGNED_INT32] = 4,
        [CU_AD_FORMAT_HALF] = 2,           [CU_AD_FORMAT_FLOAT] = 4};
    CUarray array = NULL;
    cr_assert_eq(cuArray3DCreate_v2(&array, &shape), CUDA_SUCCESS);
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = bytes,
                                .srcPitch = shape.Width * shape.NumChannels * sizes[shape.Format],
                                .srcHeight = shape.Height > 0 ? shape.Height : 1,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .WidthInBytes =
                                    shape.Width * shape.NumChannels * sizes[shape.Format],
                                .Height = shape.Height > 0 ? shape.Height : 1,
                                .Depth = shape.Depth > 0 ? shape.Depth : 1};
    cr_assert_eq(cuMemcpy3D_v2(&copy), CUDA_SUCCESS);
    return array;
}

void images_read(CUarray array, void *bytes, size_t row, size_t rows, size_t layers) {
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = array,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = bytes,
                                .dstPitch = row,
                                .dstHeight = rows,
                                .WidthInBytes = row,
                                .Height = rows,
                                .Depth = layers};
    cr_assert_eq(cuMemcpy3D_v2(&copy), CUDA_SUCCESS);
}

CUtexObject images_texture(CUarray array, const struct images_oracle *o, unsigned flags) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_TEXTURE_DESC description = {
        .filterMode = o->linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
        .flags = flags | (o->normalised ? CU_TRSF_NORMALIZED_COORDINATES : 0)};
    CUtexObject texture = 0;
    resource.res.array.hArray = array;
    for (int i = 0; i < 3; i++) description.addressMode[i] = (CUaddress_mode)o->mode[i];
    memcpy(description.borderColor, o->border, sizeof o->border);
    cr_assert_eq(cuTexObjectCreate(&texture, &resource, &description, NULL), CUDA_SUCCESS);
    return texture;
}

CUsurfObject images_surface(CUarray array) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUsurfObject surface = 0;
    resource.res.array.hArray = array;
    cr_assert_eq(cuSurfObjectCreate(&surface, &resource), CUDA_SUCCESS);
    return surface;
}

void images_run(CUmodule module, const char *kernel, CUtexObject texture,
                float places[IMAGES_PLACES][3], float got[IMAGES_PLACES][4]) {
    uint32_t count = IMAGES_PLACES;
    CUdeviceptr out = corpus_put(NULL, sizeof(float[IMAGES_PLACES][4]));
    CUdeviceptr at = corpus_put(places, sizeof(float[IMAGES_PLACES][3]));
    CORPUS_LAUNCH(module, kernel, 2, IMAGES_PLACES / 2, 0, &out, &texture, &at, &count);
    corpus_get(out, got, sizeof(float[IMAGES_PLACES][4]));
}

void images_choose(const struct images_oracle *o, float places[IMAGES_PLACES][3]) {
    for (uint32_t i = 0; i < IMAGES_PLACES; i++) {
        for (int d = 0; d < 3; d++) {
            float size = d < o->dimensions ? (float)o->size[d] : 1.0f;
            uint32_t random = corpus_mix(i * 3 + (uint32_t)d);
            float x = (float)(random % 1024) / 1024.0f * 3.0f * size - size;
            /* Halves are where filtering gives a texel as it is, and where it turns to the next. */
            if (i % 4 == 0) x = (float)((int)(random % 40) - 8) / 2.0f;
            places[i][d] = o->normalised ? x / size : x;
        }
    }
}

/* A place whose coordinate is within rounding of a texel's edge has two right answers. */
bool images_on_edge(const struct images_oracle *o, const float place[3]) {
    for (int d = 0; d < o->dimensions; d++) {
        double x = (double)place[d] * (o->normalised ? o->size[d] : 1) - (o->linear ? 0.5 : 0);
        double steps = o->linear ? x * 256 - 0.5 : x;
        if (fabs(steps - nearbyint(steps)) < 1e-3 && o->normalised) return true;
        if (o->linear && fabs(steps - nearbyint(steps)) < 1e-6) return true;
    }
    return false;
}
