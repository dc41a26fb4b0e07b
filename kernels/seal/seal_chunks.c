/*
 * The checks of a pass over sealed memory, and its launch.
 */
#include "seal/seal_chunks.h"

#include "core/check.h"
#include "seal/chacha.h"

#include <assert.h>
#include <string.h>

KN_IMAGES(seal_1_chunks);

#define ROW(name_)                                                                                 \
    {                                                                                              \
        .name = name_, .entry = "seal_" name_, .images = kn_images_seal_1_chunks,                  \
        .compute_capability_min = 75, .threads = 32 * SEAL_WARPS                                   \
    }

/* By the ways above, and 20, 12 and 8 rounds. */
static const struct kn_variant rows[KN_SEAL_HOWS][3] = {
    {ROW("tags"), ROW("tags"), ROW("tags")},
    {ROW("close_20"), ROW("close_12"), ROW("close_8")},
    {ROW("open_20"), ROW("open_12"), ROW("open_8")},
    {ROW("turn_20"), ROW("turn_12"), ROW("turn_8")}};

size_t kn_seal_chunk_count(size_t bytes) {
    return bytes / SEAL_CHUNK_BYTES + (bytes % SEAL_CHUNK_BYTES != 0);
}

size_t kn_seal_tag_bytes(size_t bytes) {
    return kn_seal_chunk_count(bytes) * SEAL_TAG_BYTES;
}

static bool has_before(const struct kn_seal_chunks *p) {
    return p->how != KN_SEAL_CLOSE;
}

static bool has_after(const struct kn_seal_chunks *p) {
    return p->how == KN_SEAL_CLOSE || p->how == KN_SEAL_TURN;
}

static tol_status seal_chunks_check_place(const char *what, struct kn_place place, size_t bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(place.address != 0 && place.address % 16 == 0, TOL_INVALID_ARGUMENT,
              "seal chunks: %s at %#llx is NULL or not aligned to 16 bytes", what,
              (unsigned long long)place.address);
    TOL_CHECK(bytes <= place.bytes, TOL_OUT_OF_RANGE,
              "seal chunks: %s needs %zu bytes, and has %zu", what, bytes, place.bytes);
out:
    return status;
}

static tol_status seal_chunks_check_kind(const struct kn_seal_chunks *p) {
    tol_status status = TOL_OK;
    TOL_CHECK((unsigned)p->how < KN_SEAL_HOWS, TOL_INVALID_ARGUMENT,
              "seal chunks: there is no way %d", (int)p->how);
    TOL_CHECK(p->how == KN_SEAL_TAGS || kn_chacha_has(p->rounds), TOL_INVALID_ARGUMENT,
              "seal chunks: %u rounds; there are 20, 12 and 8", p->rounds);
    TOL_CHECK(p->bytes % SEAL_UNIT_BYTES == 0, TOL_INVALID_ARGUMENT,
              "seal chunks: %zu bytes are no whole units of %d", p->bytes, SEAL_UNIT_BYTES);
    const bool opens = p->how == KN_SEAL_OPEN || p->how == KN_SEAL_TURN;
    TOL_CHECK((!opens || p->from != NULL) && (!has_after(p) || p->to != NULL) &&
                  (!has_before(p) || p->before != NULL) && (!has_after(p) || p->after != NULL),
              TOL_INVALID_ARGUMENT, "seal chunks: a stream or a tagger is NULL");
    const uint64_t units_max = (uint64_t)UINT32_MAX + 1;
    TOL_CHECK(p->first_chunk <= units_max / SEAL_CHUNK_UNITS &&
                  p->bytes / SEAL_UNIT_BYTES <= units_max - p->first_chunk * SEAL_CHUNK_UNITS,
              TOL_OUT_OF_RANGE,
              "seal chunks: %zu bytes from chunk %llu on exceed the counter, which has 32 bits",
              p->bytes, (unsigned long long)p->first_chunk);
out:
    return status;
}

static tol_status seal_chunks_check_places(const struct kn_seal_chunks *p) {
    tol_status status = TOL_OK;
    const size_t tags = kn_seal_tag_bytes(p->bytes);
    const bool writes = p->how != KN_SEAL_TAGS;
    TOL_TRY(seal_chunks_check_place("in", p->in, p->bytes));
    if (writes) TOL_TRY(seal_chunks_check_place("out", p->out, p->bytes));
    if (has_before(p)) TOL_TRY(seal_chunks_check_place("tags_before", p->tags_before, tags));
    if (has_after(p)) TOL_TRY(seal_chunks_check_place("tags_after", p->tags_after, tags));
    const struct kn_place out = writes ? p->out : p->in;
    const size_t before = has_before(p) ? tags : 0, after = has_after(p) ? tags : 0;
    TOL_CHECK((out.address == p->in.address || !kn_place_overlap(p->in, p->bytes, out, p->bytes)) &&
                  !kn_place_overlap(p->in, p->bytes, p->tags_before, before) &&
                  !kn_place_overlap(p->in, p->bytes, p->tags_after, after) &&
                  !kn_place_overlap(out, p->bytes, p->tags_before, before) &&
                  !kn_place_overlap(out, p->bytes, p->tags_after, after) &&
                  !kn_place_overlap(p->tags_before, before, p->tags_after, after),
              TOL_INVALID_ARGUMENT, "seal chunks: places overlap");
out:
    return status;
}

tol_status kn_seal_chunks(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_seal_chunks *problem) {
    tol_status status = TOL_OK;
    const struct tol_kernel *kernel = NULL;
    struct seal_chunks_arguments arguments;
    memset(&arguments, 0, sizeof arguments);
    TOL_CHECK(kernels != NULL && stream != NULL && problem != NULL, TOL_INVALID_ARGUMENT,
              "seal chunks needs kernels, a stream and a problem");
    const struct kn_seal_chunks *p = problem;
    TOL_TRY(seal_chunks_check_kind(p));
    if (p->bytes == 0) return TOL_OK;
    TOL_TRY(seal_chunks_check_places(p));
    const int width = p->how == KN_SEAL_TAGS || p->rounds == 20 ? 0 : p->rounds == 12 ? 1 : 2;
    TOL_TRY(kn_kernels_find(kernels, &rows[p->how][width], &kernel));
    arguments.in = p->in.address;
    arguments.out = p->out.address;
    arguments.tags_before = p->tags_before.address;
    arguments.tags_after = p->tags_after.address;
    arguments.units = p->bytes / SEAL_UNIT_BYTES;
    arguments.first_chunk = p->first_chunk;
    arguments.first_unit = (uint32_t)(p->first_chunk * SEAL_CHUNK_UNITS);
    arguments.level = p->level;
    if (p->from != NULL) arguments.from = *p->from;
    if (p->to != NULL) arguments.to = *p->to;
    if (p->before != NULL) arguments.before = *p->before;
    if (p->after != NULL) arguments.after = *p->after;
    const uint64_t blocks = (kn_seal_chunk_count(p->bytes) + SEAL_WARPS - 1) / SEAL_WARPS;
    const unsigned bytes = sizeof arguments;
    void *value = &arguments;
    assert(blocks > 0 && arguments.units > 0);
    status =
        tol_launch(stream, kernel, tol_launch_linear(blocks * 32 * SEAL_WARPS, 32 * SEAL_WARPS),
                   (struct tol_arguments){1, &value, &bytes});
out:
    explicit_bzero(&arguments, sizeof arguments);
    return status;
}
