/*
 * Writing beside, flushing, renaming.
 */
#include "atomic_file.h"

#include "tollens/plain_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Thread_local char error[2048];

const char *hyp_error(void) {
    return error;
}

bool hyp_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, sizeof error, format, arguments);
    tol_plain_text(error);
    va_end(arguments);
    return false;
}

bool hyp_directory_make(const char *path) {
    char part[1024];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) return hyp_fail("'%s' is not a valid folder", path);
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != '\0') continue;
        char end = part[i];
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            return hyp_fail("the folder %s cannot be created: %s", part, strerror(errno));
        }
        part[i] = end;
    }
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return hyp_fail("%s exists and is not a folder", path);
    }
    return true;
}

bool hyp_directory_remove(const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) return errno == ENOENT || hyp_fail("%s: %s", path, strerror(errno));
    bool ok = true;
    for (struct dirent *entry; ok && (entry = readdir(folder)) != NULL;) {
        char inner[2048];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (lstat(inner, &info) == 0 && S_ISDIR(info.st_mode)) {
            ok = hyp_directory_remove(inner);
        } else if (unlink(inner) != 0) {
            ok = hyp_fail("%s cannot be removed: %s", inner, strerror(errno));
        }
    }
    closedir(folder);
    if (ok && rmdir(path) != 0) ok = hyp_fail("%s cannot be removed: %s", path, strerror(errno));
    return ok;
}

void hyp_directory_sweep(const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char inner[2048];
        size_t length = strlen(entry->d_name);
        if (entry->d_name[length - 1] != '~') continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        unlink(inner);
    }
    closedir(folder);
}

bool hyp_file_begin(struct hyp_file *file, const char *path) {
    if (strlen(path) >= sizeof file->path) return hyp_fail("the path %s is too long", path);
    snprintf(file->path, sizeof file->path, "%s", path);
    snprintf(file->temporary, sizeof file->temporary, "%s.%d~", path, (int)getpid());
    file->stream = fopen(file->temporary, "wb");
    if (file->stream == NULL) {
        return hyp_fail("%s cannot be written: %s", path, strerror(errno));
    }
    return true;
}

void hyp_file_drop(struct hyp_file *file) {
    fclose(file->stream);
    unlink(file->temporary);
}

bool hyp_file_keep(struct hyp_file *file) {
    bool ok =
        fflush(file->stream) == 0 && ferror(file->stream) == 0 && fsync(fileno(file->stream)) == 0;
    int reason = errno;
    ok = fclose(file->stream) == 0 && ok;
    if (ok && rename(file->temporary, file->path) == 0) return true;
    if (ok) reason = errno;
    unlink(file->temporary);
    return hyp_fail("%s cannot be written: %s", file->path, strerror(reason));
}

bool hyp_file_write(const char *path, const char *text) {
    struct hyp_file file = {.stream = NULL};
    if (!hyp_file_begin(&file, path)) return false;
    fputs(text, file.stream);
    return hyp_file_keep(&file);
}

char *hyp_file_read(const char *path, size_t bytes_max, size_t *bytes) {
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        hyp_fail("%s cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    size_t room = 65536, used = 0;
    char *text = malloc(room + 1);
    while (text != NULL) {
        used += fread(text + used, 1, room - used, stream);
        if (used < room || room >= bytes_max) break;
        room *= 2;
        char *more = realloc(text, room + 1);
        if (more == NULL) free(text);
        text = more;
    }
    bool failed = ferror(stream) != 0, more = fgetc(stream) != EOF;
    fclose(stream);
    if (text == NULL || failed || (more && used >= bytes_max)) {
        hyp_fail("%s cannot be read: %s", path,
                 text == NULL ? "out of memory"
                 : failed     ? strerror(errno)
                              : "it is too large");
        free(text);
        return NULL;
    }
    text[used] = '\0';
    if (bytes != NULL) *bytes = used;
    return text;
}
