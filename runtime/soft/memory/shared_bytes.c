/*
 * Makes, names and opens files in memory.
 */
#include "shared_bytes.h"

#include "space_list.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };
static const char magic[8] = {'T', 'O', 'L', 'S', 'H', 'A', 'R', '1'};

_Static_assert(sizeof(struct soft_shared_name) == 64, "a handle of CUDA has 64 bytes");
_Static_assert(sizeof(struct soft_shared_note) <= PAGE_BYTES, "the note is one page");

/* Where the note begins: after the bytes and the margin that vector code may read. */
static uint64_t note_at(uint64_t bytes) {
    return (bytes + SOFT_BYTES_SLACK + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Takes over the file. */
static struct soft_backing *map_file(int file, uint64_t bytes) {
    struct soft_backing *backing = calloc(1, sizeof *backing);
    void *host = MAP_FAILED;
    if (backing != NULL) {
        host = mmap(NULL, (size_t)note_at(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (host == MAP_FAILED) {
        free(backing);
        close(file);
        return NULL;
    }
    atomic_init(&backing->references, 1);
    backing->bytes = bytes;
    backing->host = host;
    backing->is_shared = true;
    backing->file = file;
    return backing;
}

void soft_shared_release(struct soft_backing *backing) {
    munmap(backing->host, (size_t)note_at(backing->bytes));
    close(backing->file);
}

struct soft_backing *soft_shared_new(uint64_t bytes, struct soft_shared_note *note) {
    if (bytes > INT64_MAX / 2) return NULL;
    int file = memfd_create("tollens-soft", MFD_CLOEXEC);
    if (file < 0) return NULL;
    uint64_t end = note_at(bytes);
    memcpy(note->magic, magic, sizeof magic);
    note->bytes = bytes;
    if (ftruncate(file, (off_t)(end + PAGE_BYTES)) != 0 ||
        pwrite(file, note, sizeof *note, (off_t)end) != (ssize_t)sizeof *note) {
        close(file);
        return NULL;
    }
    return map_file(file, bytes);
}

/* Not fstat, which glibc before 2.33 does not export: the library must run there. */
static bool shared_bytes_look_at(int file, struct statx *status) {
    return statx(file, "", AT_EMPTY_PATH, STATX_SIZE | STATX_INO, status) == 0;
}

/* The note of a file; false: it has none. */
static bool shared_bytes_read_note(int file, struct soft_shared_note *note) {
    struct statx status;
    if (!shared_bytes_look_at(file, &status) || status.stx_size < 2 * PAGE_BYTES) return false;
    off_t at = (off_t)status.stx_size - PAGE_BYTES;
    return pread(file, note, sizeof *note, at) == (ssize_t)sizeof *note &&
           memcmp(note->magic, magic, sizeof magic) == 0 && note->bytes < (uint64_t)at &&
           note_at(note->bytes) == (uint64_t)at;
}

struct soft_backing *soft_shared_map(int file, enum soft_shared_kind kind,
                                     struct soft_shared_note *note) {
    if (!shared_bytes_read_note(file, note) || note->kind != (uint32_t)kind) return NULL;
    int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    return own >= 0 ? map_file(own, note->bytes) : NULL;
}

bool soft_shared_show(const struct soft_backing *backing, uint64_t address, uint64_t bytes,
                      bool reads, bool writes) {
    void *at = (void *)(uintptr_t)address;
    int protection = writes ? PROT_READ | PROT_WRITE : PROT_READ;
    void *shown =
        reads || writes
            ? mmap(at, (size_t)bytes, protection, MAP_SHARED | MAP_FIXED, backing->file, 0)
            : mmap(at, (size_t)bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return shown == at;
}

static uint64_t inode_of(int file) {
    struct statx status;
    return shared_bytes_look_at(file, &status) ? status.stx_ino : 0;
}

struct soft_shared_name soft_shared_name(const struct soft_backing *backing,
                                         enum soft_shared_kind kind, int device) {
    struct soft_shared_name name = {.process = (int32_t)getpid(),
                                    .file = backing->file,
                                    .inode = inode_of(backing->file),
                                    .bytes = backing->bytes,
                                    .kind = (uint32_t)kind,
                                    .device = device};
    memcpy(name.magic, magic, sizeof magic);
    return name;
}

int soft_shared_open(const struct soft_shared_name *name, enum soft_shared_kind kind,
                     bool *is_own) {
    char path[64];
    struct soft_shared_note note;
    if (memcmp(name->magic, magic, sizeof magic) != 0 || name->kind != (uint32_t)kind) return -1;
    *is_own = name->process == (int32_t)getpid();
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name->process, name->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return -1;
    /* The descriptor may belong to another file by now. */
    if (inode_of(file) == name->inode && shared_bytes_read_note(file, &note) &&
        note.kind == (uint32_t)kind && note.bytes == name->bytes) {
        return file;
    }
    close(file);
    return -1;
}

struct soft_backing *soft_space_share(uint64_t address, unsigned kinds,
                                      struct soft_allocation *allocation) {
    struct soft_backing *backing = NULL;
    struct soft_allocation *old = calloc(1, sizeof *old);
    pthread_rwlock_wrlock(&soft_space.lock);
    struct soft_allocation *found = soft_space_around(address, 1);
    if (old != NULL && found != NULL && (kinds >> found->kind & 1) != 0) {
        if (found->backing == NULL) {
            struct soft_shared_note note = {.kind = SOFT_SHARED_MEMORY, .device = found->device};
            found->backing = soft_shared_new(found->bytes, &note);
            if (found->backing != NULL) {
                memcpy(found->backing->host, found->host, (size_t)found->bytes);
                /* A kernel may still use the old bytes: they are freed when none can. */
                *old = *found;
                old->backing = NULL;
                found->host = found->backing->host;
                found->shadow = NULL;
                atomic_fetch_add(&soft_space.generation, 1);
                soft_space_retire(old);
                old = NULL;
            }
        }
        backing = found->backing != NULL && found->backing->is_shared ? found->backing : NULL;
        if (backing != NULL) atomic_fetch_add(&backing->references, 1);
        *allocation = *found;
    }
    pthread_rwlock_unlock(&soft_space.lock);
    free(old);
    return backing;
}
