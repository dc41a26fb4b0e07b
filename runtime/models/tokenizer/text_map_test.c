/*
 * The map of texts and pairs of texts.
 */
#include "text_map.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

static struct tol_gguf_text text_of(const char *text) {
    return (struct tol_gguf_text){text, strlen(text)};
}

Test(text_map, pairs_are_told_apart_by_where_they_are_cut) {
    struct tol_text_map map;
    MUST(tol_text_map_create(&map, 8));
    tol_text_map_set(&map, text_of("abc"), text_of(""), 1, true);
    tol_text_map_set(&map, text_of("ab"), text_of("c"), 2, true);
    tol_text_map_set(&map, text_of("a"), text_of("bc"), 3, true);
    tol_text_map_set(&map, text_of("ab"), text_of("c"), 4, false);
    cr_assert(tol_text_map_get(&map, text_of("abc"), text_of("")) == 1);
    cr_assert(tol_text_map_get(&map, text_of("ab"), text_of("c")) == 2, "the first one stays");
    cr_assert(tol_text_map_get(&map, text_of("a"), text_of("bc")) == 3);
    cr_assert(tol_text_map_get(&map, text_of("a"), text_of("b")) == -1);
    cr_assert(tol_text_map_get(&map, text_of("ABC"), text_of("")) == -1);
    tol_text_map_set(&map, text_of("ab"), text_of("c"), 5, true);
    cr_assert(tol_text_map_get(&map, text_of("ab"), text_of("c")) == 5, "the last one replaces");
    tol_text_map_destroy(&map);
}

Test(text_map, as_many_as_there_is_room_for_are_found) {
    enum { COUNT = 20000, BYTES = 24 };
    struct tol_text_map map;
    char(*texts)[BYTES] = calloc(2 * COUNT, BYTES);
    cr_assert_not_null(texts);
    MUST(tol_text_map_create(&map, COUNT));
    for (int i = 0; i < 2 * COUNT; i++) {
        /* Lengths on both sides of a word of the hash, and zeros, which padding must not hide. */
        snprintf(texts[i], BYTES, "%0*d", 5 + i % 15, i);
    }
    for (int i = 0; i < COUNT; i++) {
        tol_text_map_set(&map, text_of(texts[i]), text_of(""), i, true);
    }
    for (int i = 0; i < 2 * COUNT; i++) {
        int32_t found = tol_text_map_get(&map, text_of(texts[i]), text_of(""));
        cr_assert(found == (i < COUNT ? i : -1), "%s: %d", texts[i], found);
    }
    tol_text_map_destroy(&map);
    free(texts);
}
