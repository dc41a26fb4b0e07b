/*
 * The segments of an ELF file of this machine's word size; what they hold is the loader's to judge.
 */
#include "plugin_file.h"

#include "files/atomic_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

bool hyp_plugin_file_lets_load(const char *path) {
    int ends[2], status = 0;
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return hyp_fail("no pipe: %s", strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        (void)dlopen(path, RTLD_NOW | RTLD_LOCAL);
        _exit(write(ends[1], "", 1) == 1 ? 0 : 1);
    }
    close(ends[1]);
    ssize_t count = 0;
    while (child > 0 && (count = read(ends[0], &byte, 1)) < 0 && errno == EINTR) continue;
    close(ends[0]);
    pid_t ended = -1;
    while (child > 0 && (ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) continue;
    if (ended != child || child < 0) return hyp_fail("no process could load the plugin %s", path);
    if (count == 1) return true;
    if (WIFSIGNALED(status)) {
        return hyp_fail("the plugin %s cannot be loaded: its constructors end by signal %d (%s)",
                        path, WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return hyp_fail("the plugin %s cannot be loaded: its constructors end the process", path);
}

bool hyp_plugin_file_is_whole(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return hyp_fail("the plugin %s cannot be read: %s", path, strerror(errno));
    const char *fault = find_fault(file);
    fclose(file);
    return fault == NULL || hyp_fail("the plugin %s cannot be loaded: %s", path, fault);
}
