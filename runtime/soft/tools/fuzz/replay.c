/*
 * Drives a fuzz target with files instead of a fuzzer: to see again what a fuzzer found, and for
 * fuzzers that start a program for each input, as AFL++ does.
 *
 *   replay-ptx FILE...     or one input on stdin; 0: nothing happened that must not
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

static int replay(FILE *file) {
    size_t size = 0, room = 1 << 16, got = 0;
    uint8_t *data = malloc(room);
    while (data != NULL && (got = fread(data + size, 1, room - size, file)) > 0) {
        size += got;
        if (size < room) continue;
        uint8_t *more = realloc(data, room *= 2);
        if (more == NULL) free(data);
        data = more;
    }
    if (data == NULL) return 2;
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return replay(stdin);
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (file == NULL) {
            perror(argv[i]);
            return 2;
        }
        int result = replay(file);
        fclose(file);
        if (result != 0) return result;
    }
    printf("replay: %d inputs\n", argc - 1);
    return 0;
}
