/*
 * What programs linked against glibc 2.34 or newer miss in an older one, down to 2.28: stat and its
 * relatives, which were inline functions there, mallinfo2, and a start that runs the program's
 * constructors, which the program's own start files did. ci/packaging/older_glibc.py puts this
 * library before libc.so.6 in packaged programs.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int main_function(int, char **, char **);
typedef void init_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, init_function *, void (*)(void),
                           void (*)(void), void *);

int __libc_start_main(main_function *program, int count, char **words, init_function *init,
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

/* The kernel's struct is glibc's on 64 bits. */
int fstat(int file, struct stat *status) {
    return (int)syscall(SYS_newfstatat, file, "", status, AT_EMPTY_PATH);
}

int stat(const char *path, struct stat *status) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int lstat(const char *path, struct stat *status) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int stat64(const char *path, struct stat64 *status) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

/* Older ones count with int alone: 2 GiB and more are wrong there. */
struct mallinfo2 mallinfo2(void) {
    struct mallinfo2 (*newer)(void) = (struct mallinfo2(*)(void))dlsym(RTLD_NEXT, "mallinfo2");
    struct mallinfo (*older)(void) = (struct mallinfo(*)(void))dlsym(RTLD_NEXT, "mallinfo");
    if (newer != NULL) return newer();
    const struct mallinfo info = older();
    return (struct mallinfo2){.arena = (unsigned)info.arena,
                              .ordblks = (unsigned)info.ordblks,
                              .smblks = (unsigned)info.smblks,
                              .hblks = (unsigned)info.hblks,
                              .hblkhd = (unsigned)info.hblkhd,
                              .fsmblks = (unsigned)info.fsmblks,
                              .uordblks = (unsigned)info.uordblks,
                              .fordblks = (unsigned)info.fordblks,
                              .keepcost = (unsigned)info.keepcost};
}

/* The program's constructors, as its dynamic section lists them. */
static void run_constructors(int count, char **words, char **environment) {
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    const size_t header_count = getauxval(AT_PHNUM);
    const ElfW(Dyn) *entry = NULL;
    uintptr_t base = 0, init = 0, array = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < header_count; i++) {
        if (headers[i].p_type == PT_PHDR) base = (uintptr_t)headers - headers[i].p_vaddr;
    }
    for (size_t i = 0; i < header_count; i++) {
        if (headers[i].p_type == PT_DYNAMIC) entry = (const void *)(base + headers[i].p_vaddr);
    }
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_INIT) init = base + entry->d_un.d_ptr;
        if (entry->d_tag == DT_INIT_ARRAY) array = base + entry->d_un.d_ptr;
        if (entry->d_tag == DT_INIT_ARRAYSZ) bytes = entry->d_un.d_val;
    }
    if (init != 0) ((init_function *)init)(count, words, environment);
    for (size_t i = 0; i < bytes / sizeof(uintptr_t); i++) {
        ((init_function *const *)array)[i](count, words, environment);
    }
}

int __libc_start_main(main_function *program, int count, char **words, init_function *init,
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    const char *minor = gnu_get_libc_version() + 2; /* after "2." */
    if (init == NULL && atoi(minor) < 34) init = run_constructors;
    return start(program, count, words, init, fini, rtld_fini, stack_end);
}
