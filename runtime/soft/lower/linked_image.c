/*
 * A header, then per text its length, its bytes and a NUL, padded to eight bytes.
 */
#include "linked_image.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char magic[16] = "\1tollens linked";

struct header {
    char magic[16];
    uint64_t bytes; /* of the whole image */
    uint64_t count;
};

bool soft_linked_image_is(const void *image) {
    /* strncmp stops at the end of a shorter text. */
    return strncmp(image, magic, sizeof magic) == 0;
}

size_t soft_linked_image_bytes(const void *image) {
    struct header header;
    memcpy(&header, image, sizeof header);
    return (size_t)header.bytes;
}

/* The bytes of a text: its length, itself, a NUL, and padding. */
static uint64_t linked_image_room_of(uint64_t length) {
    return 8 + (length + 1 + 7) / 8 * 8;
}

void *soft_linked_image_make(const struct soft_source *sources, unsigned count, size_t *bytes) {
    struct header header = {.bytes = sizeof header, .count = count};
    memcpy(header.magic, magic, sizeof magic);
    for (unsigned i = 0; i < count; i++) header.bytes += linked_image_room_of(sources[i].length);
    char *image = calloc(1, header.bytes);
    if (image == NULL) return NULL;
    memcpy(image, &header, sizeof header);
    char *at = image + sizeof header;
    for (unsigned i = 0; i < count; i++) {
        uint64_t length = sources[i].length;
        memcpy(at, &length, sizeof length);
        memcpy(at + sizeof length, sources[i].text, sources[i].length);
        at += linked_image_room_of(length);
    }
    *bytes = header.bytes;
    return image;
}

struct soft_source *soft_linked_image_sources(const void *image, unsigned *count) {
    struct header header;
    memcpy(&header, image, sizeof header);
    uint64_t left = header.bytes - sizeof header;
    if (header.bytes < sizeof header || header.count == 0 || header.count > left / 8) return NULL;
    struct soft_source *sources = calloc((size_t)header.count, sizeof *sources);
    const char *at = (const char *)image + sizeof header;
    for (uint64_t i = 0; i < header.count && sources != NULL; i++) {
        uint64_t length = 0;
        if (left >= 8) memcpy(&length, at, sizeof length);
        if (left < 8 || length >= left || linked_image_room_of(length) > left) {
            free(sources);
            return NULL;
        }
        sources[i] = (struct soft_source){.text = at + 8, .length = (size_t)length, .linked = true};
        left -= linked_image_room_of(length);
        at += linked_image_room_of(length);
    }
    *count = (unsigned)header.count;
    return sources;
}
