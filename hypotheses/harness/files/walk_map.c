/*
 * The pool's own snapshot, cut down to places.
 */
#include "walk_map.h"

#include "atomic_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static void walk_map_put_line(FILE *out, const json_t *range, json_int_t bytes, const char *state) {
    if (bytes <= 0) return;
    fprintf(out, "%lld,%lld,%s\n", json_integer_value(json_object_get(range, "address")), bytes,
            state);
}

static void walk_map_put_all(FILE *out, const json_t *snapshot) {
    size_t at = 0;
    json_t *range = NULL;
    json_array_foreach(json_object_get(snapshot, "blocks"), at, range) {
        bool cached = json_is_true(json_object_get(range, "cached"));
        walk_map_put_line(out, range, json_integer_value(json_object_get(range, "rounded")),
                          cached ? "cached" : "live");
    }
    json_array_foreach(json_object_get(snapshot, "holes"), at, range) {
        json_int_t pending = json_integer_value(json_object_get(range, "pending"));
        walk_map_put_line(out, range, json_integer_value(json_object_get(range, "mapped")),
                          pending > 0 ? "pending" : "free");
    }
}

bool hyp_walk_map_write(struct tol_pool *pool, const char *folder, const char *attack,
                        const char *name) {
    char path[1024], *text = NULL;
    struct hyp_file file;
    if (tol_pool_snapshot(pool, &text) != TOL_OK) return hyp_fail("%s", tol_message());
    json_t *snapshot = json_loads(text, 0, NULL);
    free(text);
    if (snapshot == NULL) return hyp_fail("the pool's snapshot is not valid JSON");
    snprintf(path, sizeof path, "%.700s/%.96s.%.60s.csv", folder, attack, name);
    bool ok = hyp_file_begin(&file, path);
    if (ok) {
        fprintf(file.stream, "address,bytes,state\n");
        walk_map_put_all(file.stream, snapshot);
        ok = hyp_file_keep(&file);
    }
    json_decref(snapshot);
    return ok;
}
