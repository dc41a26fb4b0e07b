/*
 * Messages between an attack and the other process (peer_process.c): one order, one answer, each
 * with at most one file descriptor, over a pair of sockets. The other process has it as descriptor
 * PEER_SOCKET.
 */
#ifndef HYP_PEER_MESSAGE_H
#define HYP_PEER_MESSAGE_H

#include "peer_driver.h"

#include <stdbool.h>
#include <stdint.h>

enum { PEER_SOCKET = 3, PEER_TEXT_BYTES = 200 };

enum peer_order_kind {
    PEER_OPEN,        /* open memory by its handle, compare, and overwrite it if requested */
    PEER_OPEN_TWICE,  /* the same, but it is opened twice, and compared after the first close */
    PEER_HOLD,        /* open memory, compare, and keep it open until PEER_READ_HELD */
    PEER_READ_HELD,   /* compare what is held, and close it */
    PEER_WAIT,        /* open memory and an event, and copy after the event */
    PEER_EXPORT,      /* allocate, write the pattern, and answer with a handle */
    PEER_EXPORT_FD,   /* the same with a file descriptor of mapped memory */
    PEER_IMPORT_FD,   /* map memory of a file descriptor, compare, overwrite if requested */
    PEER_IMPORT_POOL, /* a pool by its file descriptor, and a block in it by its data */
    PEER_DENIED_LOAD, /* a kernel loads from a device whose access was disabled again */
    PEER_END
};

struct peer_order {
    enum peer_order_kind kind;
    bool overwrites;      /* with the pattern of the seed after this one */
    bool is_read_only;    /* map as read-only; overwriting must then fail */
    bool forgets_to_wait; /* the fault peer_wait_missing */
    bool ignores_rights;  /* the fault peer_read_only_ignored */
    bool has_kernel;      /* overwrite by a kernel, otherwise by a copy */
    int other_device;     /* of PEER_DENIED_LOAD */
    uint64_t seed, bytes;
    uint64_t offset; /* of the bytes in the memory */
    uint64_t whole;  /* size of the memory of a file descriptor */
    struct peer_handle memory, event;
};

struct peer_answer {
    int result;                 /* CUresult of the first call that failed */
    int write_result;           /* of overwriting with is_read_only, or of the denied load */
    bool is_unsupported;        /* the driver does not support the order */
    bool is_same;               /* the bytes were the pattern's */
    char text[PEER_TEXT_BYTES]; /* what failed */
    struct peer_handle memory;
};

/* Sends `bytes` bytes and, unless it is -1, a file descriptor. */
bool peer_send(int socket, const void *message, size_t bytes, int file);

/* Receives exactly `bytes` bytes, and a file descriptor or -1, within this many seconds. */
bool peer_receive(int socket, void *message, size_t bytes, int *file, int seconds);

#endif
