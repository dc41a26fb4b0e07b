/*
 * Files of packed objects. A file is either complete or absent: it has a temporary name until its
 * bytes are on the disk.
 */
#include "seal.h"

#include "core/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool seal_file_write_all(int file, const char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t done = write(file, bytes, count);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        count -= (size_t)done;
    }
    return true;
}

static bool seal_file_read_all(int file, char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t done = read(file, bytes, count);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        count -= (size_t)done;
    }
    return true;
}

tol_status tol_seal_write_file(const char *path, const void *packed, size_t packed_bytes) {
    tol_status status = TOL_OK;
    char other[4200];
    int file = -1;
    other[0] = '\0';
    TOL_CHECK(path != NULL && packed != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_write_file: an argument is NULL");
    const int length = snprintf(other, sizeof other, "%s.XXXXXX", path);
    TOL_CHECK(length > 0 && (size_t)length < sizeof other, TOL_INVALID_ARGUMENT,
              "a path of %zu bytes is too long", strlen(path));
    file = mkstemp(other);
    TOL_CHECK(file >= 0, TOL_UNREADABLE, "%s cannot be written: %s", path, strerror(errno));
    TOL_CHECK(seal_file_write_all(file, packed, packed_bytes) && fsync(file) == 0 &&
                  rename(other, path) == 0,
              TOL_UNREADABLE, "%s cannot be written: %s", path, strerror(errno));
    other[0] = '\0';
out:
    if (file >= 0) close(file);
    if (file >= 0 && other[0] != '\0') unlink(other);
    return status;
}

tol_status tol_seal_read_file(const char *path, void **packed, size_t *packed_bytes) {
    tol_status status = TOL_OK;
    struct stat about;
    char *bytes = NULL;
    int file = -1;
    TOL_CHECK(path != NULL && packed != NULL && packed_bytes != NULL, TOL_INVALID_ARGUMENT,
              "tol_seal_read_file: an argument is NULL");
    file = open(path, O_RDONLY | O_CLOEXEC);
    TOL_CHECK(file >= 0 && fstat(file, &about) == 0, TOL_UNREADABLE, "%s cannot be read: %s", path,
              strerror(errno));
    TOL_CHECK(S_ISREG(about.st_mode), TOL_UNREADABLE, "%s is no file", path);
    bytes = malloc((size_t)about.st_size + 1);
    TOL_CHECK(bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for the %llu bytes of %s",
              (unsigned long long)about.st_size, path);
    errno = EIO;
    TOL_CHECK(seal_file_read_all(file, bytes, (size_t)about.st_size), TOL_UNREADABLE,
              "%s cannot be read: %s", path, strerror(errno));
    *packed = bytes;
    *packed_bytes = (size_t)about.st_size;
    bytes = NULL;
out:
    if (file >= 0) close(file);
    free(bytes);
    return status;
}
