/*
 * Models in parts: llama-gguf-split writes a model as files NAME-00001-of-00003.gguf and so on. The
 * first has the keys, each has tensors. Whichever part is opened, all are read, by their names; a
 * part that is missing or belongs elsewhere is named. The other parts stay open: they have the
 * texts of their tensors' names, and their data.
 */
#include "gguf_state.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 10000, ENDING_BYTES = 40 };

static tol_status gguf_split_number(const struct tol_gguf *gguf, const char *key, uint64_t most,
                                    uint64_t *value) {
    tol_status status = TOL_OK;
    if (tol_gguf_find(gguf, key) == NULL) return TOL_OK;
    TOL_TRY(tol_gguf_get_unsigned(gguf, key, value));
    TOL_CHECK(*value <= most, TOL_INVALID_FILE, "%s: key \"%s\" is %llu; at most %llu", gguf->path,
              key, (unsigned long long)*value, (unsigned long long)most);
out:
    return status;
}

static void gguf_split_ending(uint64_t part, uint64_t parts, char to[ENDING_BYTES]) {
    snprintf(to, ENDING_BYTES, "-%05llu-of-%05llu.gguf", (unsigned long long)part + 1,
             (unsigned long long)parts);
}

/* Opens a part by its name: that of the given one with another number. */
static tol_status gguf_split_open(const char *path, uint64_t given, uint64_t part, uint64_t parts,
                                  struct tol_gguf **gguf) {
    tol_status status = TOL_OK;
    char ending[ENDING_BYTES];
    char *name = NULL;
    uint64_t no = UINT64_MAX, count = 0;
    gguf_split_ending(given, parts, ending);
    const size_t bytes = strlen(path), end = strlen(ending);
    TOL_CHECK(bytes > end && strcmp(path + bytes - end, ending) == 0, TOL_INVALID_FILE,
              "%s is part %llu of %llu of a split model, and its name does not end with %s, by "
              "which the other parts are found; rename it, or join the parts with "
              "llama-gguf-split --merge",
              path, (unsigned long long)given + 1, (unsigned long long)parts, ending);
    name = strdup(path);
    TOL_CHECK(name != NULL, TOL_OUT_OF_HOST_MEMORY, "%s", path);
    gguf_split_ending(part, parts, ending);
    TOL_CHECK(strlen(ending) == end, TOL_INVALID_FILE, "%s: %llu parts", path,
              (unsigned long long)parts);
    strcpy(name + bytes - end, ending);
    if (tol_gguf_open_part(name, gguf) != TOL_OK) {
        const char *sentence = strstr(tol_message(), ": "); /* after the place in the source */
        char why[512];
        snprintf(why, sizeof why, "%s", sentence != NULL ? sentence + 2 : tol_message());
        TOL_FAIL(TOL_INVALID_FILE, "%s is part %llu of %llu of a split model, and part %llu: %s",
                 path, (unsigned long long)given + 1, (unsigned long long)parts,
                 (unsigned long long)part + 1, why);
    }
    TOL_TRY(gguf_split_number(*gguf, "split.no", PARTS_MAX, &no));
    TOL_TRY(gguf_split_number(*gguf, "split.count", PARTS_MAX, &count));
    TOL_CHECK(no == part && count == parts, TOL_INVALID_FILE,
              "%s states that it is part %llu of %llu, and its name that it is part %llu of %llu",
              name, (unsigned long long)no + 1, (unsigned long long)count,
              (unsigned long long)part + 1, (unsigned long long)parts);
out:
    free(name);
    return status;
}

/* The tensors of all parts, in their order, become those of the first. */
static tol_status gguf_split_join(struct tol_gguf *first) {
    tol_status status = TOL_OK;
    size_t count = first->about.tensors;
    for (size_t i = 0; i < first->part_count; i++) count += first->parts[i]->about.tensors;
    TOL_CHECK(count <= TOL_GGUF_TENSORS_MAX, TOL_INVALID_FILE,
              "%s: %zu tensors of all parts; at most %d are supported", first->path, count,
              TOL_GGUF_TENSORS_MAX);
    struct tol_gguf_tensor *all = realloc(first->tensors, (count + 1) * sizeof *all);
    TOL_CHECK(all != NULL, TOL_OUT_OF_HOST_MEMORY, "%s: %zu tensors", first->path, count);
    first->tensors = all;
    for (size_t i = 0; i < first->part_count; i++) {
        const struct tol_gguf *part = first->parts[i];
        for (size_t j = 0; j < part->about.tensors; j++) {
            all[first->about.tensors] = part->tensors[j];
            all[first->about.tensors++].part = (unsigned)i + 1;
        }
        first->about.tensor_bytes += part->about.tensor_bytes;
        first->about.file_bytes += part->about.file_bytes;
    }
    free(first->values_by_key);
    free(first->tensors_by_name);
    first->values_by_key = first->tensors_by_name = NULL;
    TOL_TRY(tol_gguf_check_names(first));
    uint64_t stated = count;
    TOL_TRY(gguf_split_number(first, "split.tensors.count", UINT64_MAX, &stated));
    TOL_CHECK(stated == count, TOL_INVALID_FILE,
              "%s: the parts have %zu tensors, and key \"split.tensors.count\" is %llu",
              first->path, count, (unsigned long long)stated);
out:
    return status;
}

tol_status tol_gguf_open_parts(const char *path, struct tol_gguf **gguf) {
    tol_status status = TOL_OK;
    struct tol_gguf *given = *gguf, *first = NULL;
    uint64_t parts = 1, no = 0;
    TOL_TRY(gguf_split_number(given, "split.count", PARTS_MAX, &parts));
    if (parts <= 1) return TOL_OK;
    TOL_TRY(gguf_split_number(given, "split.no", parts - 1, &no));
    if (no == 0) {
        first = given;
    } else {
        TOL_TRY(gguf_split_open(path, no, 0, parts, &first));
    }
    first->parts = calloc((size_t)parts, sizeof(struct tol_gguf *));
    TOL_CHECK(first->parts != NULL, TOL_OUT_OF_HOST_MEMORY, "%llu parts",
              (unsigned long long)parts);
    for (uint64_t part = 1; part < parts; part++) {
        if (part == no) {
            first->parts[first->part_count++] = given;
            *gguf = NULL; /* the first has it, and is the caller's at the end */
        } else {
            struct tol_gguf *other = NULL;
            status = gguf_split_open(path, no, part, parts, &other);
            if (other != NULL) first->parts[first->part_count++] = other;
            if (status != TOL_OK) goto out;
        }
    }
    TOL_TRY(gguf_split_join(first));
    *gguf = first;
    first = NULL;
out:
    if (first != given) tol_gguf_close(first);
    return status;
}
