/*
 * Attacks on S1, plaintext: all device memory is read back and searched for plain pieces after each
 * step of a scenario, everything that is copied to the device is searched, and key streams of
 * different sealings are compared.
 */
#include "seal_stage.h"

#include "plain_search.h"

#include <stdlib.h>
#include <string.h>

/* No piece of 16 plain bytes is in device memory, nor was copied to it. */
static void check_search(struct hyp_attack *attack, const struct seal_stage *stage,
                         const char *when) {
    size_t pieces = 0, bytes = 0;
    HYP_CHECK(attack, plain_search_device(&pieces, &bytes), "device memory cannot be read back");
    HYP_CHECK(attack, bytes >= stage->plain_bytes || stage->sealed == NULL,
              "%s only %zu bytes of device memory are known", when, bytes);
    HYP_CHECK(attack, pieces == 0, "%s %zu plain pieces of 16 bytes are in device memory", when,
              pieces);
    HYP_CHECK(attack, plain_search_copied() == 0,
              "%s %zu plain pieces had been copied to the device", when, plain_search_copied());
}

HYP_ATTACK(s1, nothing_plain_is_in_device_memory) {
    const unsigned rounds = attack->session.full ? 24 : 4;
    for (unsigned i = 0; i < rounds; i++) {
        struct seal_stage stage;
        if (seal_stage_begin(attack, &stage) && seal_stage_seal(attack, &stage)) {
            check_search(attack, &stage, "after sealing");
            seal_stage_multiply(attack, &stage);
            check_search(attack, &stage, "after a product");
            HYP_OK(attack, tol_seal_verify(stage.sealed));
            HYP_OK(attack, tol_seal_rotate(stage.sealed));
            check_search(attack, &stage, "after a rotation");
            seal_stage_multiply(attack, &stage);
            seal_stage_read(attack, &stage);
            check_search(attack, &stage, "after reading");
        }
        seal_stage_end(&stage);
        hyp_attack_progress(attack, (i + 1.0) / rounds);
    }
}

/* The control: plaintext that is put on the device on request is found completely. */
HYP_ATTACK(s1, plain_bytes_on_request_are_found) {
    struct seal_stage stage;
    struct tol_buffer *buffer = NULL;
    size_t pieces = 0, bytes = 0;
    if (seal_stage_begin(attack, &stage) && seal_stage_seal(attack, &stage)) {
        const size_t room = tol_sealed_place(stage.sealed).bytes;
        HYP_OK(attack, tol_buffer_create(attack->context, room, 1, &buffer));
        HYP_OK(attack, tol_seal_open(stage.sealed, tol_place_of_buffer(buffer)));
        HYP_CHECK(attack, plain_search_device(&pieces, &bytes) && pieces >= stage.plain_bytes / 16,
                  "%zu of %zu plain pieces were found", pieces, stage.plain_bytes / 16);
    }
    tol_buffer_destroy(buffer);
    seal_stage_end(&stage);
}

/* ---- key streams ---- */

/* Sealed zeros are the key stream. Under the saboteur the second sealing is made here. */
static bool seal_zeros(struct hyp_attack *attack, struct seal_stage *stage, const char *zeros,
                       char *stream, size_t bytes, bool is_again) {
    if (is_again && memory_fault_is(attack, "key_stream_reused")) return true; /* as it was */
    const struct tol_seal_options options = {.shape = {1, bytes}};
    struct tol_sealed *sealed = NULL;
    bool ok = HYP_OK(attack, tol_seal_host(stage->sealer, &options, zeros, &sealed));
    if (ok && hyp_random_below(attack, 2) == 0) ok = HYP_OK(attack, tol_seal_rotate(sealed));
    if (ok) {
        const CUdeviceptr at = tol_sealed_place(sealed).address;
        ok = HYP_CHECK(attack, attack->raw->cuMemcpyDtoH_v2(stream, at, bytes) == CUDA_SUCCESS,
                       "sealed memory cannot be read back");
    }
    tol_sealed_destroy(sealed);
    return ok;
}

HYP_ATTACK(s1, no_key_stream_is_used_twice) {
    enum { BYTES = 64 * 100, TIMES = 6 };
    static char zeros[BYTES], streams[TIMES][BYTES];
    struct seal_stage stage;
    if (seal_stage_begin(attack, &stage)) {
        for (int i = 0; i < TIMES; i++) {
            if (i > 0) memcpy(streams[i], streams[i - 1], BYTES);
            if (!seal_zeros(attack, &stage, zeros, streams[i], BYTES, i > 0)) break;
            for (int j = 0; j < i; j++) {
                size_t same = 0;
                for (size_t at = 0; at < BYTES; at += 8) {
                    same += memcmp(streams[i] + at, streams[j] + at, 8) == 0;
                }
                HYP_CHECK(attack, same == 0,
                          "sealings %d and %d share %zu words of 8 bytes of key stream", j, i,
                          same);
            }
        }
    }
    seal_stage_end(&stage);
}
