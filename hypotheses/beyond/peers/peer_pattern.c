/*
 * Writes and compares patterns. One thread makes 2 to 3 GB/s, and a copy of 8 GiB is compared for
 * each way and pair, so pieces of 4 MiB and more are shared by up to sixteen threads.
 */
#include "peer_pattern.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { PARTS_MAX = 16, PART_BYTES = 2 << 20 };

struct part {
    uint64_t seed, first, difference;
    unsigned char *to;          /* NULL: compare */
    const unsigned char *found; /* what is compared */
    size_t bytes;
};

static void write_part(struct part *part) {
    size_t i = 0;
    for (; i < part->bytes && (part->first + i) % 8 != 0; i++) {
        part->to[i] = peer_byte(part->seed, part->first + i);
    }
    for (; i + 8 <= part->bytes; i += 8) {
        const uint64_t word = peer_word(part->seed, (part->first + i) / 8);
        memcpy(part->to + i, &word, 8);
    }
    for (; i < part->bytes; i++) part->to[i] = peer_byte(part->seed, part->first + i);
}

static void compare_part(struct part *part) {
    size_t i = 0;
    while (i < part->bytes) {
        while ((part->first + i) % 8 == 0 && i + 8 <= part->bytes) {
            uint64_t word = 0;
            memcpy(&word, part->found + i, 8);
            if (word != peer_word(part->seed, (part->first + i) / 8)) break;
            i += 8;
        }
        if (i == part->bytes || part->found[i] != peer_byte(part->seed, part->first + i)) break;
        i++;
    }
    part->difference = part->first + i;
}

static void *peer_pattern_work(void *user) {
    struct part *part = user;
    if (part->to != NULL) {
        write_part(part);
    } else {
        compare_part(part);
    }
    return NULL;
}

static uint64_t peer_pattern_share(struct part whole) {
    struct part parts[PARTS_MAX];
    pthread_t threads[PARTS_MAX];
    bool has_thread[PARTS_MAX] = {false};
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = whole.bytes / PART_BYTES;
    if (count > PARTS_MAX) count = PARTS_MAX;
    if (count > (size_t)processors) count = (size_t)processors;
    if (count < 1) count = 1;
    const size_t each = whole.bytes / count;
    for (size_t i = 0; i < count; i++) {
        parts[i] = whole;
        parts[i].first += i * each;
        if (whole.to != NULL) parts[i].to += i * each;
        if (whole.found != NULL) parts[i].found += i * each;
        parts[i].bytes = i + 1 == count ? whole.bytes - i * each : each;
        has_thread[i] =
            i > 0 && pthread_create(&threads[i], NULL, peer_pattern_work, &parts[i]) == 0;
        if (!has_thread[i]) peer_pattern_work(&parts[i]);
    }
    uint64_t difference = whole.first + whole.bytes;
    for (size_t i = 0; i < count; i++) {
        if (has_thread[i]) pthread_join(threads[i], NULL);
        if (parts[i].difference < parts[i].first + parts[i].bytes &&
            parts[i].difference < difference) {
            difference = parts[i].difference;
        }
    }
    return difference;
}

void peer_pattern_write(uint64_t seed, uint64_t first, unsigned char *to, size_t bytes) {
    peer_pattern_share((struct part){.seed = seed, .first = first, .to = to, .bytes = bytes});
}

uint64_t peer_pattern_difference(uint64_t seed, uint64_t first, const unsigned char *found,
                                 size_t bytes) {
    return peer_pattern_share(
        (struct part){.seed = seed, .first = first, .found = found, .bytes = bytes});
}
