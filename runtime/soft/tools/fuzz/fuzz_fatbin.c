/*
 * Fuzz target: any bytes as a fat binary, a cubin or a container of PTX in a file. The reader
 * returns text of the length that it gives, or one of three results and a sentence; the texts of a
 * container are whole, and come back from a container of them. It reads nothing past the file.
 */
#include "fuzz.h"

#include "lower/container.h"
#include "lower/fatbin.h"

#include <stdlib.h>
#include <string.h>

static void fatbin_check(bool holds, const char *what, int result, const char *log) {
    if (!holds) fuzz_fail(what, result, log);
}

static void check_sentence(const char *says) {
    const size_t length = strnlen(says, SOFT_FATBIN_SAYS);
    fatbin_check(length > 10 && length < SOFT_FATBIN_SAYS, "refused without a sentence", 0, "");
    for (size_t i = 0; i + 1 < length; i++) {
        fatbin_check(says[i] >= ' ' && says[i] <= '~', "a sentence with another byte", says[i],
                     says);
    }
}

/* The texts of a container, and those of one that is made of them. */
static void check_container(const void *image, size_t bytes) {
    unsigned count = 0, again = 0;
    size_t made = 0;
    struct soft_source *sources = soft_container_sources(image, bytes, &count);
    if (sources == NULL) return;
    void *copy =
        count <= SOFT_CONTAINER_TEXTS_MAX ? soft_container_make(sources, count, 90, &made) : NULL;
    struct soft_source *others = copy != NULL ? soft_container_sources(copy, made, &again) : NULL;
    fatbin_check(copy == NULL || (others != NULL && again == count), "another container",
                 (int)count, "");
    for (unsigned i = 0; i < count; i++) {
        fatbin_check(strlen(sources[i].text) == sources[i].length, "text of another length", (int)i,
                     "");
        fatbin_check(others == NULL || (strcmp(others[i].text, sources[i].text) == 0 &&
                                        others[i].linked == sources[i].linked),
                     "another text", (int)i, "");
    }
    free(others);
    free(copy);
    free(sources);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int capabilities[] = {70, 90, 121};
    char says[SOFT_FATBIN_SAYS];
    char *image = malloc(size + 1); /* ends where the file does, for the sanitizer */
    if (size < 4 || image == NULL) goto out;
    image = realloc(image, size);
    if (image == NULL) fuzz_fail("out of memory", 0, "");
    memcpy(image, data, size);
    if (size >= 16 && soft_container_is(image)) check_container(image, size);
    if (size >= SOFT_CUBIN_BYTES) {
        memset(says, 0, sizeof says);
        soft_fatbin_refuse_cubin(image, says);
        check_sentence(says);
    }
    for (int i = 0; i < 2 && soft_fatbin_is(image); i++) {
        size_t length = 0;
        int result = CUDA_SUCCESS;
        memset(says, 0, sizeof says);
        bool stands_in = false;
        char *text =
            soft_fatbin_ptx(image, size, capabilities[i], &length, &result, &stands_in, says);
        if (text == NULL) {
            fatbin_check(result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                             result == CUDA_ERROR_INVALID_IMAGE ||
                             result == CUDA_ERROR_OUT_OF_MEMORY,
                         "another result", result, says);
            check_sentence(says);
            continue;
        }
        if (length >= 16 && soft_container_is(text)) {
            check_container(text, length);
        } else {
            fatbin_check(strlen(text) == length, "text of another length", (int)length, "");
        }
        free(text);
    }
out:
    free(image);
    return 0;
}
