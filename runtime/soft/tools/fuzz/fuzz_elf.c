/*
 * Fuzz target: any bytes as an object that the audit library of `tollens soft` reads. Every name is
 * a text inside the file, and every function that is defined lies inside a segment of code, of
 * which the file has all bytes.
 */
#include "fuzz.h"

#include "audit/audit_elf.h"

#include <elf.h>
#include <string.h>

static void elf_check(bool holds, const char *what) {
    if (!holds) fuzz_fail(what, 0, "");
}

static void check_text(const struct audit_elf *elf, const char *text) {
    const char *first = (const char *)elf->bytes;
    elf_check(text >= first && text < first + elf->size &&
                  strlen(text) < elf->size - (size_t)(text - first),
              "a text outside the file");
}

static bool is_in_code(const struct audit_elf *elf, const struct audit_function *function) {
    struct audit_segment segment;
    for (uint64_t i = 0; audit_elf_segment(elf, i, &segment); i++) {
        elf_check(segment.offset <= elf->size && segment.file_bytes <= elf->size - segment.offset,
                  "a segment outside the file");
        if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0 &&
            function->address >= segment.address &&
            function->address + function->bytes <= segment.address + segment.file_bytes) {
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int64_t tags[] = {DT_NEEDED, DT_RPATH, DT_RUNPATH};
    struct audit_elf elf;
    struct audit_cursor at = {0};
    struct audit_function function;
    const char *text = NULL;
    if (!audit_elf_open(&elf, data, size)) return 0;
    bool registers = false;
    while (audit_elf_function(&elf, &at, &function)) {
        check_text(&elf, function.name);
        elf_check(!function.is_defined || is_in_code(&elf, &function), "a function outside code");
        registers |= function.is_defined && strcmp(function.name, "__cudaRegisterFatBinary") == 0;
    }
    elf_check(registers == (audit_elf_runtime(&elf) == AUDIT_RUNTIME_NAMED),
              "a runtime by another name");
    if ((text = audit_elf_loader(&elf)) != NULL) check_text(&elf, text);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        for (unsigned nth = 0; (text = audit_elf_dynamic(&elf, tags[i], nth)) != NULL; nth++)
            check_text(&elf, text);
    }
    return 0;
}
