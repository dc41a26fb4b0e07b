/*
 * The stage. Peeks and pokes go past the hooks: the interposer's own table has the driver's.
 */
#include "seal_stage.h"

#include "plain_search.h"

#include <stdlib.h>
#include <string.h>

static struct tol_interpose_options saboteur;

static void seal_stage_before(struct tol_interpose_call *call, void *user) {
    if (saboteur.before != NULL) saboteur.before(call, user);
    plain_search_before(call, user);
}

static void seal_stage_after(struct tol_interpose_call *call, void *user) {
    plain_search_after(call, user);
    if (saboteur.after != NULL) saboteur.after(call, user);
}

/* A context whose calls go through the hooks, in place of the attack's. */
static bool seal_stage_stage_context(struct hyp_attack *attack) {
    const struct tol_interpose_options options = {.before = seal_stage_before,
                                                  .after = seal_stage_after};
    memset(&saboteur, 0, sizeof saboteur);
    memory_fault_hooks(attack, &saboteur);
    tol_context_destroy(attack->context);
    attack->context = NULL;
    tol_interpose_remove(attack->driver);
    return HYP_OK(attack, tol_interpose_install(attack->driver, &options)) &&
           HYP_OK(attack,
                  tol_context_create(attack->driver, attack->session.ordinal, &attack->context));
}

/* Blocks whose scales are small numbers and whose quants are anything: no product is infinite. */
static void draw_blocks(struct hyp_attack *attack, char *blocks, size_t count) {
    enum { BLOCK = 144 };
    for (size_t i = 0; i < count; i++) {
        char *block = blocks + i * BLOCK;
        for (size_t at = 0; at < BLOCK; at += 8) {
            const uint64_t bits = hyp_random(attack);
            memcpy(block + at, &bits, 8);
        }
        /* d and dmin, fp16 from 2^-8 to 2^-7. */
        block[1] = block[3] = 0x1c;
    }
}

static bool make_product(struct hyp_attack *attack, struct seal_stage *s) {
    const size_t k = s->shape.row_bytes / 144 * 256;
    float *x = malloc(k * sizeof *x);
    s->sums = calloc(s->shape.rows, sizeof *s->sums);
    bool ok = HYP_CHECK(attack, x != NULL && s->sums != NULL, "no host memory");
    for (size_t i = 0; ok && i < k; i++) x[i] = (float)hyp_random_below(attack, 2000) * 1e-3f - 1;
    ok = ok && HYP_OK(attack, tol_stream_create(attack->context, NULL, &s->stream)) &&
         HYP_OK(attack, tol_buffer_create(attack->context, k, sizeof *x, &s->x)) &&
         HYP_OK(attack, tol_buffer_create(attack->context, s->shape.rows, sizeof *x, &s->y)) &&
         HYP_OK(attack, tol_buffer_write(s->x, x, k * sizeof *x));
    free(x);
    return ok;
}

bool seal_stage_begin(struct hyp_attack *attack, struct seal_stage *s) {
    uint64_t secret[4];
    memset(s, 0, sizeof *s);
    memory_fault_on(NULL, 0);
    memory_fault_at((struct tol_place){0, 0});
    for (size_t i = 0; i < 4; i++) secret[i] = hyp_random(attack);
    const tol_status status = tol_seal_key_create(secret, sizeof secret, &s->key);
    if (status == TOL_UNSUPPORTED) {
        hyp_attack_not_tested(attack, "no_openssl", "%s", tol_message());
        return false;
    }
    const size_t blocks = 1 + (size_t)hyp_random_below(attack, 12);
    s->shape.row_bytes = 144 * blocks;
    /* At least three chunks, so that two can be swapped. */
    s->shape.rows = 3 * STAGE_CHUNK / s->shape.row_bytes + hyp_random_below(attack, 40);
    s->plain_bytes = s->shape.rows * s->shape.row_bytes;
    s->plain = malloc(s->plain_bytes);
    if (!HYP_CHECK(attack, status == TOL_OK && s->plain != NULL, "no key or no host memory: %s",
                   tol_message())) {
        return false;
    }
    draw_blocks(attack, s->plain, s->shape.rows * blocks);
    plain_search_begin(s->plain, s->plain_bytes);
    memory_fault_on(s->plain, s->plain_bytes);
    return seal_stage_stage_context(attack) && make_product(attack, s) &&
           HYP_OK(attack, tol_sealer_create(attack->context, s->key, &s->sealer));
}

void seal_stage_end(struct seal_stage *s) {
    memory_fault_on(NULL, 0);
    memory_fault_at((struct tol_place){0, 0});
    tol_sealed_destroy(s->sealed);
    tol_sealer_destroy(s->sealer);
    tol_seal_key_destroy(s->key);
    tol_buffer_destroy(s->x);
    tol_buffer_destroy(s->y);
    tol_stream_destroy(s->stream);
    plain_search_end();
    free(s->plain);
    free(s->sums);
}

bool seal_stage_seal(struct hyp_attack *attack, struct seal_stage *s) {
    static const unsigned rounds[] = {20, 12, 8};
    const struct tol_seal_options options = {
        .shape = s->shape, .rounds = rounds[hyp_random_below(attack, 3)], .label = "staged"};
    void *packed = NULL;
    size_t bytes = 0;
    bool ok = false;
    memory_fault_at((struct tol_place){0, 0});
    tol_sealed_destroy(s->sealed);
    s->sealed = NULL;
    if (hyp_random_below(attack, 2) == 0) {
        ok = HYP_OK(attack, tol_seal_host(s->sealer, &options, s->plain, &s->sealed));
    } else {
        ok = HYP_OK(attack, tol_seal_pack(s->key, s->shape, "staged", s->plain, &packed, &bytes)) &&
             HYP_OK(attack, tol_seal_packed(s->sealer, &options, packed, bytes, &s->sealed));
    }
    if (ok) memory_fault_at(tol_sealed_place(s->sealed));
    free(packed);
    return ok;
}

bool seal_stage_multiply(struct hyp_attack *attack, struct seal_stage *s) {
    const size_t bytes = s->shape.rows * sizeof *s->sums;
    float *sums = malloc(bytes);
    bool ok = HYP_CHECK(attack, sums != NULL, "no host memory") &&
              HYP_OK(attack, tol_seal_product(s->sealed, s->stream, tol_place_of_buffer(s->x),
                                              tol_place_of_buffer(s->y))) &&
              HYP_OK(attack, tol_stream_synchronize_for(s->stream, 60000)) &&
              HYP_OK(attack, tol_buffer_read(s->y, sums, bytes));
    if (ok && !s->has_sums) {
        memcpy(s->sums, sums, bytes);
        s->has_sums = true;
    }
    ok = ok && HYP_CHECK(attack, memcmp(s->sums, sums, bytes) == 0,
                         "a product of sealed weights has other bits than the first");
    free(sums);
    return ok;
}

static bool seal_stage_copied(struct hyp_attack *attack, CUresult result, const char *what) {
    return HYP_CHECK(attack, result == CUDA_SUCCESS, "%s sealed memory: error %d", what,
                     (int)result);
}

bool seal_stage_peek(struct hyp_attack *attack, struct seal_stage *s, size_t offset, void *bytes,
                     size_t count) {
    const CUdeviceptr at = tol_sealed_place(s->sealed).address + offset;
    return seal_stage_copied(attack, attack->raw->cuMemcpyDtoH_v2(bytes, at, count), "reading");
}

bool seal_stage_poke(struct hyp_attack *attack, struct seal_stage *s, size_t offset,
                     const void *bytes, size_t count) {
    const CUdeviceptr at = tol_sealed_place(s->sealed).address + offset;
    return seal_stage_copied(attack, memory_write(attack->raw, at, bytes, count), "writing");
}

bool seal_stage_read(struct hyp_attack *attack, struct seal_stage *s) {
    char *read = malloc(s->plain_bytes);
    const bool ok = HYP_CHECK(attack, read != NULL, "no host memory") &&
                    HYP_OK(attack, tol_seal_read(s->sealed, read, s->plain_bytes)) &&
                    HYP_CHECK(attack, memcmp(read, s->plain, s->plain_bytes) == 0,
                              "the bytes read differ from those that were sealed");
    free(read);
    return ok;
}
