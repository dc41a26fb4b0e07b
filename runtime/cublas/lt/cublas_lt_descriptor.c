/*
 * Descriptors and their attributes. Source: cuBLAS Library 13.0, "cublasLt Datatypes Reference",
 * and cublasLt.h.
 */
#include "lt/cublas_lt_descriptor.h"

#include "base/cublas_handle.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct lt_layout) <= 64, "cublasLtMatrixLayoutOpaque_t");
_Static_assert(sizeof(struct lt_matmul) <= 256, "cublasLtMatmulDescOpaque_t");
_Static_assert(sizeof(struct lt_preference) <= 64, "cublasLtMatmulPreferenceOpaque_t");

/* An attribute: a member of a descriptor. */
struct lt_attribute {
    int id;
    size_t offset, bytes;
};
#define MEMBER(id, type, member)                                                                   \
    { id, offsetof(struct type, member), sizeof(((struct type *)NULL)->member) }
#define END                                                                                        \
    { -1, 0, 0 }

static const struct lt_attribute layout_attributes[] = {
    MEMBER(0, lt_layout, type),       MEMBER(1, lt_layout, order),
    MEMBER(2, lt_layout, rows),       MEMBER(3, lt_layout, columns),
    MEMBER(4, lt_layout, leading),    MEMBER(5, lt_layout, batch),
    MEMBER(6, lt_layout, stride),     MEMBER(7, lt_layout, plane),
    MEMBER(8, lt_layout, batch_mode), END};

static const struct lt_attribute matmul_attributes[] = {
    MEMBER(0, lt_matmul, compute), MEMBER(1, lt_matmul, scale_type),
    MEMBER(2, lt_matmul, pointer_mode), MEMBER(3, lt_matmul, op_a), MEMBER(4, lt_matmul, op_b),
    MEMBER(5, lt_matmul, op_c), MEMBER(6, lt_matmul, fill), MEMBER(7, lt_matmul, epilogue),
    MEMBER(8, lt_matmul, bias), MEMBER(10, lt_matmul, bias_stride),
    MEMBER(14, lt_matmul, alpha_stride), MEMBER(15, lt_matmul, sm_count),
    MEMBER(26, lt_matmul, bias_type),
    /* Of the epilogues that store a second matrix; scales of A, B, C and D; the largest of D. */
    MEMBER(11, lt_matmul, rest.pointers[0]), MEMBER(17, lt_matmul, rest.pointers[1]),
    MEMBER(18, lt_matmul, rest.pointers[2]), MEMBER(19, lt_matmul, rest.pointers[3]),
    MEMBER(20, lt_matmul, rest.pointers[4]), MEMBER(21, lt_matmul, rest.pointers[5]),
    MEMBER(23, lt_matmul, rest.pointers[6]), MEMBER(24, lt_matmul, rest.pointers[7]),
    MEMBER(36, lt_matmul, rest.pointers[8]), MEMBER(12, lt_matmul, rest.aux_leading),
    MEMBER(13, lt_matmul, rest.aux_stride), MEMBER(22, lt_matmul, rest.aux_type),
    MEMBER(25, lt_matmul, rest.fast_accumulation), MEMBER(31, lt_matmul, rest.modes[0]),
    MEMBER(32, lt_matmul, rest.modes[1]), MEMBER(33, lt_matmul, rest.modes[2]),
    MEMBER(34, lt_matmul, rest.modes[3]), MEMBER(35, lt_matmul, rest.modes[4]),
    MEMBER(37, lt_matmul, rest.modes[5]), END};

static const struct lt_attribute preference_attributes[] = {
    MEMBER(0, lt_preference, search_mode),      MEMBER(1, lt_preference, workspace),
    MEMBER(3, lt_preference, reductions),       MEMBER(5, lt_preference, alignment[0]),
    MEMBER(6, lt_preference, alignment[1]),     MEMBER(7, lt_preference, alignment[2]),
    MEMBER(8, lt_preference, alignment[3]),     MEMBER(9, lt_preference, waves),
    MEMBER(12, lt_preference, implementations), END};

static const struct lt_attribute *descriptor_find(const struct lt_attribute *rows, int id) {
    while (rows->id >= 0 && rows->id != id) rows++;
    return rows->id >= 0 ? rows : NULL;
}

static cublasStatus_t descriptor_set(void *descriptor, const struct lt_attribute *rows, int id,
                                     const void *value, size_t bytes) {
    const struct lt_attribute *row = descriptor_find(rows, id);
    if (descriptor == NULL || row == NULL || value == NULL || bytes != row->bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy((char *)descriptor + row->offset, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* Without room for the value, the call asks for its size. */
static cublasStatus_t descriptor_get(const void *descriptor, const struct lt_attribute *rows,
                                     int id, void *value, size_t bytes, size_t *written) {
    const struct lt_attribute *row = descriptor_find(rows, id);
    if (descriptor == NULL || row == NULL || (bytes == 0 && written == NULL) ||
        (bytes != 0 && (value == NULL || bytes < row->bytes))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (written != NULL) *written = row->bytes;
    if (bytes != 0) memcpy(value, (const char *)descriptor + row->offset, row->bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* What begins as value, in the program's memory. */
static cublasStatus_t descriptor_init(void *descriptor, size_t room, const void *value,
                                      size_t bytes) {
    if (descriptor == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    if (room < bytes) return CUBLAS_STATUS_ALLOC_FAILED;
    memset(descriptor, 0, room);
    memcpy(descriptor, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t descriptor_create(void **descriptor, const void *value, size_t bytes) {
    if (descriptor == NULL) return CUBLAS_STATUS_INVALID_VALUE;
    *descriptor = malloc(bytes);
    if (*descriptor == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(*descriptor, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t descriptor_destroy(void *descriptor) {
    free(descriptor);
    return CUBLAS_STATUS_SUCCESS;
}

static const struct lt_matmul matmul_default = {
    .fill = 2, .epilogue = LT_EPILOGUE_NONE, .bias_type = -1, .rest.aux_type = -1};

bool lt_matmul_has_rest(const struct lt_matmul *matmul) {
    return memcmp(&matmul->rest, &matmul_default.rest, sizeof matmul->rest) != 0;
}

static struct lt_layout descriptor_layout(int type, uint64_t rows, uint64_t columns,
                                          int64_t leading) {
    struct lt_layout layout;
    memset(&layout, 0, sizeof layout);
    layout.type = type;
    layout.rows = rows;
    layout.columns = columns;
    layout.leading = leading;
    layout.batch = 1;
    return layout;
}

static struct lt_matmul descriptor_matmul(int compute, int scale_type) {
    struct lt_matmul matmul;
    memcpy(&matmul, &matmul_default, sizeof matmul);
    matmul.compute = compute;
    matmul.scale_type = scale_type;
    return matmul;
}

static struct lt_preference descriptor_preference(void) {
    return (struct lt_preference){
        .reductions = UINT32_MAX, .alignment = {256, 256, 256, 256}, .implementations = UINT64_MAX};
}

/* ---- the functions ---- */

/* Those of a descriptor: parameters are what Create takes and make needs, each after a comma. */
#define LT_DESCRIPTOR(name, attributes, type, parameters, make)                                    \
    CUBLAS(cublasLt##name##Init_internal, (void *descriptor, size_t room UNPACK parameters),       \
           descriptor_init(descriptor, room, &(struct type[]){make}[0], sizeof(struct type)))      \
    CUBLAS(cublasLt##name##Create, (void **descriptor UNPACK parameters),                          \
           descriptor_create(descriptor, &(struct type[]){make}[0], sizeof(struct type)))          \
    CUBLAS(cublasLt##name##Destroy, (void *descriptor), descriptor_destroy(descriptor))            \
    CUBLAS(cublasLt##name##SetAttribute,                                                           \
           (void *descriptor, int id, const void *value, size_t bytes),                            \
           descriptor_set(descriptor, attributes, id, value, bytes))                               \
    CUBLAS(cublasLt##name##GetAttribute,                                                           \
           (const void *descriptor, int id, void *value, size_t bytes, size_t *written),           \
           descriptor_get(descriptor, attributes, id, value, bytes, written))
#define UNPACK(...) __VA_ARGS__
LT_DESCRIPTOR(MatrixLayout, layout_attributes, lt_layout,
              (, int type, uint64_t rows, uint64_t columns, int64_t leading),
              descriptor_layout(type, rows, columns, leading))
LT_DESCRIPTOR(MatmulDesc, matmul_attributes, lt_matmul, (, int compute, int scale_type),
              descriptor_matmul(compute, scale_type))
LT_DESCRIPTOR(MatmulPreference, preference_attributes, lt_preference, (), descriptor_preference())
