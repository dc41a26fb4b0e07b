/*
 * Shared bytes: memory that other processes can map, and its name for them.
 *
 * The bytes are an unnamed file in memory, which exists while a process has it open. The page after
 * them describes them. A process opens another's file through /proc, by process id and file
 * descriptor; the inode shows whether it is still the same file. So both must see the same
 * processes, and the sharing process must still run when the other opens the file.
 *
 * Writes of other processes are not tracked: shared memory has no shadow.
 */
#ifndef SOFT_SHARED_BYTES_H
#define SOFT_SHARED_BYTES_H

#include "space.h"

/* What shared bytes are. */
enum soft_shared_kind {
    SOFT_SHARED_MEMORY = 1, /* of cuMemAlloc or of a pool */
    SOFT_SHARED_PHYSICAL,   /* of cuMemCreate */
    SOFT_SHARED_EVENT,
    SOFT_SHARED_POOL /* a pool itself, without bytes */
};

enum { SOFT_SHARED_NOTE_BYTES = 256 };

/* The page after the bytes. */
struct soft_shared_note {
    char magic[8];
    uint32_t kind; /* enum soft_shared_kind */
    int32_t device;
    uint64_t bytes;
    unsigned char more[SOFT_SHARED_NOTE_BYTES]; /* what the kind says of itself */
};

/* A file of another process: fits the handles of CUDA, which have 64 bytes. */
struct soft_shared_name {
    char magic[8];
    int32_t process, file;
    uint64_t inode, bytes;
    uint32_t kind;
    int32_t device;
    unsigned char rest[24];
};

/* Bytes that can be shared, all zero, with one reference; the note's magic and bytes are filled in.
 * NULL: the host is out of memory. */
struct soft_backing *soft_shared_new(uint64_t bytes, struct soft_shared_note *note);

/* Maps the bytes of a file, which remains the caller's, and returns its note. NULL: it is no such
 * file of this kind, or the host is out of memory. */
struct soft_backing *soft_shared_map(int file, enum soft_shared_kind kind,
                                     struct soft_shared_note *note);

/* The name of shared bytes. */
struct soft_shared_name soft_shared_name(const struct soft_backing *backing,
                                         enum soft_shared_kind kind, int device);

/* Opens the file of a name, for the caller to close; or -1. is_own: it is this process's own
 * file. */
int soft_shared_open(const struct soft_shared_name *name, enum soft_shared_kind kind, bool *is_own);

/* Lets the host access the range of reserved addresses of a shared mapping: to read, to read and
 * write, or (neither) to fault again. false: the host is out of memory. */
bool soft_shared_show(const struct soft_backing *backing, uint64_t address, uint64_t bytes,
                      bool reads, bool writes);

/* Makes the bytes of the live allocation around an address shared, if they are not; the caller
 * ensures that nothing uses them meanwhile. Takes a reference to the backing. NULL: there is none
 * of these kinds (bits of 1 << kind), or the host is out of memory. */
struct soft_backing *soft_space_share(uint64_t address, unsigned kinds,
                                      struct soft_allocation *allocation);

#endif
