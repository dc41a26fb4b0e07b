/*
 * Reasons in words, and the exception that PyTorch knows as being out of memory.
 *
 * The exception is made by PyTorch's own library, which is found in the process: its constructor of
 * c10::Error and the class c10::OutOfMemoryError, which adds nothing but its type. So no header and
 * no C++ compiler is needed, and where the library has other constructors, std::bad_alloc of the
 * C++ runtime is thrown instead. Sources: Itanium C++ ABI: Exception Handling, 2.4; c10/util/
 * Exception.h of PyTorch 2.4 to 2.11 (signatures).
 */
#include "torch_report.h"

#include "core/check.h"
#include "tollens/torch.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD_MOST = 2, REASON_BYTES = 4096, EXCEPTION_BYTES = 1024 };

static _Thread_local char reason[REASON_BYTES];

const char *tol_torch_last_error(void) {
    return reason;
}

void torch_report(const char *what, const char *why) {
    static atomic_int told;
    snprintf(reason, sizeof reason, "tollens: %s%s%s", what, why[0] != '\0' ? ": " : "", why);
    if (atomic_fetch_add(&told, 1) < TOLD_MOST) fprintf(stderr, "%s\n", reason);
}

/* libstdc++'s std::string, of which this file makes one that owns its text. */
struct cxx_string {
    char *at;
    size_t length;
    union {
        char own[16];
        size_t room;
    } rest;
};

/* An empty std::shared_ptr. */
struct nothing {
    void *at, *count;
};

typedef void *allocate_exception(size_t);
typedef void throw_exception(void *, void *, void (*)(void *));
typedef void make_error(void *error, struct cxx_string *message, struct nothing *backtrace,
                        const void *caller);

/* Looks a name up in a library that is loaded already, or among all that are for everyone. */
static void *in_library(const char *library, const char *name) {
    void *handle = library != NULL ? dlopen(library, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *found = dlsym(handle != NULL ? handle : RTLD_DEFAULT, name);
    if (handle != NULL) dlclose(handle);
    return found;
}

#define FIND(function, library, name)                                                              \
    do {                                                                                           \
        void *found_here = in_library(library, name);                                              \
        memcpy(&(function), &found_here, sizeof found_here);                                       \
    } while (0)

/* A virtual table's first functions, after two words: two destructors, then what(). */
static void torch_report_destroy(void *error) {
    void (*destructor)(void *) = NULL;
    memcpy(&destructor, *(void **)error, sizeof destructor);
    destructor(error);
}

static bool make_text(struct cxx_string *text) {
    text->length = strlen(reason);
    text->rest.room = REASON_BYTES;
    text->at = malloc(REASON_BYTES + 1); /* freed by operator delete, which is free */
    if (text->at == NULL) return false;
    memcpy(text->at, reason, text->length + 1);
    return true;
}

/* Throws PyTorch's exception; returns if PyTorch's library is not as expected. */
static void throw_torch(bool out_of_memory, allocate_exception *allocate, throw_exception *throw) {
    struct cxx_string text;
    struct nothing nothing = {NULL, NULL};
    make_error *make = NULL;
    const char *library = out_of_memory ? "libc10_cuda.so" : "libc10.so";
    void *type =
        in_library(library, out_of_memory ? "_ZTIN3c1016OutOfMemoryErrorE" : "_ZTIN3c105ErrorE");
    void *table =
        in_library(library, out_of_memory ? "_ZTVN3c1016OutOfMemoryErrorE" : "_ZTVN3c105ErrorE");
    FIND(make, "libc10.so",
         "_ZN3c105ErrorC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt10shared_ptrI"
         "KNS_9LazyValueIS6_EEEPKv");
    if (type == NULL || table == NULL || make == NULL || !make_text(&text)) return;
    void *error = allocate(EXCEPTION_BYTES);
    make(error, &text, &nothing, NULL);
    *(void **)error = (char *)table + 2 * sizeof(void *);
    throw(error, type, torch_report_destroy);
}

static void throw_standard(allocate_exception *allocate, throw_exception *throw) {
    void *type = in_library("libstdc++.so.6", "_ZTISt9bad_alloc");
    void *table = in_library("libstdc++.so.6", "_ZTVSt9bad_alloc");
    if (type == NULL || table == NULL) return;
    void *error = allocate(sizeof(void *));
    *(void **)error = (char *)table + 2 * sizeof(void *);
    throw(error, type, torch_report_destroy);
}

_Noreturn void torch_throw(bool out_of_memory) {
    allocate_exception *allocate = NULL;
    throw_exception *throw = NULL;
    FIND(allocate, "libstdc++.so.6", "__cxa_allocate_exception");
    FIND(throw, "libstdc++.so.6", "__cxa_throw");
    if (allocate != NULL && throw != NULL) {
        throw_torch(out_of_memory, allocate, throw);
        throw_standard(allocate, throw);
    }
    /* Without a C++ runtime no code could catch an exception, and the program would use NULL. */
    fprintf(stderr, "%s\n", reason);
    abort();
}
