/*
 * What is said of the sources that a program was built from: the commit, and whether they differ
 * from it. Evidence that names a commit whose sources were changed would be evidence for nothing.
 */
#include "machine.h"
#include "program/shell_scene.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(machine, .init = program_begin, .fini = program_end);

/* Runs a command in the folder, which then is the root, and describes the machine. */
static struct hyp_machine read_after(const char *command) {
    char line[1024];
    struct hyp_machine machine;
    const struct hyp_session session = {.kind = HYP_DEVICE_SOFT};
    snprintf(line, sizeof line, "mkdir -p \"$D/fixtures/ptx\" && cd \"$D\" && %s", command);
    cr_assert_eq(program_shell(line), 0, "%s: %s", command, program_output);
    cr_assert_eq(program_shell("printf %s \"$D\""), 0);
    setenv("TOLLENS_ROOT", program_output, 1);
    cr_assert_eq(hyp_machine_read(&session, &machine), TOL_OK, "%s", tol_message());
    unsetenv("TOLLENS_ROOT");
    return machine;
}

Test(machine, a_bundle_names_its_commit_and_its_state) {
    static const struct {
        const char *text, *commit;
        bool dirty;
    } files[] = {{"abc123 clean", "abc123", false},
                 {"abc123 dirty", "abc123", true},
                 {"abc123", "abc123", true}, /* nobody said that it is clean */
                 {"", "", true}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        program_write("COMMIT", files[i].text);
        struct hyp_machine machine = read_after("true");
        cr_assert_str_eq(machine.commit, files[i].commit);
        cr_assert_eq(machine.dirty, files[i].dirty, "\"%s\"", files[i].text);
    }
}

#define COMMIT_ONE                                                                                 \
    "git init -q && echo one >file && git add file && git -c user.name=me -c user.email=me "       \
    "-c commit.gpgsign=false commit -q -m one"

Test(machine, a_checkout_is_dirty_when_a_file_differs) {
    if (program_shell("git --version") != 0) cr_skip_test("there is no git");
    struct hyp_machine machine = read_after(COMMIT_ONE);
    cr_assert_eq(strlen(machine.commit), 40, "\"%s\"", machine.commit);
    cr_assert_eq(strspn(machine.commit, "0123456789abcdef"), 40);
    cr_assert_not(machine.dirty);
    char commit[64];
    memcpy(commit, machine.commit, sizeof commit);
    machine = read_after("echo two >file");
    cr_assert_str_eq(machine.commit, commit);
    cr_assert(machine.dirty);
}

Test(machine, without_a_checkout_no_commit_is_named) {
    if (program_shell("git --version") != 0) cr_skip_test("there is no git");
    /* A repository further up is another project's. */
    read_after(COMMIT_ONE " && mkdir -p in/fixtures/ptx \"a''b/fixtures/ptx\" ab && touch other && "
                          "cp -r .git \"a''b\" && cp -r .git ab");
    /* And a quote in a name does not make the shell see another folder. */
    static const char *const roots[] = {"/in", "/a''b"};
    const size_t length = strlen(program_output);
    for (size_t i = 0; i < 2; i++) {
        struct hyp_machine machine;
        const struct hyp_session session = {.kind = HYP_DEVICE_SOFT};
        strcpy(program_output + length, roots[i]);
        setenv("TOLLENS_ROOT", program_output, 1);
        cr_assert_eq(hyp_machine_read(&session, &machine), TOL_OK, "%s", tol_message());
        cr_assert(machine.commit[0] == '\0' && !machine.dirty, "%s: %s", roots[i], machine.commit);
    }
}

Test(machine, the_host_is_described) {
    struct hyp_machine machine = read_after("true");
    cr_assert(machine.processors > 0 && machine.memory_bytes > (uint64_t)1 << 20);
    cr_assert(strncmp(machine.kernel, "Linux ", 6) == 0, "\"%s\"", machine.kernel);
    cr_assert_str_empty(machine.node, "no machine is named unless the environment names it");
    cr_assert(machine.device_count > 0 && machine.driver_version >= 12000);
    cr_assert(machine.begin_s > 1.7e9 && machine.kind == HYP_DEVICE_SOFT);
    cr_assert(strstr(machine.system, "\"") == NULL && strchr(machine.system, '\n') == NULL);
    cr_assert(strstr(machine.compiler, __VERSION__) != NULL, "\"%s\"", machine.compiler);
}
