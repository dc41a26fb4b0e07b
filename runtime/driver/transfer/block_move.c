/*
 * Moves blocks from one pool to another: allocates there, copies, and frees here.
 */
#include "core/check.h"
#include "core/nvtx.h"
#include "transfer_state.h"

#include <stdio.h>

/* The block stays where it was: the new one is freed, and the first failure is returned. */
static void block_move_undo(struct tol_pool *there, struct tol_block made, tol_status status) {
    char message[TOL_MESSAGE_BYTES];
    const int result = tol_message_cuda();
    if (made.name == 0) return;
    snprintf(message, sizeof message, "%s", tol_message());
    (void)tol_pool_free(there, made, NULL);
    (void)tol_fail_again(status, result, message);
}

tol_status tol_transfer_move(struct tol_transfer *to, struct tol_pool *there, unsigned tag,
                             struct tol_transfer *from, struct tol_pool *here,
                             struct tol_block *block) {
    TOL_RANGE("tol_transfer_move", 0);
    tol_status status = TOL_OK;
    struct tol_block made = {0};
    TOL_CHECK(to != NULL && there != NULL && from != NULL && here != NULL && block != NULL,
              TOL_INVALID_ARGUMENT, "tol_transfer_move: an argument is NULL");
    TOL_CHECK(tol_pool_context(there) == to->context && tol_pool_context(here) == from->context,
              TOL_WRONG_CONTEXT, "a pool and its transfer belong to different contexts");
    const struct tol_place place = tol_place_of_block(here, *block);
    TOL_CHECK(place.bytes > 0, TOL_INVALID_ARGUMENT, "block %#llx is not live in this pool",
              (unsigned long long)block->name);
    TOL_TRY(tol_pool_allocate_tagged(there, place.bytes, NULL, tag, &made));
    TOL_TRY(tol_transfer_peer(to, tol_place_of_block(there, made), 0, from, place, 0, place.bytes));
    TOL_TRY(tol_pool_free(here, *block, NULL));
    *block = made;
    return TOL_OK;
out:
    block_move_undo(there, made, status);
    return status;
}
