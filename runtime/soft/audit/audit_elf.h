/*
 * Audit ELF: reads an object file that may be anything: its sections, functions, segments and what
 * the loader reads. It allocates nothing, and reads no byte outside the file.
 *
 * Source: the System V ABI, "Object files" and "Program loading and dynamic linking". Objects of 64
 * bits of this processor alone; a file with extended numbering of sections is read without them.
 */
#ifndef AUDIT_ELF_H
#define AUDIT_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrows the bytes, which must stay as they are. Any thread may read it. */
struct audit_elf {
    const unsigned char *bytes;
    size_t size;
    uint64_t sections, section_count; /* 0 sections if their table is not inside the file */
    uint64_t segments, segment_count;
    uint64_t names; /* the index of the section with the sections' names */
};

/* false: this is no program or shared library of this processor, or its segments are not inside. */
bool audit_elf_open(struct audit_elf *elf, const void *bytes, size_t size);

bool audit_elf_has_section(const struct audit_elf *elf, const char *name);

/* A part of the file that is mapped. */
struct audit_segment {
    uint32_t type, flags;        /* PT_LOAD, ...; PF_X, ... */
    uint64_t address, bytes;     /* where the loader maps it, from the object's base */
    uint64_t offset, file_bytes; /* inside the file */
};

/* false: there is no such segment. One that is not inside the file has no bytes. */
bool audit_elf_segment(const struct audit_elf *elf, uint64_t index, struct audit_segment *segment);

struct audit_function {
    const char *name; /* in the file */
    uint64_t address, bytes;
    bool is_defined;  /* here; otherwise another object must define it */
    bool is_exported; /* it is a row of .dynsym */
};
struct audit_cursor { /* begins as zeros */
    uint64_t section, symbol;
};

/* Finds the next function of .symtab and .dynsym, or the next undefined symbol. A function that is
 * in both is found twice. The code of a defined function is inside an executable segment. false:
 * there are no more. */
bool audit_elf_function(const struct audit_elf *elf, struct audit_cursor *at,
                        struct audit_function *function);

/* The loader that the program asks for; NULL: none, or it is not inside the file. */
const char *audit_elf_loader(const struct audit_elf *elf);

/* The text of the nth entry of a tag: DT_NEEDED, DT_RPATH, DT_RUNPATH. NULL: there is none. */
const char *audit_elf_dynamic(const struct audit_elf *elf, int64_t tag, unsigned nth);

/* What of the CUDA runtime was linked into an object. */
enum audit_runtime {
    AUDIT_RUNTIME_NONE,
    AUDIT_RUNTIME_NAMED,   /* with the names of its functions */
    AUDIT_RUNTIME_STRIPPED /* there is device code, and nothing says what registers it */
};
enum audit_runtime audit_elf_runtime(const struct audit_elf *elf);

#endif
