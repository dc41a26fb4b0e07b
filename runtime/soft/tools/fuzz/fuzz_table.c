/*
 * Fuzz target: any bytes are an instruction table, or are refused with a reason.
 */
#include "fuzz.h"

#include "table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct table table = {.rows = NULL};
    char path[64];
    int file = memfd_create("table", 0);
    if (file < 0 || write(file, data, size) != (ssize_t)size) fuzz_fail("no file", file, "");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (!table_read(&table, path)) {
        if (table.message[0] == '\0') fuzz_fail("refused without a reason", 0, "");
    } else {
        for (size_t i = 0; i < table.count; i++) {
            const struct table_row *row = &table.rows[i];
            for (unsigned s = 0; s < row->source_count; s++) table_value(row, 1, s);
        }
    }
    table_free(&table);
    close(file);
    return 0;
}
