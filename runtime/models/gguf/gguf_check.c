/*
 * Checks that need all keys and tensors: names that occur twice, and data that overlaps. Both are
 * found among neighbours in a sorted order.
 */
#include "gguf_state.h"

#include "core/check.h"

#include <stdlib.h>

typedef unsigned long long number;

/* Positions with what they are sorted by; qsort takes no argument for its comparison. */
struct named {
    struct tol_gguf_text name;
    uint32_t position;
};

struct placed {
    uint64_t begin, end;
    uint32_t position;
};

static int gguf_check_by_name(const void *a, const void *b) {
    const struct named *one = a, *other = b;
    int order = tol_gguf_compare(one->name, other->name);
    if (order != 0) return order;
    return one->position < other->position ? -1 : one->position > other->position;
}

static int by_begin(const void *a, const void *b) {
    const struct placed *one = a, *other = b;
    return one->begin < other->begin ? -1 : one->begin > other->begin;
}

/* Sorts them. *twice is the later position of a name that occurs twice, or count. */
static uint32_t *sort_names(struct named *names, size_t count, size_t *twice) {
    uint32_t *order = malloc((count + 1) * sizeof *order);
    if (order == NULL) return NULL;
    qsort(names, count, sizeof *names, gguf_check_by_name);
    *twice = count;
    for (size_t i = 0; i < count; i++) {
        order[i] = names[i].position;
        bool same = i > 0 && tol_gguf_compare(names[i - 1].name, names[i].name) == 0;
        if (same && order[i] < *twice) *twice = order[i];
    }
    return order;
}

tol_status tol_gguf_check_names(struct tol_gguf *gguf) {
    tol_status status = TOL_OK;
    char quoted[TOL_GGUF_QUOTED_BYTES];
    size_t keys = gguf->about.keys, tensors = gguf->about.tensors, twice = 0;
    struct named *names = calloc((keys > tensors ? keys : tensors) + 1, sizeof *names);
    TOL_CHECK(names != NULL, TOL_OUT_OF_HOST_MEMORY, "%s: sorting %zu keys", gguf->path, keys);
    for (size_t i = 0; i < keys; i++) {
        names[i] = (struct named){gguf->values[i].key, (uint32_t)i};
    }
    gguf->values_by_key = sort_names(names, keys, &twice);
    TOL_CHECK(gguf->values_by_key != NULL, TOL_OUT_OF_HOST_MEMORY, "%s: sorting %zu keys",
              gguf->path, keys);
    TOL_CHECK(twice == keys, TOL_INVALID_FILE, "%s: key %s at byte %llu occurs a second time",
              gguf->path, tol_gguf_quote(gguf->values[twice].key, quoted),
              (number)gguf->values[twice].offset);
    for (size_t i = 0; i < tensors; i++) {
        names[i] = (struct named){gguf->tensors[i].name, (uint32_t)i};
    }
    gguf->tensors_by_name = sort_names(names, tensors, &twice);
    TOL_CHECK(gguf->tensors_by_name != NULL, TOL_OUT_OF_HOST_MEMORY, "%s: sorting %zu tensors",
              gguf->path, tensors);
    /* A name begins 8 bytes after the beginning of its tensor's description: after its length. */
    if (twice == tensors) goto out;
    const struct tol_gguf *part = tol_gguf_part(gguf, &gguf->tensors[twice]);
    TOL_FAIL(TOL_INVALID_FILE, "%s: tensor %s at byte %llu occurs a second time", part->path,
             tol_gguf_quote(gguf->tensors[twice].name, quoted),
             (number)((const unsigned char *)gguf->tensors[twice].name.bytes - part->head) - 8);
out:
    free(names);
    return status;
}

tol_status tol_gguf_check_overlaps(const struct tol_gguf *gguf) {
    tol_status status = TOL_OK;
    char first[TOL_GGUF_QUOTED_BYTES], second[TOL_GGUF_QUOTED_BYTES];
    size_t count = gguf->about.tensors;
    struct placed *places = calloc(count + 1, sizeof *places);
    TOL_CHECK(places != NULL, TOL_OUT_OF_HOST_MEMORY, "%s: sorting %zu tensors", gguf->path, count);
    for (size_t i = 0; i < count; i++) {
        const struct tol_gguf_tensor *tensor = &gguf->tensors[i];
        places[i] = (struct placed){tensor->offset, tensor->offset + tensor->bytes, (uint32_t)i};
    }
    qsort(places, count, sizeof *places, by_begin);
    for (size_t i = 1; i < count; i++) {
        TOL_CHECK(places[i].begin >= places[i - 1].end, TOL_INVALID_FILE,
                  "%s: tensor %s begins at byte %llu, and tensor %s before it ends at byte %llu",
                  gguf->path, tol_gguf_quote(gguf->tensors[places[i].position].name, first),
                  (number)places[i].begin,
                  tol_gguf_quote(gguf->tensors[places[i - 1].position].name, second),
                  (number)places[i - 1].end);
    }
out:
    free(places);
    return status;
}
