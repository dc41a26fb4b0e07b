/*
 * Unpacks what configure.py's build and ci/ptx keep as .xz streams.
 */
#include "packed_file.h"

#include "atomic_file.h"

#include <lzma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of a stream when unpacked, as its index says; SIZE_MAX: there is no sound index. */
static size_t unpacked_bytes(const uint8_t *packed, size_t count) {
    lzma_stream_flags footer;
    lzma_index *index = NULL;
    uint64_t memory = UINT64_MAX;
    size_t at = 0, bytes = SIZE_MAX;
    if (count < 2 * LZMA_STREAM_HEADER_SIZE) return SIZE_MAX;
    const uint8_t *end = packed + count - LZMA_STREAM_HEADER_SIZE;
    if (lzma_stream_footer_decode(&footer, end) != LZMA_OK) return SIZE_MAX;
    if (footer.backward_size > count - 2 * LZMA_STREAM_HEADER_SIZE) return SIZE_MAX;
    if (lzma_index_buffer_decode(&index, &memory, NULL, end - footer.backward_size, &at,
                                 footer.backward_size) == LZMA_OK) {
        bytes = (size_t)lzma_index_uncompressed_size(index);
        lzma_index_end(index, NULL);
    }
    return bytes;
}

char *hyp_packed_unpack(const char *path, const char *packed, size_t count, size_t bytes_max,
                        size_t *bytes) {
    uint64_t memory = UINT64_MAX;
    size_t read = 0, written = 0;
    const size_t room = unpacked_bytes((const uint8_t *)packed, count);
    if (room > bytes_max) {
        hyp_fail("%s is damaged, or holds more than %zu bytes", path, bytes_max);
        return NULL;
    }
    char *text = malloc(room + 1);
    if (text == NULL ||
        lzma_stream_buffer_decode(&memory, 0, NULL, (const uint8_t *)packed, &read, count,
                                  (uint8_t *)text, &written, room) != LZMA_OK) {
        hyp_fail("%s cannot be unpacked", path);
        free(text);
        return NULL;
    }
    text[written] = '\0';
    *bytes = written;
    return text;
}

size_t hyp_packed_bytes(const char *path) {
    char packed_path[8200];
    struct stat info;
    size_t count = 0;
    if (stat(path, &info) == 0) return (size_t)info.st_size;
    snprintf(packed_path, sizeof packed_path, "%s.xz", path);
    if (stat(packed_path, &info) != 0) return 0;
    char *packed = hyp_file_read(packed_path, (size_t)info.st_size, &count);
    const size_t bytes = packed != NULL ? unpacked_bytes((uint8_t *)packed, count) : SIZE_MAX;
    free(packed);
    return bytes == SIZE_MAX ? 0 : bytes;
}

char *hyp_packed_read(const char *path, size_t bytes_max, size_t *bytes) {
    char packed_path[8200];
    size_t count = 0;
    snprintf(packed_path, sizeof packed_path, "%s.xz", path);
    if (access(path, F_OK) == 0 || access(packed_path, F_OK) != 0) {
        return hyp_file_read(path, bytes_max, bytes);
    }
    char *packed = hyp_file_read(packed_path, bytes_max, &count);
    if (packed == NULL) return NULL;
    char *text = hyp_packed_unpack(packed_path, packed, count, bytes_max, bytes);
    free(packed);
    return text;
}
