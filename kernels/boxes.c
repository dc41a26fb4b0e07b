/*
 * Asks the driver for a tensor map.
 */
#include "boxes.h"

#include "core/check.h"

enum { BOX_ROW_BYTES = 128 };
static const long long STRIDE_END = 1LL << 40; /* bytes */

bool kn_tensor_map_has(const struct tol_context *context) {
    return tol_driver_has(tol_context_driver(context), TOL_FEATURE_TENSOR_MAP);
}

bool kn_tensor_map_takes(enum kn_type type, long long stride) {
    return stride < STRIDE_END / (long long)kn_type_bytes(type);
}

static int data_type_of(const struct kn_tensor *tensor) {
    if (tensor->is_bytes) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    if (tensor->type == KN_F32 && tensor->is_tf32) return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    return tensor->type == KN_F32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
           : tensor->type == KN_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                    : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

tol_status kn_tensor_map_make(struct tol_context *context, const struct kn_tensor *tensor,
                              CUtensorMap *map) {
    tol_status status = TOL_OK;
    const size_t element = tensor->is_bytes ? 1 : kn_type_bytes(tensor->type);
    const bool has_groups = tensor->groups != 0;
    /* The driver checks the stride of a single matrix too, which leads nowhere. */
    const long long stride = tensor->matrices > 1 ? tensor->stride : tensor->leading;
    const long long far = tensor->groups > 1 ? tensor->group_stride : stride;
    const cuuint64_t sizes[] = {(cuuint64_t)tensor->columns, (cuuint64_t)tensor->rows,
                                (cuuint64_t)tensor->matrices, (cuuint64_t)tensor->groups};
    const cuuint64_t strides[] = {(cuuint64_t)tensor->leading * element,
                                  (cuuint64_t)stride * element, (cuuint64_t)far * element};
    const bool is_plain = tensor->plain_bytes != 0;
    const cuuint32_t row = is_plain ? (cuuint32_t)tensor->plain_bytes : BOX_ROW_BYTES;
    const cuuint32_t box[] = {row / (cuuint32_t)element, (cuuint32_t)tensor->box_rows, 1, 1};
    const cuuint32_t steps[] = {1, 1, 1, 1};
    TOL_TRY(tol_context_bind(context));
    TOL_CU(tol_context_functions(context), cuTensorMapEncodeTiled,
           (map, data_type_of(tensor), has_groups ? 4 : 3, (void *)(uintptr_t)tensor->address,
            sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
            is_plain ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
           "describing %s: %d x %d matrices of %d x %d, rows %lld elements apart, matrices %lld, "
           "groups %lld",
           tensor->name, has_groups ? tensor->groups : 1, tensor->matrices, tensor->rows,
           tensor->columns, tensor->leading, stride, far);
out:
    return status;
}
