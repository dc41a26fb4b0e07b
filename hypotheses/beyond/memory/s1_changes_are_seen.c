/*
 * Attacks on S1, changes: untouched memory is accepted, and each change, on the device or in
 * a packed object, is rejected with the number of its chunk.
 */
#include "seal_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- untouched memory ---- */

HYP_ATTACK(s1, what_is_sealed_stays) {
    const unsigned steps = attack->session.full ? 400 : 40;
    struct seal_stage stage;
    bool ok = seal_stage_begin(attack, &stage) && seal_stage_seal(attack, &stage);
    for (unsigned i = 0; ok && i < steps; i++) {
        switch (hyp_random_below(attack, 5)) {
        case 0:
            ok = HYP_OK(attack, tol_seal_rotate(stage.sealed));
            break;
        case 1:
            ok = seal_stage_read(attack, &stage);
            break;
        case 2:
            ok = seal_stage_multiply(attack, &stage);
            break;
        default:
            ok = HYP_OK(attack, tol_seal_verify(stage.sealed));
        }
        hyp_attack_progress(attack, (i + 1.0) / steps);
    }
    seal_stage_end(&stage);
}

/* ---- changes on the device ---- */

/* A verification must name the chunk at an offset as the first that changed, and nothing may be
 * used; after the bytes are restored, it is accepted again. */
static void must_see(struct hyp_attack *attack, struct seal_stage *s, size_t offset,
                     const void *bytes, const void *back, size_t count, const char *what) {
    char text[64];
    if (memcmp(bytes, back, count) == 0 || !seal_stage_poke(attack, s, offset, bytes, count))
        return;
    snprintf(text, sizeof text, "chunk %zu of", offset / STAGE_CHUNK);
    const tol_status status = tol_seal_verify(s->sealed);
    HYP_CHECK(attack, status == TOL_MISMATCH && strstr(tol_message(), text) != NULL,
              "%s at byte %zu: %s: %s", what, offset, tol_status_name(status),
              status != TOL_OK ? tol_message() : "nothing was noticed");
    HYP_REFUSED(attack,
                tol_seal_product(s->sealed, s->stream, tol_place_of_buffer(s->x),
                                 tol_place_of_buffer(s->y)),
                TOL_MISMATCH, "is not used");
    seal_stage_poke(attack, s, offset, back, count);
    HYP_OK(attack, tol_seal_verify(s->sealed));
}

/* One random change: a bit, a run of bytes, zeros, or a chunk of an earlier generation. */
static void change_once(struct hyp_attack *attack, struct seal_stage *s, const char *earlier) {
    static char bytes[STAGE_CHUNK], back[STAGE_CHUNK];
    const size_t all = tol_sealed_place(s->sealed).bytes;
    const uint64_t kind = hyp_random_below(attack, 4);
    size_t count = kind == 0 ? 1 : kind == 3 ? STAGE_CHUNK : 1 + hyp_random_below(attack, 300);
    size_t offset = (size_t)hyp_random_below(attack, all);
    if (kind == 3) offset = offset / STAGE_CHUNK * STAGE_CHUNK;
    if (count > all - offset) count = all - offset;
    if (!seal_stage_peek(attack, s, offset, back, count)) return;
    memcpy(bytes, back, count);
    if (kind == 0) bytes[0] = (char)(bytes[0] ^ 1 << hyp_random_below(attack, 8));
    for (size_t i = 0; kind == 1 && i < count; i++) bytes[i] = (char)hyp_random(attack);
    if (kind == 2) memset(bytes, 0, count);
    if (kind == 3) memcpy(bytes, earlier + offset, count);
    static const char *const names[] = {"a changed bit", "changed bytes", "zeros",
                                        "a chunk of an earlier generation"};
    /* Changed bytes may begin with some that are the same. */
    size_t first = 0;
    while (first < count - 1 && bytes[first] == back[first]) first++;
    must_see(attack, s, offset + first, bytes + first, back + first, count - first, names[kind]);
}

/* Two chunks are swapped. */
static void swap_once(struct hyp_attack *attack, struct seal_stage *s) {
    static char chunks[2][STAGE_CHUNK], swapped[2][STAGE_CHUNK];
    const size_t whole = tol_sealed_place(s->sealed).bytes / STAGE_CHUNK;
    const size_t at = (size_t)hyp_random_below(attack, whole - 1) * STAGE_CHUNK;
    if (!seal_stage_peek(attack, s, at, chunks, sizeof chunks)) return;
    memcpy(swapped[0], chunks[1], STAGE_CHUNK);
    memcpy(swapped[1], chunks[0], STAGE_CHUNK);
    must_see(attack, s, at, swapped, chunks, sizeof chunks, "swapped chunks");
}

HYP_ATTACK(s1, every_change_is_refused_with_its_chunk) {
    const unsigned changes = attack->session.full ? 600 : 60;
    struct seal_stage stage;
    char *earlier = NULL;
    if (seal_stage_begin(attack, &stage) && seal_stage_seal(attack, &stage)) {
        const size_t bytes = tol_sealed_place(stage.sealed).bytes;
        earlier = malloc(bytes);
        if (HYP_CHECK(attack, earlier != NULL, "no host memory") &&
            seal_stage_peek(attack, &stage, 0, earlier, bytes) &&
            HYP_OK(attack, tol_seal_rotate(stage.sealed))) {
            for (unsigned i = 0; i < changes; i++) {
                if (i % 8 == 7) {
                    swap_once(attack, &stage);
                } else {
                    change_once(attack, &stage, earlier);
                }
                hyp_attack_progress(attack, (i + 1.0) / changes);
            }
            seal_stage_read(attack, &stage);
        }
    }
    free(earlier);
    seal_stage_end(&stage);
}

/* A change is found by the rotation and by reading, and gets no new tag by them. */
HYP_ATTACK(s1, no_change_is_blessed) {
    const unsigned rounds = attack->session.full ? 40 : 6;
    struct seal_stage stage;
    char byte = 0;
    if (seal_stage_begin(attack, &stage)) {
        for (unsigned i = 0; i < rounds && seal_stage_seal(attack, &stage); i++) {
            const size_t at = hyp_random_below(attack, tol_sealed_place(stage.sealed).bytes);
            if (!seal_stage_peek(attack, &stage, at, &byte, 1)) break;
            byte = (char)(byte ^ 1 << hyp_random_below(attack, 8));
            if (!seal_stage_poke(attack, &stage, at, &byte, 1)) break;
            HYP_REFUSED(attack, tol_seal_rotate(stage.sealed), TOL_MISMATCH, "was changed");
            HYP_REFUSED(attack, tol_seal_verify(stage.sealed), TOL_MISMATCH, "was changed");
        }
    }
    seal_stage_end(&stage);
}

/* ---- changes in a file ---- */

/* The file of a packed object, read again. Under the saboteur a number of its manifest is
 * changed. */
static bool pass_through_file(struct hyp_attack *attack, void **packed, size_t *bytes) {
    char path[] = "/tmp/tollens-packed-XXXXXX";
    const int file = mkstemp(path);
    if (!HYP_CHECK(attack, file >= 0, "no temporary file")) return false;
    close(file);
    if (memory_fault_is(attack, "manifest_changed")) ((char *)*packed)[60] ^= 1;
    bool ok = HYP_OK(attack, tol_seal_write_file(path, *packed, *bytes));
    free(*packed);
    *packed = NULL;
    ok = ok && HYP_OK(attack, tol_seal_read_file(path, packed, bytes));
    unlink(path);
    return ok;
}

static void must_refuse(struct hyp_attack *attack, struct seal_stage *s, const char *packed,
                        size_t bytes, char *plain, const char *what, size_t at) {
    const tol_status status = tol_seal_unpack(s->key, packed, bytes, plain, s->plain_bytes);
    HYP_CHECK(attack, status == TOL_MISMATCH || status == TOL_INVALID_FILE,
              "a packed object with %s at byte %zu: %s", what, at, tol_status_name(status));
}

HYP_ATTACK(s1, packed_objects_are_what_was_packed) {
    const unsigned changes = attack->session.full ? 2000 : 300;
    struct seal_stage stage;
    void *packed = NULL;
    char *plain = NULL;
    size_t bytes = 0;
    if (seal_stage_begin(attack, &stage) &&
        HYP_OK(attack,
               tol_seal_pack(stage.key, stage.shape, "staged", stage.plain, &packed, &bytes)) &&
        pass_through_file(attack, &packed, &bytes)) {
        plain = malloc(stage.plain_bytes);
        char *in = packed;
        if (HYP_CHECK(attack, plain != NULL, "no host memory") &&
            HYP_OK(attack, tol_seal_unpack(stage.key, in, bytes, plain, stage.plain_bytes))) {
            HYP_CHECK(attack, memcmp(plain, stage.plain, stage.plain_bytes) == 0,
                      "a packed object is opened to other bytes");
            for (unsigned i = 0; i < changes; i++) {
                /* Half of the changes are in the manifest. */
                const size_t at = (size_t)hyp_random_below(attack, i % 2 ? bytes : 300);
                const char bit = (char)(1 << hyp_random_below(attack, 8));
                in[at] ^= bit;
                must_refuse(attack, &stage, in, bytes, plain, "a changed bit", at);
                in[at] ^= bit;
                if (i % 10 == 0) must_refuse(attack, &stage, in, at, plain, "its end", at);
            }
        }
    }
    free(plain);
    free(packed);
    seal_stage_end(&stage);
}
