/*
 * Describes call sites by the dynamic linker's map of the process and the files' line tables.
 */
#include "call_site.h"

#include <stdio.h>
#include <string.h>

_Thread_local const void *soft_call_site;

#if defined(__GLIBC__)

#include "line_table.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unwind.h>

/* Finds the line of a site, and the file that it is in. false: the file has none. */
static bool call_site_find_line(const void *site, Dl_info *info, uint64_t *address,
                                struct soft_line *line) {
    struct link_map *map = NULL;
    *info = (Dl_info){.dli_fname = NULL};
    if (dladdr1(site, info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) {
        info->dli_fname = NULL;
        return false;
    }
    /* The call is the instruction before. The unwinder knows where its function begins. */
    const uintptr_t call = (uintptr_t)site - 1;
    const uintptr_t function = (uintptr_t)_Unwind_FindEnclosingFunction((void *)call);
    const uint64_t lowest = function != 0 && function <= call ? function : call;
    *address = call - map->l_addr;
    return soft_line_find(map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe",
                          lowest - map->l_addr, *address, line);
}

void soft_call_site_text(const void *site, char *text, size_t bytes) {
    Dl_info info;
    struct soft_line line;
    uint64_t address = 0;
    text[0] = '\0';
    if (site == NULL) return;
    if (call_site_find_line(site, &info, &address, &line)) {
        snprintf(text, bytes, "%s:%u", line.file, line.line);
    } else if (info.dli_fname != NULL) {
        const char *name = strrchr(info.dli_fname, '/');
        snprintf(text, bytes, "%s+0x%llx", name != NULL ? name + 1 : info.dli_fname,
                 (unsigned long long)address);
    }
}

/* Sites that were looked at; a slot may be taken by another one. */
enum { SITES = 1024 };
static struct {
    const void *site;
    bool is_wrapper;
} sites[SITES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool call_site_is_wrapper(const void *site) {
    Dl_info info;
    struct soft_line line = {.is_wrapper = false};
    uint64_t address = 0;
    const size_t slot = ((uintptr_t)site >> 2) % SITES;
    pthread_mutex_lock(&lock);
    if (sites[slot].site != site) {
        sites[slot].site = site;
        sites[slot].is_wrapper =
            call_site_find_line(site, &info, &address, &line) && line.is_wrapper;
    }
    const bool answer = sites[slot].is_wrapper;
    pthread_mutex_unlock(&lock);
    return answer;
}

const void *soft_call_site_of(const void *site) {
    enum { FRAMES = 32 };
    void *frames[FRAMES];
    if (site == NULL || !call_site_is_wrapper(site)) return site;
    const int count = backtrace(frames, FRAMES);
    int i = 0;
    while (i < count && frames[i] != site) i++;
    do {
        i++;
    } while (i < count && call_site_is_wrapper(frames[i]));
    return i < count ? frames[i] : site;
}

void soft_call_site_object(char *text, size_t bytes) {
    enum { FRAMES = 16 };
    void *frames[FRAMES];
    Dl_info own, info;
    text[0] = '\0';
    if (dladdr((const void *)__builtin_return_address(0), &own) == 0) return;
    const int count = backtrace(frames, FRAMES);
    bool is_below = false; /* a sanitizer's backtrace has a frame of its own first */
    for (int i = 0; i < count; i++) {
        struct link_map *map = NULL;
        if (dladdr1(frames[i], &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) continue;
        is_below |= info.dli_fbase == own.dli_fbase;
        if (!is_below || info.dli_fbase == own.dli_fbase) continue;
        char *path = realpath(map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe", NULL);
        snprintf(text, bytes, "%s", path != NULL ? path : info.dli_fname);
        free(path);
        return;
    }
}

#else

void soft_call_site_object(char *text, size_t bytes) {
    if (bytes > 0) text[0] = '\0';
}

const void *soft_call_site_of(const void *site) {
    return site;
}

void soft_call_site_text(const void *site, char *text, size_t bytes) {
    if (bytes > 0) text[0] = '\0';
    (void)site;
}

#endif
