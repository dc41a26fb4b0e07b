/*
 * Reads fat binaries. Every size is compared with the bytes left before those bytes are read.
 */
#include "fatbin.h"

#include "container.h"
#include "ptx/ptx.h"
#include "tollens/cuda_abi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRAPPER = 0x466243b1 };
static const uint32_t container_magic = 0xba55ed50;
enum { CONTAINER_BYTES = 16, ENTRY_BYTES = 64, KIND_PTX = 1, KIND_MACHINE = 2, KIND_LTO = 8 };
enum { CONTAINER_IDENT = 16 }; /* what soft_container_is reads */
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
enum { TEXT_MAX = 1 << 28, ARCHITECTURES = 200 };

#define REMEDY                                                                                     \
    "this device executes PTX. Add it with nvcc -gencode arch=compute_80,code=compute_80 "         \
    "(CMake: CUDA_ARCHITECTURES 80-virtual; PyTorch extensions: TORCH_CUDA_ARCH_LIST=8.0+PTX; "    \
    "NVRTC: --gpu-architecture=compute_80 and nvrtcGetPTX)"

struct wrapper {
    int32_t magic, version;
    const void *data, *other;
};

struct entry {
    unsigned kind, architecture, flags;
    const unsigned char *payload;
    size_t bytes, whole; /* of the payload, and decompressed; 0: it is not compressed */
};

struct walk {
    const unsigned char *at;
    size_t left;
};

static uint64_t fatbin_number(const unsigned char *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = bytes; i > 0; i--) value = value << 8 | at[i - 1];
    return value;
}

bool soft_fatbin_is(const void *image) {
    static const unsigned char magics[2][4] = {{0x50, 0xed, 0x55, 0xba}, {0xb1, 0x43, 0x62, 0x46}};
    const unsigned char *bytes = image;
    for (int m = 0; m < 2; m++) {
        int i = 0;
        while (i < 4 && bytes[i] == magics[m][i]) i++;
        if (i == 4) return true;
    }
    return false;
}

size_t soft_fatbin_bytes(const void *image, size_t most) {
    const unsigned char *at = image;
    if (most < CONTAINER_BYTES || fatbin_number(at, 4) != container_magic) return 0;
    const uint64_t header = fatbin_number(at + 6, 2), bytes = fatbin_number(at + 8, 8);
    if (header < CONTAINER_BYTES || header > most || bytes > most - header) return 0;
    return (size_t)(header + bytes);
}

/* Where the entries are. false: damaged. */
static bool fatbin_begin(struct walk *walk, const void *image, size_t most) {
    const unsigned char *at = image;
    if (most < CONTAINER_BYTES) return false;
    if (fatbin_number(at, 4) == WRAPPER) {
        struct wrapper wrapper;
        /* It points to memory of unknown size. A file has no pointers. */
        if (most != SIZE_MAX) return false;
        memcpy(&wrapper, image, sizeof wrapper);
        if (wrapper.data == NULL) return false;
        at = wrapper.data;
    }
    const size_t bytes = soft_fatbin_bytes(at, most);
    if (bytes == 0) return false;
    const uint64_t header = fatbin_number(at + 6, 2);
    *walk = (struct walk){at + header, bytes - (size_t)header};
    return true;
}

/* The next entry. false: there is none; *damaged: there should be one. */
static bool fatbin_next(struct walk *walk, struct entry *entry, bool *damaged) {
    const unsigned char *at = walk->at;
    *damaged = walk->left > 0 && walk->left < ENTRY_BYTES;
    if (walk->left < ENTRY_BYTES) return false;
    const uint64_t header = fatbin_number(at + 4, 4), padded = fatbin_number(at + 8, 4);
    *entry = (struct entry){.kind = (unsigned)fatbin_number(at, 2),
                            .architecture = (unsigned)fatbin_number(at + 28, 4),
                            .flags = (unsigned)fatbin_number(at + 40, 4)};
    *damaged = header < ENTRY_BYTES || header > walk->left || padded > walk->left - header;
    if (*damaged) return false;
    const bool is_packed = (entry->flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0;
    const uint64_t packed = fatbin_number(at + 16, 4), whole = fatbin_number(at + 56, 8);
    *damaged = is_packed && (packed > padded || whole == 0 || whole > TEXT_MAX);
    if (*damaged) return false;
    entry->payload = at + header;
    entry->bytes = (size_t)(is_packed ? packed : padded);
    entry->whole = (size_t)(is_packed ? whole : 0);
    walk->at += header + padded;
    walk->left -= (size_t)(header + padded);
    return true;
}

/* ---- decompression --------------------------------------------------------------------------- */

static void (*find(const char *library, const char *name))(void) {
    void (*function)(void) = NULL;
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL); /* stays open */
    void *address = opened != NULL ? dlsym(opened, name) : NULL;
    memcpy(&function, &address, sizeof function);
    return function;
}

/* Unpacks an entry into text. Returns NULL, or what is missing or wrong. */
static const char *fatbin_unpack(const struct entry *entry, char *text) {
    if ((entry->flags & FLAG_ZSTD) != 0) {
        typedef size_t function(void *to, size_t room, const void *from, size_t bytes);
        function *decompress = (function *)find("libzstd.so.1", "ZSTD_decompress");
        if (decompress == NULL) return "libzstd.so.1, which decompresses it, is not installed";
        const size_t got = decompress(text, entry->whole, entry->payload, entry->bytes);
        return got == entry->whole ? NULL : "its Zstandard data is damaged";
    }
    typedef int function(const char *from, char *to, int bytes, int room);
    function *decompress = (function *)find("liblz4.so.1", "LZ4_decompress_safe");
    if (decompress == NULL) return "liblz4.so.1, which decompresses it, is not installed";
    const int got =
        decompress((const char *)entry->payload, text, (int)entry->bytes, (int)entry->whole);
    return got == (int)entry->whole ? NULL : "its LZ4 data is damaged";
}

static char *fatbin_text_of(const struct entry *entry, size_t *length, int *result,
                            char says[SOFT_FATBIN_SAYS]) {
    const size_t bytes = entry->whole > 0 ? entry->whole : entry->bytes;
    char *text = malloc(bytes + 1);
    if (text == NULL) {
        *result = CUDA_ERROR_OUT_OF_MEMORY;
        snprintf(says, SOFT_FATBIN_SAYS, "out of memory for %zu bytes of PTX\n", bytes);
        return NULL;
    }
    const char *trouble = NULL;
    if (entry->whole > 0) {
        trouble = fatbin_unpack(entry, text);
    } else {
        memcpy(text, entry->payload, bytes);
    }
    if (trouble != NULL) {
        const bool is_absent = strstr(trouble, "installed") != NULL;
        *result = is_absent ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
        snprintf(says, SOFT_FATBIN_SAYS, "the fat binary's PTX for compute_%u cannot be read: %s\n",
                 entry->architecture, trouble);
        free(text);
        return NULL;
    }
    text[bytes] = '\0';
    *length = entry->kind == KIND_PTX ? strlen(text) : bytes; /* PTX is padded with NULs */
    return text;
}

/* PTX, or in place of machine code a container of it. */
static bool fatbin_has_text(const struct entry *entry) {
    return entry->kind == KIND_PTX ||
           (entry->kind == KIND_MACHINE && entry->whole == 0 && entry->bytes >= CONTAINER_IDENT &&
            soft_container_is(entry->payload));
}

/* ---- what an image without PTX has ----------------------------------------------------------- */

struct held {
    bool machine[ARCHITECTURES], ptx[ARCHITECTURES], lto[ARCHITECTURES];
    bool has_machine, has_ptx, has_lto;
};

static void put_list(char *says, const char *prefix, const bool *there) {
    const char *comma = " ";
    for (unsigned a = 0; a < ARCHITECTURES; a++) {
        const size_t used = strlen(says);
        if (!there[a]) continue;
        snprintf(says + used, SOFT_FATBIN_SAYS - used, "%s%s%u", comma, prefix, a);
        comma = ", ";
    }
}

static void fatbin_put(char *says, const char *text) {
    const size_t used = strlen(says);
    snprintf(says + used, SOFT_FATBIN_SAYS - used, "%s", text);
}

static void fatbin_refuse(const struct held *held, const char *what, int capability, char *says) {
    snprintf(says, SOFT_FATBIN_SAYS, "%s has", what);
    if (held->has_machine) {
        fatbin_put(says, " machine code for");
        put_list(says, "sm_", held->machine);
    }
    if (held->has_lto) {
        fatbin_put(says, held->has_machine ? " and LTO-IR for" : " LTO-IR for");
        put_list(says, "lto_", held->lto);
    }
    const bool has_other = held->has_machine || held->has_lto;
    if (held->has_ptx) {
        char limit[120];
        fatbin_put(says, has_other ? " and PTX for" : " PTX for");
        put_list(says, "compute_", held->ptx);
        snprintf(limit, sizeof limit,
                 ", and this device is of compute capability %d.%d (--compute selects another)\n",
                 capability / 10, capability % 10);
        fatbin_put(says, limit);
        return;
    }
    fatbin_put(says, has_other ? " and no PTX, but " REMEDY "\n" : " no code at all\n");
}

void soft_fatbin_refuse_cubin(const void *image, char says[SOFT_FATBIN_SAYS]) {
    const unsigned char *bytes = image;
    struct held held = {.has_machine = true};
    const uint64_t flags = fatbin_number(bytes + 48, 4); /* e_flags of a 64-bit ELF header */
    /* Version 8 of CUDA's ELF ABI moved the architecture by a byte. */
    const unsigned architecture = bytes[8] >= 8 ? flags >> 8 & 0xff : flags & 0xff;
    held.machine[architecture < ARCHITECTURES ? architecture : 0] = true;
    fatbin_refuse(&held, "the image, a cubin,", 0, says);
    char *end = strrchr(says, '\n');
    if (end != NULL) *end = '\0';
    fatbin_put(says,
               "; to programs that compile kernels while they run, tollens soft gives compilers "
               "that keep PTX, unless --toolchain is off\n");
}

/* Whether a text is for a device. The entries tell the number of its target, but not the suffix. */
static bool fatbin_text_fits(const char *text, int capability) {
    static const char word[] = ".target";
    const char *at = strstr(text, word);
    if (at == NULL) return true; /* the reader says what is wrong */
    at += sizeof word - 1;
    at += strspn(at, " \t");
    if (strncmp(at, "sm_", 3) != 0) return true;
    const size_t digits = strspn(at + 3, "0123456789");
    const char suffix = at[3 + digits];
    return (suffix != 'a' && suffix != 'f') ||
           ptx_target_fits((unsigned)strtoul(at + 3, NULL, 10), suffix, (unsigned)capability);
}

/* The entry with a text and the highest architecture up to a limit, the last one of several; and an
 * entry of compressed machine code. A NULL payload: there is none. false: an entry is damaged. */
static bool fatbin_best(struct walk walk, unsigned limit, struct entry *best, struct entry *packed,
                        struct held *held) {
    struct entry entry;
    bool damaged = false;
    *best = (struct entry){.architecture = 0};
    while (fatbin_next(&walk, &entry, &damaged)) {
        const unsigned a = entry.architecture < ARCHITECTURES ? entry.architecture : 0;
        if (entry.kind == KIND_MACHINE) held->machine[a] = held->has_machine = true;
        if (entry.kind == KIND_LTO) held->lto[a] = held->has_lto = true;
        if (entry.kind == KIND_PTX) held->ptx[a] = held->has_ptx = true;
        if (a > limit) continue;
        if (entry.kind == KIND_MACHINE && entry.whole > 0) *packed = entry;
        if (fatbin_has_text(&entry) && a >= best->architecture) *best = entry;
    }
    return !damaged;
}

/* Whether a GPU of a capability runs some of the machine code: that of its major version up to its
 * minor one. Source: CUDA C++ Programming Guide, "Binary Compatibility". */
static bool fatbin_serves(const struct held *held, int capability) {
    for (int a = capability / 10 * 10; a <= capability; a++) {
        if (held->machine[a]) return true;
    }
    return false;
}

/* The PTX for the lowest architecture above a capability, which stands in for machine code. NULL:
 * there is none, it is for one device alone, or *result and says tell why it cannot be read. */
static char *fatbin_stand_in(struct walk walk, int capability, size_t *length, int *result,
                             char says[SOFT_FATBIN_SAYS]) {
    struct entry entry, least = {.architecture = ARCHITECTURES};
    bool damaged = false;
    while (fatbin_next(&walk, &entry, &damaged)) {
        if (entry.kind != KIND_PTX || entry.architecture <= (unsigned)capability) continue;
        if (entry.architecture < least.architecture) least = entry;
    }
    if (least.payload == NULL) return NULL;
    char *text = fatbin_text_of(&least, length, result, says);
    if (text == NULL) return NULL;
    /* At the highest number a suffix fits no more. */
    if (!fatbin_text_fits(text, ARCHITECTURES - 1)) {
        free(text);
        return NULL;
    }
    snprintf(says, SOFT_FATBIN_SAYS,
             "a fat binary's PTX for compute_%u runs in place of its machine code for this device, "
             "of compute capability %d.%d\n",
             least.architecture, capability / 10, capability % 10);
    return text;
}

char *soft_fatbin_ptx(const void *image, size_t most, int capability, size_t *length, int *result,
                      bool *stands_in, char says[SOFT_FATBIN_SAYS]) {
    struct walk walk;
    struct entry packed = {.architecture = 0};
    struct held held = {.has_ptx = false};
    says[0] = '\0';
    *stands_in = false;
    *result = CUDA_ERROR_INVALID_IMAGE;
    if (!fatbin_begin(&walk, image, most)) {
        snprintf(says, SOFT_FATBIN_SAYS, "the fat binary's header is damaged or cut off\n");
        return NULL;
    }
    for (unsigned limit = (unsigned)capability;;) {
        struct entry best;
        if (!fatbin_best(walk, limit, &best, &packed, &held)) {
            snprintf(says, SOFT_FATBIN_SAYS, "an entry of the fat binary is damaged or cut off\n");
            return NULL;
        }
        if (best.payload == NULL) break;
        char *text = fatbin_text_of(&best, length, result, says);
        if (text == NULL || best.kind != KIND_PTX || fatbin_text_fits(text, capability))
            return text;
        free(text);
        if (best.architecture == 0) break;
        limit = best.architecture - 1;
    }
    /* Only a fat binary that would be refused is worth unpacking machine code for. */
    if (packed.payload != NULL && !held.has_ptx) {
        char *inner = fatbin_text_of(&packed, length, result, says);
        if (inner != NULL && *length >= CONTAINER_IDENT && soft_container_is(inner)) return inner;
        free(inner);
    }
    *result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (fatbin_serves(&held, capability)) {
        char *text = fatbin_stand_in(walk, capability, length, result, says);
        *stands_in = text != NULL;
        if (text != NULL || says[0] != '\0') return text;
    }
    fatbin_refuse(&held, "the fat binary", capability, says);
    return NULL;
}
