/*
 * dlopen on POSIX systems, LoadLibrary on Windows: one row of names and three calls each.
 */
#include "library.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)

#include <windows.h>

static const char *const names[] = {"nvcuda.dll", NULL};

void *tol_library_open(const char *path, char *reason, size_t reason_bytes) {
    HMODULE library = LoadLibraryA(path);
    if (library == NULL) {
        snprintf(reason, reason_bytes, "%s: LoadLibrary failed with code %lu", path,
                 (unsigned long)GetLastError());
    }
    return (void *)library;
}

int tol_library_find(void *library, const char *name, void *function, size_t function_bytes) {
    FARPROC address = GetProcAddress((HMODULE)library, name);
    if (address == NULL || function_bytes != sizeof address) return 0;
    memcpy(function, &address, sizeof address);
    return 1;
}

int tol_library_has(void *library, const char *name) {
    return GetProcAddress((HMODULE)library, name) != NULL;
}

static int own_path(char *path, size_t bytes) {
    HMODULE own = NULL;
    const DWORD flags =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    if (!GetModuleHandleExA(flags, (LPCSTR)(void *)names, &own)) return 0;
    DWORD length = GetModuleFileNameA(own, path, (DWORD)bytes);
    return length > 0 && length < bytes;
}

#else

#include <dlfcn.h>
#include <unistd.h>

static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};

void *tol_library_open(const char *path, char *reason, size_t reason_bytes) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *error = dlerror();
        snprintf(reason, reason_bytes, "%s", error != NULL ? error : path);
    }
    return library;
}

/* ISO C has no conversion from an object pointer to a function pointer; POSIX promises that the
 * bits of dlsym's result are the function's address, so the bits are copied. */
int tol_library_find(void *library, const char *name, void *function, size_t function_bytes) {
    void *address = dlsym(library, name);
    if (address == NULL || function_bytes != sizeof address) return 0;
    memcpy(function, &address, sizeof address);
    return 1;
}

int tol_library_has(void *library, const char *name) {
    return dlsym(library, name) != NULL;
}

/* The loader knows the path of a library; for the program, which the kernel loads, it may know only
 * the typed name. */
static int own_path(char *path, size_t bytes) {
    Dl_info info;
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    if (dladdr((const void *)names, &info) == 0 || info.dli_fname == NULL) return 0;
    const int is_path = strchr(info.dli_fname, '/') != NULL;
    int written = snprintf(path, bytes, "%s", is_path ? info.dli_fname : program);
    return written > 0 && (size_t)written < bytes;
}

#endif

int tol_library_beside(const char *name, char *path, size_t bytes) {
    if (!own_path(path, bytes)) return 0;
    char *slash = strrchr(path, '/'), *backslash = strrchr(path, '\\');
    if (backslash != NULL && (slash == NULL || backslash > slash)) slash = backslash;
    if (slash == NULL || (size_t)(slash + 1 - path) + strlen(name) >= bytes) return 0;
    memcpy(slash + 1, name, strlen(name) + 1);
    return 1;
}

const char *const *tol_library_names(void) {
    return names;
}
