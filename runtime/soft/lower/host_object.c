/*
 * Reads archives and ELF objects. Each offset and size is compared with the available bytes before
 * it is used.
 */
#include "host_object.h"

#include "fatbin.h"
#include "tollens/cuda_abi.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char archive_magic[] = "!<arch>\n";
enum { ARCHIVE_MAGIC = 8, MEMBER_HEADER = 60, MEMBER_NAME = 256 };
enum { ELF_HEADER = 64, SECTION_HEADER = 64, MACHINE_CUDA = 190, SECTION_NOBITS = 8 };

struct bytes {
    const unsigned char *at;
    size_t count;
};

static uint64_t host_object_number(const unsigned char *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = bytes; i > 0; i--) value = value << 8 | at[i - 1];
    return value;
}

/* A part of the bytes. false: it is not inside. */
static bool host_object_cut(struct bytes whole, uint64_t offset, uint64_t count,
                            struct bytes *part) {
    if (offset > whole.count || count > whole.count - offset) return false;
    *part = (struct bytes){whole.at + offset, (size_t)count};
    return true;
}

/* ---- objects ---- */

/* Of 64 bits, little-endian, and not for a GPU. */
static bool is_object(struct bytes file) {
    static const unsigned char elf[] = {0x7f, 'E', 'L', 'F', 2, 1};
    return file.count >= ELF_HEADER && memcmp(file.at, elf, sizeof elf) == 0 &&
           host_object_number(file.at + 18, 2) != MACHINE_CUDA;
}

struct section {
    uint64_t name, type, offset, bytes, link;
};

static bool read_section(struct bytes file, uint64_t table, uint64_t index, struct section *to) {
    struct bytes header;
    if (index > file.count / SECTION_HEADER) return false;
    if (!host_object_cut(file, table, (index + 1) * SECTION_HEADER, &header)) return false;
    const unsigned char *at = header.at + index * SECTION_HEADER;
    *to = (struct section){.name = host_object_number(at, 4),
                           .type = host_object_number(at + 4, 4),
                           .offset = host_object_number(at + 24, 8),
                           .bytes = host_object_number(at + 32, 8),
                           .link = host_object_number(at + 40, 4)};
    return true;
}

static bool host_object_is_named(struct bytes names, uint64_t offset, const char *name) {
    struct bytes text;
    const size_t length = strlen(name) + 1;
    return host_object_cut(names, offset, length, &text) && memcmp(text.at, name, length) == 0;
}

static int visit_section(struct bytes section, const char *member, soft_host_object_visit *visit,
                         void *data) {
    enum { ALIGNMENT = 8 };
    size_t at = 0;
    while (section.count - at >= ALIGNMENT) {
        const unsigned char *image = section.at + at;
        const size_t bytes = soft_fatbin_bytes(image, section.count - at);
        if (bytes == 0) {
            at += ALIGNMENT;
            continue;
        }
        const int result = visit(data, member, image, bytes);
        if (result != CUDA_SUCCESS) return result;
        const size_t next = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (next >= section.count - at) break;
        at += next;
    }
    return CUDA_SUCCESS;
}

static int walk_object(struct bytes file, const char *member, soft_host_object_visit *visit,
                       void *data) {
    const uint64_t table = host_object_number(file.at + 40, 8);
    uint64_t count = host_object_number(file.at + 60, 2),
             names_index = host_object_number(file.at + 62, 2);
    struct section first, section;
    struct bytes names, bytes;
    if (table == 0) return CUDA_SUCCESS;
    if (!read_section(file, table, 0, &first)) return CUDA_ERROR_INVALID_IMAGE;
    /* Numbers too large for the header are in the first section. */
    if (count == 0) count = first.bytes;
    if (names_index == 0xffff) names_index = first.link;
    if (!read_section(file, table, names_index, &section) ||
        !host_object_cut(file, section.offset, section.bytes, &names)) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    for (uint64_t i = 1; i < count; i++) {
        if (!read_section(file, table, i, &section)) return CUDA_ERROR_INVALID_IMAGE;
        if (section.type == SECTION_NOBITS) continue;
        if (!host_object_is_named(names, section.name, ".nv_fatbin") &&
            !host_object_is_named(names, section.name, "__nv_relfatbin")) {
            continue;
        }
        if (!host_object_cut(file, section.offset, section.bytes, &bytes))
            return CUDA_ERROR_INVALID_IMAGE;
        const int result = visit_section(bytes, member, visit, data);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

/* ---- archives ---- */

static bool is_archive(struct bytes file) {
    return file.count >= ARCHIVE_MAGIC && memcmp(file.at, archive_magic, ARCHIVE_MAGIC) == 0;
}

/* A decimal number followed by blanks. false: it is none. */
static bool read_decimal(const unsigned char *at, size_t digits, uint64_t *value) {
    size_t i = 0;
    *value = 0;
    for (; i < digits && at[i] >= '0' && at[i] <= '9'; i++) *value = *value * 10 + (at[i] - '0');
    return i > 0 && (i == digits || at[i] == ' ');
}

/* The name of a member: in its header, up to a slash or blanks; or, if the header has a slash and a
 * number, in the table of long names at that offset, up to a slash. */
static void host_object_read_name(const unsigned char *header, struct bytes long_names,
                                  char name[MEMBER_NAME]) {
    enum { HEADER_NAME = 16 };
    struct bytes text = {header, HEADER_NAME};
    uint64_t offset = 0;
    if (header[0] == '/' && read_decimal(header + 1, HEADER_NAME - 1, &offset) &&
        offset < long_names.count) {
        text = (struct bytes){long_names.at + offset, long_names.count - offset};
    }
    size_t length = 0;
    while (length < text.count && length + 1 < MEMBER_NAME && text.at[length] != '/' &&
           text.at[length] != '\n' && text.at[length] != '\0') {
        name[length] = (char)text.at[length];
        length++;
    }
    while (length > 0 && name[length - 1] == ' ') length--;
    name[length] = '\0';
}

static int walk_archive(struct bytes file, soft_host_object_visit *visit, void *data) {
    struct bytes header, member, long_names = {NULL, 0};
    char name[MEMBER_NAME];
    uint64_t size = 0;
    size_t at = ARCHIVE_MAGIC;
    while (at < file.count) {
        if (!host_object_cut(file, at, MEMBER_HEADER, &header) || header.at[58] != '`' ||
            !read_decimal(header.at + 48, 10, &size) ||
            !host_object_cut(file, at + MEMBER_HEADER, size, &member)) {
            return CUDA_ERROR_INVALID_IMAGE;
        }
        if (memcmp(header.at, "// ", 3) == 0) long_names = member;
        host_object_read_name(header.at, long_names, name);
        if (is_object(member)) {
            const int result = walk_object(member, name, visit, data);
            if (result != CUDA_SUCCESS) return result;
        }
        at += MEMBER_HEADER + (size_t)size + (size_t)(size & 1); /* members begin at even offsets */
    }
    return CUDA_SUCCESS;
}

bool soft_host_object_is(const void *bytes, size_t count) {
    const struct bytes file = {bytes, count};
    return is_archive(file) || is_object(file);
}

int soft_host_object_walk(const void *bytes, size_t count, soft_host_object_visit *visit,
                          void *data) {
    const struct bytes file = {bytes, count};
    if (is_archive(file)) return walk_archive(file, visit, data);
    return is_object(file) ? walk_object(file, "", visit, data) : CUDA_ERROR_INVALID_IMAGE;
}
