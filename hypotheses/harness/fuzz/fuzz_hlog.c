/*
 * Fuzz target: any bytes are a histogram log, or are refused with a sentence. What is read can be
 * written, and is the same when it is read again.
 */
#include "fuzz_input.h"

#include "files/hdr_encode.h"
#include "files/hlog.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 4 };

struct kept {
    size_t count;
    char tags[ENTRIES_MAX][128];
    char *texts[ENTRIES_MAX];
};

static bool hlog_keep(const struct hyp_hlog_entry *entry, void *user) {
    struct kept *kept = user;
    FUZZ_HOLDS(memchr(entry->tag, '\0', sizeof entry->tag) != NULL);
    FUZZ_HOLDS(tol_hdr_min(entry->hdr) <= tol_hdr_max(entry->hdr));
    if (kept->count == ENTRIES_MAX) return true;
    kept->texts[kept->count] = hyp_hdr_encode(entry->hdr);
    FUZZ_HOLDS(kept->texts[kept->count] != NULL);
    memcpy(kept->tags[kept->count++], entry->tag, sizeof entry->tag);
    return true;
}

static void hlog_forget(struct kept *kept) {
    for (size_t i = 0; i < kept->count; i++) free(kept->texts[i]);
}

/* Whether a writer accepts the tag: a reader is more tolerant. */
static bool write_again(const struct kept *kept, const char *path) {
    struct hyp_hlog log;
    bool ok = true;
    FUZZ_HOLDS(hyp_hlog_begin(&log, path, 1700000000));
    for (size_t i = 0; ok && i < kept->count; i++) {
        struct tol_hdr *hdr = NULL;
        FUZZ_HOLDS(hyp_hdr_decode(kept->texts[i], strlen(kept->texts[i]), &hdr) == TOL_HDR_OK);
        ok = hyp_hlog_add(&log, kept->tags[i], (double)i, 1, hdr);
        tol_hdr_free(hdr);
    }
    if (!ok) hyp_file_drop(&log.file);
    FUZZ_HOLDS(!ok || hyp_hlog_end(&log));
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct kept first = {0}, second = {0};
    char again[128];
    const char *path = fuzz_file("input.hlog", data, size);
    if (!hyp_hlog_read(path, hlog_keep, &first)) {
        FUZZ_HOLDS(hyp_error()[0] != '\0');
    } else if (first.count > 0) {
        snprintf(again, sizeof again, "%s/again.hlog", fuzz_folder());
        if (write_again(&first, again)) {
            FUZZ_HOLDS(hyp_hlog_read(again, hlog_keep, &second) && second.count == first.count);
            for (size_t i = 0; i < first.count; i++) {
                FUZZ_HOLDS(strcmp(first.tags[i], second.tags[i]) == 0);
                FUZZ_HOLDS(strcmp(first.texts[i], second.texts[i]) == 0);
            }
        }
    }
    hlog_forget(&first);
    hlog_forget(&second);
    return 0;
}
