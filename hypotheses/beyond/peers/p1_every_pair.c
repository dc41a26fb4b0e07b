/*
 * The attacks on P1 that copy one pair at a time: every ordered pair, every way, sizes from 1 byte
 * on, odd offsets, large copies, and one of a thousand million bits.
 */
#include "peer_faults.h"
#include "peer_ways.h"

#include <stdio.h>

/* What the bytes of a trial depend on. */
static uint64_t seed_of(struct hyp_attack *attack, size_t from, size_t to) {
    return hyp_random(attack) ^ (from * 64 + to);
}

/* The bytes that the source of a trial has next, and the poison that does not begin like them. */
static uint64_t every_prepare(struct peer_stage *stage, const struct peer_area *source,
                              struct peer_trial *trial) {
    const uint64_t seed = seed_of(stage->attack, trial->from, trial->to);
    trial->stage = stage;
    trial->source = source;
    trial->poison = (unsigned char)~peer_byte(seed, 0);
    return seed;
}

static bool every_send(const struct peer_trial *trial, uint64_t seed) {
    struct peer_stage *stage = trial->stage;
    return peer_area_poison(stage, trial->source, trial->poison) &&
           peer_area_send(stage, trial->source, trial->source_offset, seed, trial->bytes);
}

/* Poisons the target, copies what the source was sent, and compares. */
static bool every_copy(struct peer_trial *trial, const struct peer_area *target, enum peer_way way,
                       uint64_t seed) {
    char words[160];
    struct peer_stage *stage = trial->stage;
    trial->target = target;
    snprintf(words, sizeof words, "%s, device %zu to %zu, %zu bytes at offsets %zu and %zu",
             peer_way_name(way), trial->from, trial->to, trial->bytes, trial->source_offset,
             trial->target_offset);
    return peer_area_poison(stage, target, trial->poison) && peer_way_run(trial, way) &&
           peer_area_check(stage, target, trial->target_offset, seed, trial->bytes, trial->poison,
                           words);
}

static bool try_once(struct peer_stage *stage, const struct peer_area *source,
                     const struct peer_area *target, struct peer_trial *trial, enum peer_way way) {
    const uint64_t seed = every_prepare(stage, source, trial);
    return every_send(trial, seed) && every_copy(trial, target, way, seed);
}

/* ---- sizes ---- */

static const size_t sizes[] = {1,    2,     3,     7,     8,      15,           16,   17,
                               31,   33,    64,    127,   255,    1000,         4095, 4096,
                               4097, 12289, 65535, 65537, 262139, (1 << 20) + 1};
/* Offsets in the source and in the target: neither, one, both alike, and each on its own. */
static const size_t offsets[][2] = {{0, 0}, {1, 0}, {0, 3}, {5, 5}, {13, 6}};

enum { SIZES = sizeof sizes / sizeof sizes[0], OFFSETS = sizeof offsets / sizeof offsets[0] };

/* A quick run tries one pair of offsets for each size; other ways and pairs have others. */
static bool try_sizes(struct peer_stage *stage, size_t from, size_t to, enum peer_way way,
                      const struct peer_area *source, const struct peer_area *target) {
    const bool is_full = stage->attack->session.full;
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t j = 0; j < OFFSETS; j++) {
            if (!is_full && j != (i + from + to + way) % OFFSETS) continue;
            struct peer_trial trial = {.from = from,
                                       .to = to,
                                       .source_offset = offsets[j][0],
                                       .target_offset = offsets[j][1],
                                       .bytes = sizes[i]};
            if (!try_once(stage, source, target, &trial, way)) return false;
        }
    }
    return true;
}

static void try_pair(struct peer_stage *stage, size_t from, size_t to, size_t bytes) {
    struct peer_area source = {0}, target = {0};
    bool ok = peer_area_create(stage, from, bytes, &source) &&
              peer_area_create(stage, to, bytes, &target);
    for (enum peer_way way = PEER_ENGINE; ok && way < PEER_WAYS; way++) {
        struct peer_area mapped = {0};
        bool is_skipped = false;
        if (!peer_way_is_open(stage, way, from, to)) continue;
        if (way == PEER_MAPPED) {
            if (peer_area_map(stage, to, from, bytes, &mapped, &is_skipped)) {
                try_sizes(stage, from, to, way, &source, &mapped);
            }
            peer_area_destroy(stage, &mapped);
        } else {
            try_sizes(stage, from, to, way, &source, &target);
        }
    }
    peer_area_destroy(stage, &source);
    peer_area_destroy(stage, &target);
}

HYP_ATTACK_WITH(p1, every_pair_returns_every_way, .soft_devices = "4") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        const size_t pairs = stage.count * stage.count;
        for (size_t i = 0; i < pairs; i++) {
            const size_t from = i / stage.count, to = i % stage.count;
            if (from != to) try_pair(&stage, from, to, sizes[SIZES - 1]);
            hyp_attack_progress(attack, (double)(i + 1) / (double)pairs);
        }
    }
    peer_stage_end(&stage);
}

/* ---- large ---- */

static const size_t large[] = {((size_t)64 << 20) + 5, ((size_t)1 << 30) + 3, (size_t)8 << 30};

static size_t large_count(const struct hyp_attack *attack) {
    if (attack->kind == HYP_DEVICE_SOFT || !attack->session.full) return 0;
    return attack->session.is_repeated || attack->session.sabotage != NULL
               ? 1
               : sizeof large / sizeof large[0];
}

/* The host makes and compares patterns more slowly than devices copy, so the source is sent once,
 * and every way copies it to a target that was poisoned again. */
static bool try_large(struct peer_stage *stage, struct peer_trial *trial) {
    struct peer_area source = {0}, target = {0};
    const size_t bytes = trial->bytes + 1; /* and the offset */
    const uint64_t seed = every_prepare(stage, &source, trial);
    bool ok = peer_area_create(stage, trial->from, bytes, &source) &&
              peer_area_create(stage, trial->to, bytes, &target) && every_send(trial, seed);
    for (enum peer_way way = PEER_ENGINE; ok && way < PEER_WAYS; way++) {
        struct peer_area mapped = {0};
        bool is_skipped = false;
        if (!peer_way_is_open(stage, way, trial->from, trial->to)) continue;
        if (way == PEER_MAPPED) {
            ok = peer_area_map(stage, trial->to, trial->from, bytes, &mapped, &is_skipped) &&
                 every_copy(trial, &mapped, way, seed);
            peer_area_destroy(stage, &mapped);
            ok = ok || is_skipped;
        } else {
            ok = every_copy(trial, &target, way, seed);
        }
    }
    peer_area_destroy(stage, &source);
    peer_area_destroy(stage, &target);
    return ok;
}

/* Of more than two devices, only neighbours have the largest: each takes two seconds. */
static void try_large_pair(struct peer_stage *stage, size_t from, size_t to) {
    size_t count = large_count(stage->attack);
    const bool is_neighbour = stage->count == 2 || to == (from + 1) % stage->count;
    if (count > 1 && !is_neighbour) count--;
    bool ok = true;
    for (size_t i = 0; ok && i < (count > 0 ? count : 1); i++) {
        struct peer_trial trial = {.from = from,
                                   .to = to,
                                   .target_offset = i % 2,
                                   .source_offset = i % 2,
                                   .bytes = count > 0 ? large[i] : ((size_t)2 << 20) + 5};
        ok = try_large(stage, &trial);
    }
}

HYP_ATTACK_WITH(p1, large_copies_return_every_way, .soft_devices = "2") {
    struct peer_stage stage;
    const size_t count = large_count(attack);
    if (count < sizeof large / sizeof large[0]) {
        hyp_attack_note(attack, "8 GiB need GPUs, full mode and the first seed; tried %zu bytes",
                        count > 0 ? large[count - 1] : ((size_t)2 << 20) + 5);
    }
    if (peer_stage_begin(attack, &stage)) {
        const size_t pairs = stage.count * stage.count;
        for (size_t i = 0; i < pairs; i++) {
            const size_t from = i / stage.count, to = i % stage.count;
            if (from != to) try_large_pair(&stage, from, to);
            hyp_attack_progress(attack, (double)(i + 1) / (double)pairs);
        }
    }
    peer_stage_end(&stage);
}

/* ---- one bit ---- */

/* Every copy has at least 10^9 bits, and each of them is compared. */
HYP_ATTACK_WITH(p1, no_bit_of_a_thousand_million_flips, .soft_devices = "2") {
    const size_t bytes = PEER_BILLION_BITS;
    struct peer_stage stage;
    bool ok = peer_stage_begin(attack, &stage);
    for (size_t from = 0; ok && from < stage.count; from++) {
        struct peer_area source = {0}, target = {0};
        struct peer_trial trial = {.from = from, .to = (from + 1) % stage.count, .bytes = bytes};
        ok = peer_area_create(&stage, from, bytes, &source) &&
             peer_area_create(&stage, trial.to, bytes, &target) &&
             try_once(&stage, &source, &target, &trial, PEER_ENGINE);
        peer_area_destroy(&stage, &source);
        peer_area_destroy(&stage, &target);
        hyp_attack_progress(attack, (double)(from + 1) / (double)stage.count);
    }
    peer_stage_end(&stage);
}
