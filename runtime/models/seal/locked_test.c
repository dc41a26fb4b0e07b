/*
 * Locked memory: the kernel says that it is locked and not dumped; it is zeros when taken and when
 * given back; and a limit is an error.
 */
#include "locked.h"

#include "test/test_device.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The flags of the mapping of an address, as /proc/self/smaps has them. */
static void flags_of(const void *address, char *flags, size_t bytes) {
    char line[512];
    unsigned long from = 0, to = 0;
    bool is_here = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    cr_assert(maps != NULL);
    flags[0] = '\0';
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            is_here = (uintptr_t)address >= from && (uintptr_t)address < to;
        } else if (is_here && strncmp(line, "VmFlags:", 8) == 0) {
            snprintf(flags, bytes, "%s", line);
        }
    }
    fclose(maps);
}

static void must_be_protected(size_t bytes) {
    char flags[512];
    void *memory = NULL;
    MUST(tol_locked_take(bytes, &memory));
    cr_assert_eq((uintptr_t)memory % 16, 0);
    flags_of(memory, flags, sizeof flags);
    cr_assert(strstr(flags, " lo") != NULL, "%zu bytes are not locked: %s", bytes, flags);
    cr_assert(strstr(flags, " dd") != NULL, "%zu bytes would be dumped: %s", bytes, flags);
    cr_assert(strstr(flags, " wf") != NULL, "%zu bytes are inherited: %s", bytes, flags);
    for (size_t i = 0; i < bytes; i++) cr_assert_eq(((char *)memory)[i], 0);
    memset(memory, 0x5a, bytes);
    tol_locked_give(memory, bytes);
}

Test(locked, memory_is_locked_and_not_dumped_nor_inherited) {
    must_be_protected(32);
    must_be_protected(512);
    must_be_protected(513);
    must_be_protected(16384);
}

/* A slot is reused: what was in it is gone when it is given back, and when it is taken. */
Test(locked, what_is_given_back_is_wiped) {
    char *memory = NULL, *again = NULL;
    MUST(tol_locked_take(100, (void **)&memory));
    memset(memory, 0x5a, 100);
    tol_locked_give(memory, 100);
    for (size_t i = sizeof(void *); i < 100; i++) cr_assert_eq(memory[i], 0, "byte %zu", i);
    MUST(tol_locked_take(512, (void **)&again));
    cr_assert(again == memory, "the slot is not used again");
    for (size_t i = 0; i < 512; i++) cr_assert_eq(again[i], 0, "byte %zu", i);
    tol_locked_give(again, 512);
    tol_locked_give(NULL, 512);
}

Test(locked, small_pieces_share_pages) {
    void *pieces[32];
    const size_t before = tol_locked_bytes();
    for (size_t i = 0; i < 32; i++) MUST(tol_locked_take(300, &pieces[i]));
    for (size_t i = 0; i < 32; i++) {
        for (size_t j = 0; j < i; j++) cr_assert(pieces[i] != pieces[j]);
    }
    cr_assert_eq(tol_locked_bytes() - before, 32 * 512);
    for (size_t i = 0; i < 32; i++) tol_locked_give(pieces[i], 300);
}

Test(locked, a_child_process_has_zeros) {
    char *memory = NULL;
    int result = 0;
    MUST(tol_locked_take(64, (void **)&memory));
    memset(memory, 0x5a, 64);
    const pid_t child = fork();
    if (child == 0) _exit(memory[5] == 0 ? 7 : 8);
    cr_assert(child > 0 && waitpid(child, &result, 0) == child);
    cr_assert(WIFEXITED(result) && WEXITSTATUS(result) == 7, "the child has the secret");
    cr_assert_eq(memory[5], 0x5a);
    tol_locked_give(memory, 64);
}

/* Root may lock all it likes, so the test gives that up in a process of its own. */
Test(locked, more_than_the_limit_is_an_error) {
    void *memory = NULL;
    const struct rlimit limit = {64 << 10, 64 << 10};
    cr_assert(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (geteuid() == 0 && seteuid(65534) != 0) cr_skip_test("root cannot become another user");
    MUST_FAIL(tol_locked_take(128 << 10, &memory), TOL_OUT_OF_HOST_MEMORY, "is 64 KiB");
    MUST(tol_locked_take(32 << 10, &memory));
    tol_locked_give(memory, 32 << 10);
}
