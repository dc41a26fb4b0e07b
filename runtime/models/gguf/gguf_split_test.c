/*
 * Models in parts: whichever part is opened, all are there; what is missing or wrong is named.
 */
#include "gguf_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 3, ROW = 8 };

struct split {
    char folder[32], paths[PARTS][64];
};

/* What is wrong with a part; -1 and NULL: nothing. */
struct flaw {
    int states_no, states_tensors;
    const char *tensor;
};

/* A part with the tensor "tN", N * 100, N * 100 + 1, ...; the first has a key of its own. */
static void write_part(const struct split *s, unsigned part, const struct flaw *flaw) {
    struct gguf_maker maker = {0};
    struct tol_gguf *gguf = NULL;
    const uint64_t extent[1] = {ROW};
    const int tensors = flaw != NULL && flaw->states_tensors >= 0 ? flaw->states_tensors : PARTS;
    char name[16];
    snprintf(name, sizeof name, "t%u", part);
    maker_begin(&maker, 3, 1, part == 0 ? 4 : 3);
    if (part == 0) maker_key_string(&maker, "general.name", "whole");
    maker_key_u32(&maker, "split.no",
                  flaw != NULL && flaw->states_no >= 0 ? (uint32_t)flaw->states_no : part);
    maker_key_u32(&maker, "split.count", PARTS);
    maker_key_u32(&maker, "split.tensors.count", (uint32_t)tensors);
    maker_tensor(&maker, flaw != NULL && flaw->tensor != NULL ? flaw->tensor : name, 1, extent,
                 TOL_TENSOR_F32, 0);
    maker_pad(&maker, 32);
    for (unsigned i = 0; i < ROW; i++) {
        const float value = (float)(100 * part + i);
        maker_bytes(&maker, &value, sizeof value);
    }
    snprintf(maker.path, sizeof maker.path, "%s", s->paths[part]);
    if (maker_open(&maker, &gguf) == TOL_OK) tol_gguf_close(gguf); /* other parts may be missing */
    maker.path[0] = '\0';                                          /* the file stays */
    maker_end(&maker);
}

static struct split write_split(void) {
    struct split s;
    strcpy(s.folder, "/tmp/tollens-split-XXXXXX");
    cr_assert(mkdtemp(s.folder) != NULL);
    for (unsigned i = 0; i < PARTS; i++) {
        snprintf(s.paths[i], sizeof s.paths[i], "%s/m-0000%u-of-0000%d.gguf", s.folder, i + 1,
                 PARTS);
    }
    for (unsigned i = 0; i < PARTS; i++) write_part(&s, i, NULL);
    return s;
}

static void remove_split(struct split *s) {
    for (unsigned i = 0; i < PARTS; i++) unlink(s->paths[i]);
    rmdir(s->folder);
}

Test(gguf_split, any_part_opens_the_whole) {
    struct split s = write_split();
    for (unsigned i = 0; i < PARTS; i++) {
        struct tol_gguf *gguf = NULL;
        struct tol_gguf_description about;
        MUST(tol_gguf_open(s.paths[i], &gguf));
        tol_gguf_describe(gguf, &about);
        cr_assert(about.tensors == PARTS && about.tensor_bytes == PARTS * ROW * sizeof(float));
        cr_assert(tol_gguf_find(gguf, "general.name") != NULL);
        for (unsigned part = 0; part < PARTS; part++) {
            char name[16];
            float values[ROW];
            snprintf(name, sizeof name, "t%u", part);
            const struct tol_gguf_tensor *tensor = tol_gguf_find_tensor(gguf, name);
            cr_assert(tensor != NULL && tensor->part == part);
            cr_assert(tol_gguf_tensor_at(gguf, part) == tensor);
            MUST(tol_gguf_read(gguf, tensor, 0, values, sizeof values));
            cr_assert(values[ROW - 1] == (float)(100 * part + ROW - 1));
        }
        tol_gguf_close(gguf);
    }
    remove_split(&s);
}

static void must_be_refused(const char *path, const char *text) {
    struct tol_gguf *gguf = NULL;
    MUST_FAIL(tol_gguf_open(path, &gguf), TOL_INVALID_FILE, text);
    cr_assert_null(gguf);
}

Test(gguf_split, a_part_that_is_missing_is_named) {
    for (unsigned missing = 0; missing < PARTS; missing++) {
        struct split s = write_split();
        unlink(s.paths[missing]);
        for (unsigned i = 0; i < PARTS; i++) {
            char text[128];
            if (i == missing) continue;
            snprintf(text, sizeof text, "is part %u of 3 of a split model, and part %u: %s cannot",
                     i + 1, missing + 1, s.paths[missing]);
            must_be_refused(s.paths[i], text);
        }
        remove_split(&s);
    }
}

Test(gguf_split, parts_that_do_not_belong_together_are_refused) {
    struct split s = write_split();
    write_part(&s, 2, &(struct flaw){1, -1, NULL});
    must_be_refused(s.paths[0], "states that it is part 2 of 3, and its name that it is part 3 of");
    must_be_refused(s.paths[2], "and its name does not end with -00002-of-00003.gguf");
    write_part(&s, 2, &(struct flaw){-1, -1, "t1"});
    must_be_refused(s.paths[0], "tensor \"t1\" at byte ");
    must_be_refused(s.paths[2], "m-00003-of-00003.gguf: tensor \"t1\"");
    write_part(&s, 2, NULL);
    write_part(&s, 0, &(struct flaw){-1, 4, NULL});
    must_be_refused(s.paths[1], "the parts have 3 tensors, and key \"split.tensors.count\" is 4");
    write_part(&s, 0, &(struct flaw){3, -1, NULL});
    must_be_refused(s.paths[0], "key \"split.no\" is 3; at most 2");
    remove_split(&s);
}
