/*
 * A part of threads-check: threads that share a transfer, whose helpers spin and sleep.
 */
#include "threads_pool_check.h"

#include "tollens/memory.h"
#include "tollens/transfer.h"

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
static void *copy_check_copy(void *user) {
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

int check_copies(struct tol_driver *driver) {
    struct copying all = {.context = NULL};
    struct tol_transfer_options options;
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
    for (int i = 0; i < COPIERS; i++) {
        if (pthread_create(&threads[i], NULL, copy_check_copy, &all) != 0) return 2;
    }
    for (int i = 0; i < COPIERS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        if (failed != NULL) code = 1;
    }
    if (code != 0) fprintf(stderr, "threads-check: a copy failed, or its bytes are wrong\n");
    tol_transfer_destroy(all.transfer);
    tol_context_destroy(all.context);
    return code;
}
