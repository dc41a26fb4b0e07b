/*
 * Reads with pread, so threads share no file position.
 */
#include "positioned_file.h"

#include "core/check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tol_status tol_file_open(const char *path, struct tol_file *file) {
    tol_status status = TOL_OK;
    struct stat found;
    /* Without O_NONBLOCK a named pipe would wait for a writer. */
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    TOL_CHECK(file->descriptor >= 0, TOL_UNREADABLE, "%s cannot be opened: %s", path,
              strerror(errno));
    TOL_CHECK(fstat(file->descriptor, &found) == 0, TOL_UNREADABLE, "%s has no size: %s", path,
              strerror(errno));
    TOL_CHECK(S_ISREG(found.st_mode), TOL_UNREADABLE, "%s is not a regular file", path);
    file->bytes = (uint64_t)found.st_size;
out:
    if (status != TOL_OK) tol_file_close(file);
    return status;
}

void tol_file_close(struct tol_file *file) {
    if (file->descriptor >= 0) close(file->descriptor);
    file->descriptor = -1;
}

tol_status tol_file_read(const struct tol_file *file, uint64_t offset, void *to, size_t bytes,
                         size_t *got) {
    tol_status status = TOL_OK;
    size_t done = 0;
    while (done < bytes) {
        ssize_t part =
            pread(file->descriptor, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (part < 0 && errno == EINTR) continue;
        TOL_CHECK(part >= 0, TOL_UNREADABLE, "%zu bytes at byte %llu cannot be read: %s",
                  bytes - done, (unsigned long long)(offset + done), strerror(errno));
        if (part == 0) break;
        done += (size_t)part;
    }
    *got = done;
out:
    return status;
}
