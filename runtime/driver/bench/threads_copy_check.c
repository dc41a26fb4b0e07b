/*
 * A part of threads-check: threads that share a transfer whose helpers spin and sleep, by each way
 * to share the work of copies to the host.
 */
#include "threads_pool_check.h"

#include "tollens/memory.h"
#include "tollens/transfer.h"
#include "transfer/transfer_state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPIERS = 3, TURNS = 12, BYTES = 1500000 };

struct copying {
    struct tol_context *context;
    struct tol_transfer *transfer;
};

/* Argument: what they share. NULL: all was as it should be. */
static void *copy(void *user) {
    static _Atomic(unsigned) numbers;
    const struct copying *all = user;
    const unsigned number = numbers++;
    struct tol_buffer *buffer = NULL;
    unsigned char *data = malloc(BYTES), *back = malloc(BYTES);
    bool ok = data != NULL && back != NULL &&
              tol_buffer_create(all->context, BYTES, 1, &buffer) == TOL_OK;
    for (unsigned turn = 0; turn < TURNS && ok; turn++) {
        const size_t bytes = BYTES >> turn % 5;
        memset(data, (int)(number * TURNS + turn), bytes);
        memset(back, 0, bytes);
        ok = tol_transfer_write(all->transfer, tol_place_of_buffer(buffer), 0, data, bytes) ==
                 TOL_OK &&
             tol_transfer_read(all->transfer, tol_place_of_buffer(buffer), 0, back, bytes) ==
                 TOL_OK &&
             memcmp(data, back, bytes) == 0;
        if (turn % 3 == 0) usleep(500); /* the helpers fall asleep */
    }
    tol_buffer_destroy(buffer);
    free(data);
    free(back);
    return ok ? NULL : user;
}

/* Small parts and few bytes to a helper, so that several take part. */
static void design(struct tol_transfer *transfer, unsigned number) {
    struct tol_read_design *reads = &transfer->reads;
    reads->queues_first = number & 1;
    reads->leads_only = number >> 1 & 1;
    reads->shares_asking = number >> 2 & 1;
    if (number == 0) return;
    reads->part_bytes = (size_t)16 << 10;
    reads->piece_bytes = (size_t)64 << 10;
    reads->helper_bytes = (size_t)64 << 10;
}

static int check_design(struct tol_driver *driver, unsigned number) {
    struct copying all = {.context = NULL};
    struct tol_transfer_options options;
    struct tol_read_notes notes = {0};
    pthread_t threads[COPIERS];
    int code = 0;
    tol_transfer_default(&options);
    options.block_bytes = (size_t)256 << 10;
    options.streamed_bytes = (size_t)200 << 10;
    options.threads = 4;
    if (tol_context_create(driver, 0, &all.context) != TOL_OK ||
        tol_transfer_create(all.context, &options, &all.transfer) != TOL_OK) {
        fprintf(stderr, "threads-check: %s\n", tol_message());
        return 2;
    }
    design(all.transfer, number);
    all.transfer->notes = &notes;
    for (int i = 0; i < COPIERS; i++) {
        if (pthread_create(&threads[i], NULL, copy, &all) != 0) return 2;
    }
    for (int i = 0; i < COPIERS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        if (failed != NULL) code = 1;
    }
    if (notes.copies != COPIERS * TURNS) code = 1;
    if (code != 0) {
        fprintf(stderr, "threads-check: by design %u a copy failed, or its bytes are others\n",
                number);
    }
    tol_transfer_destroy(all.transfer);
    tol_context_destroy(all.context);
    return code;
}

int check_copies(struct tol_driver *driver) {
    int code = 0;
    for (unsigned number = 0; number < 8 && code == 0; number++) {
        code = check_design(driver, number);
    }
    return code;
}
