/*
 * The segments of an ELF file of this machine's word size; what they hold is the loader's to judge.
 */
#include "plugin_file.h"

#include "files/atomic_file.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool plugin_file_read_at(FILE *file, uint64_t offset, void *to, size_t bytes) {
    return fseeko(file, (off_t)offset, SEEK_SET) == 0 && fread(to, 1, bytes, file) == bytes;
}

/* NULL: nothing is wrong with it. */
static const char *find_fault(FILE *file) {
    ElfW(Ehdr) head;
    ElfW(Phdr) segment;
    if (!plugin_file_read_at(file, 0, &head, sizeof head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
        return "it is not a shared library";
    }
    if (head.e_phentsize != sizeof segment) return "it is a library for another machine";
    if (fseeko(file, 0, SEEK_END) != 0) return "it cannot be read";
    uint64_t bytes = (uint64_t)ftello(file);
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (!plugin_file_read_at(file, head.e_phoff + i * sizeof segment, &segment,
                                 sizeof segment) ||
            segment.p_offset > bytes || segment.p_filesz > bytes - segment.p_offset) {
            return "the file is truncated";
        }
    }
    return NULL;
}

bool hyp_plugin_file_is_whole(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return hyp_fail("the plugin %s cannot be read: %s", path, strerror(errno));
    const char *fault = find_fault(file);
    fclose(file);
    return fault == NULL || hyp_fail("the plugin %s cannot be loaded: %s", path, fault);
}
