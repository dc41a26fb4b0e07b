/*
 * Manifest: every file at any depth, with its size and checksum.
 */
#include "atomic_file.h"
#include "manifest.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static char folder[64];

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert(hyp_file_write(path, text), "%s", hyp_error());
}

static void begin(void) {
    char path[256];
    snprintf(folder, sizeof folder, "/tmp/tollens_manifest_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/H1/attacks", folder);
    cr_assert(hyp_directory_make(path), "%s", hyp_error());
    put("results.json", "123456789");
    put("H1/attacks/one.json", "");
    put("report.html", "not of the run");
}
static void end(void) {
    cr_assert(hyp_directory_remove(folder), "%s", hyp_error());
}
TestSuite(manifest, .init = begin, .fini = end);

static json_t *read_files(void) {
    char path[256];
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    json_t *object = json_load_file(path, 0, NULL);
    cr_assert(json_integer_value(json_object_get(object, "schema")) == 1);
    json_t *files = json_incref(json_object_get(object, "files"));
    json_decref(object);
    return files;
}

Test(manifest, lists_what_was_named_with_size_and_checksum) {
    char crc[9];
    const char *names[] = {"results.json", "H1", "H2"};
    cr_assert(hyp_manifest_write(folder, names, 3, crc), "%s", hyp_error());
    json_t *files = read_files();
    cr_assert(json_object_size(files) == 2, "H2 is not there, and report.html was not named");
    const json_t *results = json_object_get(files, "results.json");
    cr_assert(json_integer_value(json_object_get(results, "bytes")) == 9);
    cr_assert_str_eq(json_string_value(json_object_get(results, "crc32")), "cbf43926",
                     "the check value of CRC-32");
    const json_t *one = json_object_get(files, "H1/attacks/one.json");
    cr_assert(one != NULL && json_integer_value(json_object_get(one, "bytes")) == 0);
    cr_assert_str_eq(json_string_value(json_object_get(one, "crc32")), "00000000");
    json_decref(files);
}

static bool holds(const char *data) {
    return hyp_manifest_holds(folder, "results.json", data, strlen(data));
}

Test(manifest, a_file_that_has_changed_is_noticed) {
    char crc[9], run[80];
    const char *names[] = {"results.json"};
    cr_assert(holds("anything"), "a folder without a list: %s", hyp_error());
    cr_assert(hyp_manifest_write(folder, names, 1, crc));
    snprintf(run, sizeof run, "{\"schema\": 1, \"list_crc32\": \"%s\"}", crc);
    put("run.json", run);
    cr_assert(holds("123456789"), "%s", hyp_error());
    cr_assert(!holds("123456788") && strstr(hyp_error(), "has changed") != NULL, "%s", hyp_error());
    cr_assert(!holds("1234567890") && !holds(""));
    cr_assert(!hyp_manifest_holds(folder, "other.json", "", 0) &&
              strstr(hyp_error(), "does not list other.json") != NULL);
    /* A list that was written anew does not match run.json. */
    put("results.json", "123456788");
    cr_assert(hyp_manifest_write(folder, names, 1, crc));
    cr_assert(!holds("123456788") && strstr(hyp_error(), "manifest.json has changed") != NULL);
    char path[256];
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    remove(path);
    cr_assert(!holds("123456789") && strstr(hyp_error(), "is missing") != NULL);
}

Test(manifest, a_folder_that_is_not_there_is_an_error) {
    char crc[9];
    const char *names[] = {"results.json"};
    cr_assert(!hyp_manifest_write("/absent/folder", names, 1, crc));
    cr_assert(strstr(hyp_error(), "/absent/folder") != NULL, "%s", hyp_error());
}
