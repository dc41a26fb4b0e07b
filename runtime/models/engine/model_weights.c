/*
 * Weights as the kernels have them: the formats of types, and what no kernel has, which becomes
 * another format while it is read: types of 32 elements per block, and vectors that are not F32.
 *
 * Q4_0, Q5_0 and IQ4_NL become Q8_0 of the same scale: each of their values is an integer times
 * the scale, so nothing is rounded. Q4_1 and Q5_1 have a minimum beside the scale and become F32,
 * which takes more memory. These types are what quantising leaves where rows are no multiple of the
 * 256 elements of a K-quant's block.
 * Source: ggml, docs/gguf.md and ggml-quants (their layout).
 */
#include "model.h"

#include "core/check.h"
#include "number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 32, HALF = ELEMENTS / 2, Q8_0_BYTES = 34, F32_BYTES = ELEMENTS * 4 };

typedef void convert_block(const uint8_t *block, uint8_t *to);

static const int8_t plain_4[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
static const int8_t not_linear_4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};

/* Elements 0 to 15 are the low nibbles, 16 to 31 the high ones. */
static unsigned nibble_of(const uint8_t *nibbles, unsigned element) {
    return element < HALF ? nibbles[element] & 15u : nibbles[element - HALF] >> 4;
}

/* With the fifth bits, one per element, in four bytes before the nibbles. */
static unsigned five_bits_of(const uint8_t *bits, unsigned element) {
    const unsigned fifth = (unsigned)bits[element / 8] >> element % 8 & 1u;
    return nibble_of(bits + 4, element) | fifth << 4;
}

static void convert_by_table(const uint8_t *block, const int8_t table[16], uint8_t *to) {
    memcpy(to, block, 2);
    for (unsigned i = 0; i < ELEMENTS; i++) to[2 + i] = (uint8_t)table[nibble_of(block + 2, i)];
}

static void convert_q4_0(const uint8_t *block, uint8_t *to) {
    convert_by_table(block, plain_4, to);
}

static void convert_iq4_nl(const uint8_t *block, uint8_t *to) {
    convert_by_table(block, not_linear_4, to);
}

static void convert_q5_0(const uint8_t *block, uint8_t *to) {
    memcpy(to, block, 2);
    for (unsigned i = 0; i < ELEMENTS; i++) {
        to[2 + i] = (uint8_t)((int)five_bits_of(block + 2, i) - 16);
    }
}

static void weights_put_value(const uint8_t *block, unsigned element, unsigned quant, uint8_t *to) {
    uint16_t both[2];
    memcpy(both, block, sizeof both);
    const float value = kn_f16_value(both[0]) * (float)quant + kn_f16_value(both[1]);
    memcpy(to + element * sizeof value, &value, sizeof value);
}

static void convert_q4_1(const uint8_t *block, uint8_t *to) {
    for (unsigned i = 0; i < ELEMENTS; i++)
        weights_put_value(block, i, nibble_of(block + 4, i), to);
}

static void convert_q5_1(const uint8_t *block, uint8_t *to) {
    for (unsigned i = 0; i < ELEMENTS; i++)
        weights_put_value(block, i, five_bits_of(block + 4, i), to);
}

static void convert_f16(const uint8_t *block, uint8_t *to) {
    uint16_t half;
    memcpy(&half, block, sizeof half);
    const float value = kn_f16_value(half);
    memcpy(to, &value, sizeof value);
}

static void convert_bf16(const uint8_t *block, uint8_t *to) {
    memset(to, 0, sizeof(float)); /* the upper half of an F32, little-endian */
    memcpy(to + 2, block, 2);
}

static const struct weight_type {
    enum tol_tensor_type type;
    enum kn_weight_format format;
    convert_block *convert; /* NULL: the bytes are the file's */
    size_t bytes;           /* of a converted block */
} weight_types[] = {{TOL_TENSOR_F32, KN_WEIGHT_F32, NULL, 0},
                    {TOL_TENSOR_F16, KN_WEIGHT_F16, NULL, 0},
                    {TOL_TENSOR_BF16, KN_WEIGHT_BF16, NULL, 0},
                    {TOL_TENSOR_Q8_0, KN_WEIGHT_Q8_0, NULL, 0},
                    {TOL_TENSOR_Q4_K, KN_WEIGHT_Q4_K, NULL, 0},
                    {TOL_TENSOR_Q5_K, KN_WEIGHT_Q5_K, NULL, 0},
                    {TOL_TENSOR_Q6_K, KN_WEIGHT_Q6_K, NULL, 0},
                    {TOL_TENSOR_Q4_0, KN_WEIGHT_Q8_0, convert_q4_0, Q8_0_BYTES},
                    {TOL_TENSOR_Q5_0, KN_WEIGHT_Q8_0, convert_q5_0, Q8_0_BYTES},
                    {TOL_TENSOR_IQ4_NL, KN_WEIGHT_Q8_0, convert_iq4_nl, Q8_0_BYTES},
                    {TOL_TENSOR_Q4_1, KN_WEIGHT_F32, convert_q4_1, F32_BYTES},
                    {TOL_TENSOR_Q5_1, KN_WEIGHT_F32, convert_q5_1, F32_BYTES}};

/* Norms and biases, which kernels read as floats. */
static const struct weight_type vector_types[] = {
    {TOL_TENSOR_F16, KN_WEIGHT_F32, convert_f16, sizeof(float)},
    {TOL_TENSOR_BF16, KN_WEIGHT_F32, convert_bf16, sizeof(float)}};

static const struct weight_type *weight_type_in(const struct weight_type *types, size_t count,
                                                enum tol_tensor_type type) {
    for (size_t i = 0; i < count; i++) {
        if (types[i].type == type) return &types[i];
    }
    return NULL;
}

static const struct weight_type *weight_type_of(enum tol_tensor_type type) {
    return weight_type_in(weight_types, sizeof weight_types / sizeof weight_types[0], type);
}

static const struct weight_type *weight_type_for(const struct tol_gguf_tensor *tensor) {
    const size_t vectors = sizeof vector_types / sizeof vector_types[0];
    const struct weight_type *vector =
        tensor->extent[1] == 1 ? weight_type_in(vector_types, vectors, tensor->type) : NULL;
    return vector != NULL ? vector : weight_type_of(tensor->type);
}

bool tol_model_format(enum tol_tensor_type type, enum kn_weight_format *format) {
    const struct weight_type *found = weight_type_of(type);
    if (found != NULL) *format = found->format;
    return found != NULL;
}

tol_status tol_model_check_types(const struct tol_gguf *file) {
    enum { TYPES = 64, TEXT = 320 };
    tol_status status = TOL_OK;
    size_t counts[TYPES] = {0}, first[TYPES] = {0};
    const struct tol_gguf_tensor *t = NULL;
    enum kn_weight_format format;
    char text[TEXT] = "";
    for (size_t i = 0; (t = tol_gguf_tensor_at(file, i)) != NULL; i++) {
        if (tol_model_format(t->type, &format) || (unsigned)t->type >= TYPES) continue;
        if (counts[t->type]++ == 0) first[t->type] = i;
    }
    for (unsigned type = 0; type < TYPES; type++) {
        const size_t used = strlen(text);
        if (counts[type] == 0) continue;
        t = tol_gguf_tensor_at(file, first[type]);
        if (counts[type] == 1) {
            snprintf(text + used, TEXT - used, "%sthe tensor %.*s is of %s", used > 0 ? ", " : "",
                     (int)t->name.count, t->name.bytes, tol_tensor_type_name(type));
        } else {
            snprintf(text + used, TEXT - used, "%s%zu tensors, such as %.*s, are of %s",
                     used > 0 ? ", " : "", counts[type], (int)t->name.count, t->name.bytes,
                     tol_tensor_type_name(type));
        }
    }
    TOL_CHECK(text[0] == '\0', TOL_UNSUPPORTED, "%s, which this worker does not compute", text);
out:
    return status;
}

uint64_t tol_model_weight_bytes(const struct tol_gguf_tensor *tensor) {
    const struct weight_type *type = weight_type_for(tensor);
    const size_t each = tol_tensor_block_elements(tensor->type);
    const bool is_converted = type != NULL && type->convert != NULL;
    return is_converted ? tensor->elements / each * type->bytes : tensor->bytes;
}

tol_status tol_model_read(const struct tol_gguf *file, const struct tol_gguf_tensor *tensor,
                          uint64_t from, void *to, size_t bytes) {
    tol_status status = TOL_OK;
    uint8_t block[F32_BYTES], *blocks = NULL;
    const struct weight_type *type = weight_type_for(tensor);
    if (bytes == 0 || type == NULL || type->convert == NULL) {
        return tol_gguf_read(file, tensor, from, to, bytes);
    }
    TOL_CHECK(from <= tol_model_weight_bytes(tensor) &&
                  bytes <= tol_model_weight_bytes(tensor) - from,
              TOL_OUT_OF_RANGE, "%zu bytes from byte %llu on of the tensor %.*s", bytes,
              (unsigned long long)from, (int)tensor->name.count, tensor->name.bytes);
    const size_t each = tol_tensor_block_bytes(tensor->type);
    const uint64_t first = from / type->bytes, last = (from + bytes - 1) / type->bytes;
    const size_t count = (size_t)(last - first + 1);
    blocks = malloc(count * each);
    TOL_CHECK(blocks != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes of weights", count * each);
    TOL_TRY(tol_gguf_read(file, tensor, first * each, blocks, count * each));
    uint64_t skipped = from - first * type->bytes; /* of the first block */
    for (size_t i = 0, done = 0; i < count; i++, skipped = 0) {
        const size_t left = bytes - done, whole = type->bytes - (size_t)skipped;
        const size_t part = left < whole ? left : whole;
        type->convert(blocks + i * each, block);
        memcpy((uint8_t *)to + done, block + skipped, part);
        done += part;
    }
out:
    free(blocks);
    return status;
}
