/*
 * Divides a model's shape among devices.
 */
#include "share.h"

#include "core/check.h"

/* Columns are exchanged in lines of 8 bytes, of floats and of halves; rows of a tied output matrix
 * begin where rows of any format are aligned. */
enum { COLUMNS = 4, TOKENS = 16 };

static size_t share_smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

tol_status loaded_share(const struct tol_model_shape *s, unsigned rank, unsigned ranks,
                        struct loaded_share *share) {
    tol_status status = TOL_OK;
    TOL_CHECK(s->heads % ranks == 0, TOL_UNSUPPORTED,
              "%zu heads cannot be shared equally by %u devices", s->heads, ranks);
    TOL_CHECK(s->kv_heads % ranks == 0 || ranks % s->kv_heads == 0, TOL_UNSUPPORTED,
              "%zu heads of keys can neither be shared equally by %u devices nor repeated on them",
              s->kv_heads, ranks);
    TOL_CHECK(ranks == 1 ||
                  (s->width % (COLUMNS * ranks) == 0 && s->feed_forward % (COLUMNS * ranks) == 0),
              TOL_UNSUPPORTED,
              "rows of %zu and %zu elements cannot be shared by %u devices in multiples of %d",
              s->width, s->feed_forward, ranks, COLUMNS);
    const size_t each = ranks == 1
                            ? s->vocabulary
                            : ((s->vocabulary + ranks - 1) / ranks + TOKENS - 1) / TOKENS * TOKENS;
    const size_t first = share_smaller(rank * each, s->vocabulary);
    *share = (struct loaded_share){.rank = rank,
                                   .ranks = ranks,
                                   .heads = s->heads / ranks,
                                   .kv_heads = s->kv_heads >= ranks ? s->kv_heads / ranks : 1,
                                   .first_kv_head = rank * s->kv_heads / ranks,
                                   .feed_forward = s->feed_forward / ranks,
                                   .width = s->width / ranks,
                                   .first_token = first,
                                   .vocabulary = share_smaller(each, s->vocabulary - first),
                                   .vocabulary_most = each};
out:
    return status;
}

struct kn_paged_heads loaded_heads(const struct tol_loaded *l) {
    return (struct kn_paged_heads){l->share.heads, l->share.kv_heads, l->shape.head_size, l->cache};
}
