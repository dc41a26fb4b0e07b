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
#include <unistd.h>
#include <zlib.h>

enum { MANIFEST_BYTES_MAX = 16 << 20 };

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

static void manifest_crc_text(const char *data, size_t bytes, char text[9]) {
    snprintf(text, 9, "%08lx",
             crc32_z(crc32(0, NULL, 0), (const unsigned char *)data, bytes) & 0xffffffff);
}

/* The CRC of the list by run.json; "" if it says none. */
static void manifest_crc_of_list(const char *folder, char crc[9]) {
    char path[1100];
    snprintf(path, sizeof path, "%.1000s/run.json", folder);
    json_t *run = json_load_file(path, 0, NULL);
    const char *text = json_string_value(json_object_get(run, "list_crc32"));
    snprintf(crc, 9, "%s", text != NULL ? text : "");
    json_decref(run);
}

bool hyp_manifest_holds(const char *folder, const char *name, const char *data, size_t bytes) {
    char path[1100], crc[9], listed_by_run[9];
    snprintf(path, sizeof path, "%.1000s/manifest.json", folder);
    manifest_crc_of_list(folder, listed_by_run);
    size_t length = 0;
    if (access(path, F_OK) != 0) {
        return listed_by_run[0] == '\0' ||
               hyp_fail("%s is missing, though the run wrote it", path);
    }
    char *text = hyp_file_read(path, MANIFEST_BYTES_MAX, &length);
    if (text == NULL) return false;
    manifest_crc_text(text, length, crc);
    json_t *list = json_loadb(text, length, 0, NULL);
    free(text);
    const json_t *entry = json_object_get(json_object_get(list, "files"), name);
    const char *recorded = json_string_value(json_object_get(entry, "crc32"));
    bool ok = listed_by_run[0] == '\0' || strcmp(listed_by_run, crc) == 0 ||
              hyp_fail("%s has changed since the run", path);
    if (ok && recorded == NULL) ok = hyp_fail("%s does not list %s", path, name);
    if (ok) {
        manifest_crc_text(data, bytes, crc);
        ok = (strcmp(recorded, crc) == 0 &&
              json_integer_value(json_object_get(entry, "bytes")) == (json_int_t)bytes) ||
             hyp_fail("%s/%s has changed since the run: the manifest has another checksum", folder,
                      name);
    }
    json_decref(list);
    return ok;
}
