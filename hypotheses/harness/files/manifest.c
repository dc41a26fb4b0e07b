/*
 * The list of files.
 */
#include "manifest.h"

#include "atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static bool add_file(json_t *files, const char *path, const char *name) {
    unsigned char part[16384];
    unsigned long crc = crc32(0, NULL, 0);
    json_int_t bytes = 0;
    size_t count = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return hyp_fail("%s cannot be read: %s", path, strerror(errno));
    while ((count = fread(part, 1, sizeof part, file)) > 0) {
        crc = crc32(crc, part, (unsigned)count);
        bytes += (json_int_t)count;
    }
    bool broken = ferror(file) != 0;
    fclose(file);
    if (broken) return hyp_fail("%s cannot be read to its end", path);
    char text[16];
    snprintf(text, sizeof text, "%08lx", crc);
    json_object_set_new(files, name, json_pack("{s:I, s:s}", "bytes", bytes, "crc32", text));
    return true;
}

static bool manifest_add(json_t *files, const char *folder, const char *name);

static bool add_folder(json_t *files, const char *folder, const char *path, const char *name) {
    char inner[1024];
    DIR *list = opendir(path);
    if (list == NULL) return hyp_fail("%s cannot be read: %s", path, strerror(errno));
    bool ok = true;
    for (struct dirent *entry; ok && (entry = readdir(list)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        int length = snprintf(inner, sizeof inner, "%s/%s", name, entry->d_name);
        ok = (size_t)length < sizeof inner ? manifest_add(files, folder, inner)
                                           : hyp_fail("the path %s/%s is too long", path, name);
    }
    closedir(list);
    return ok;
}

static bool manifest_add(json_t *files, const char *folder, const char *name) {
    char path[2048];
    struct stat status;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        return hyp_fail("the path %s/%s is too long", folder, name);
    }
    if (stat(path, &status) != 0) {
        return errno == ENOENT || hyp_fail("%s cannot be read: %s", path, strerror(errno));
    }
    if (S_ISDIR(status.st_mode)) return add_folder(files, folder, path, name);
    return !S_ISREG(status.st_mode) || add_file(files, path, name);
}

bool hyp_manifest_write(const char *folder, const char *const *names, size_t count, char crc[9]) {
    char path[1100];
    json_t *files = json_object();
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) ok = manifest_add(files, folder, names[i]);
    json_t *object = json_pack("{s:i, s:o}", "schema", 1, "files", files);
    char *text = ok ? json_dumps(object, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
    json_decref(object);
    if (!ok) return false;
    if (text == NULL) return hyp_fail("out of memory for the list of files");
    snprintf(path, sizeof path, "%.1000s/manifest.json", folder);
    ok = hyp_file_write(path, text);
    snprintf(crc, 9, "%08x",
             (unsigned)crc32(0, (const unsigned char *)text, (unsigned)strlen(text)));
    free(text);
    return ok;
}
