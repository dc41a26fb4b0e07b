/*
 * Ranks, buffers and oracles.
 */
#include "collective/collective_scene.h"

#include "inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void stage_begin(struct collective_stage *stage, unsigned ranks,
                 const struct kn_collective_options *options) {
    char devices[12];
    int count = 0;
    snprintf(devices, sizeof devices, "%u", ranks);
    setenv("TOLLENS_SOFT_DEVICES", devices, 1);
    *stage = (struct collective_stage){.ranks = ranks};
    MUST(tol_device_count(test_driver(), &count));
    if (count < (int)ranks) cr_skip_test("%u devices are needed, and there are %d", ranks, count);
    for (unsigned i = 0; i < ranks; i++) {
        MUST(tol_context_create(test_driver(), (int)i, &stage->contexts[i]));
        MUST(tol_stream_create(stage->contexts[i], NULL, &stage->streams[i]));
        MUST(tol_buffer_create(stage->contexts[i], STAGE_BYTES, 1, &stage->in[i]));
        MUST(tol_buffer_create(stage->contexts[i], STAGE_BYTES, 1, &stage->out[i]));
        stage->values[i] = malloc(STAGE_BYTES);
        cr_assert(stage->values[i] != NULL);
    }
    MUST(kn_collective_create(stage->contexts, ranks, options, &stage->collective));
    cr_assert_eq(kn_collective_ranks(stage->collective), ranks);
}

void stage_end(struct collective_stage *stage) {
    kn_collective_destroy(stage->collective);
    for (unsigned i = 0; i < stage->ranks; i++) {
        free(stage->values[i]);
        tol_buffer_destroy(stage->in[i]);
        tol_buffer_destroy(stage->out[i]);
        tol_stream_destroy(stage->streams[i]);
        tol_context_destroy(stage->contexts[i]);
    }
    test_end();
}

void stage_fill(struct collective_stage *stage, size_t count, size_t offset, enum kn_type type,
                bool in_place, uint64_t seed) {
    const size_t element = kn_type_bytes(type);
    char *elements = malloc(count * element + 1);
    cr_assert(elements != NULL);
    for (unsigned i = 0; i < stage->ranks; i++) {
        for (size_t j = 0; j < count; j++) {
            stage->values[i][j] = (float)((double)(int32_t)(uint32_t)kn_random(&seed) / (1u << 28));
        }
        kn_numbers_store(type, stage->values[i], count, elements);
        kn_numbers_load(type, elements, count, stage->values[i]);
        MUST(tol_buffer_write_at(stage->in[i], offset * element, elements, count * element));
        MUST(tol_buffer_fill_at(stage->out[i], 0, 0xff, 1, STAGE_BYTES));
        stage->parts[i] = (struct kn_collective_part){
            .in = kn_place_of(stage->in[i], offset * element),
            .out = kn_place_of(in_place ? stage->in[i] : stage->out[i], offset * element),
            .stream = stage->streams[i]};
    }
    free(elements);
}

void stage_check(struct collective_stage *stage, unsigned rank, const float *expected, size_t count,
                 enum kn_type type, bool in_place, const char *what) {
    enum { BEHIND = 16 };
    const size_t bytes = count * kn_type_bytes(type);
    const struct tol_buffer *buffer = in_place ? stage->in[rank] : stage->out[rank];
    const size_t offset = (size_t)(stage->parts[rank].out.address - tol_buffer_address(buffer));
    unsigned char *found = malloc(bytes + BEHIND), *right = malloc(bytes + BEHIND);
    cr_assert(found != NULL && right != NULL);
    memset(right, 0xff, bytes + BEHIND);
    kn_numbers_store(type, expected, count, right);
    MUST(tol_buffer_read_at(buffer, offset, found, bytes + BEHIND));
    for (size_t i = 0; i < bytes + (in_place ? 0 : BEHIND); i++) {
        cr_assert(found[i] == right[i],
                  "%s, %s, rank %u of %u: byte %zu of %zu is %#04x, expected %#04x", what,
                  kn_type_name(type), rank, stage->ranks, i, bytes, found[i], right[i]);
    }
    free(found);
    free(right);
}

static float rounded(float value, enum kn_type type) {
    uint32_t element = 0;
    float result = 0;
    kn_numbers_store(type, &value, 1, &element);
    kn_numbers_load(type, &element, 1, &result);
    return result;
}

float stage_sum(const struct collective_stage *stage, size_t i, enum kn_type type) {
    float sum = stage->values[0][i];
    for (unsigned rank = 1; rank < stage->ranks; rank++) sum += stage->values[rank][i];
    return rounded(sum, type);
}

/* A chunk begins at the rank of its number, and goes on from there. */
float stage_ring_sum(const struct collective_stage *stage, size_t i, size_t count,
                     enum kn_type type) {
    const size_t piece = 16 / kn_type_bytes(type), ranks = stage->ranks;
    const size_t each = ((count + ranks - 1) / ranks + piece - 1) / piece * piece;
    const size_t first = i / each;
    float sum = stage->values[first][i];
    for (size_t step = 1; step < ranks; step++) {
        sum = rounded(sum + stage->values[(first + step) % ranks][i], type);
    }
    return sum;
}
