/*
 * The node of a device, read from a tree of files like /sys.
 */
#include "numa.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void make_folders(const char *path) {
    char folder[512];
    for (size_t i = strlen(root) + 1; path[i] != '\0'; i++) {
        if (path[i] != '/') continue;
        snprintf(folder, sizeof folder, "%.*s", (int)i, path);
        mkdir(folder, 0755);
    }
}

static void write_file(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    make_folders(path);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL, "%s", path);
    fputs(text, file);
    fclose(file);
}

static void begin(void) {
    strcpy(root, "/tmp/tollens-numa-XXXXXX");
    cr_assert(mkdtemp(root) != NULL);
    write_file("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    write_file("bus/pci/devices/0000:5e:00.0/numa_node", "-1\n");
    write_file("bus/pci/devices/0000:af:00.0/numa_node", "what\n");
    write_file("bus/pci/devices/0000:b1:00.0/numa_node", "1023\n");
    write_file("bus/pci/devices/0000:b2:00.0/numa_node", "1024\n");
}

static void end(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    cr_assert_eq(system(command), 0);
}

Test(numa, the_node_is_what_the_files_say, .init = begin, .fini = end) {
    cr_assert_eq(tol_numa_node(root, "0000:3b:00.0"), -1, "there is one node only");
    write_file("devices/system/node/node1/online", "");
    cr_assert_eq(tol_numa_node(root, "0000:3b:00.0"), 1);
    cr_assert_eq(tol_numa_node(root, "0000:3B:00.0"), 1, "drivers write it in capitals, too");
    cr_assert_eq(tol_numa_node(root, "0000:b1:00.0"), 1023);
}

Test(numa, what_is_not_known_is_no_node, .init = begin, .fini = end) {
    write_file("devices/system/node/node1/online", "");
    cr_assert_eq(tol_numa_node(root, "0000:5e:00.0"), -1);
    cr_assert_eq(tol_numa_node(root, "0000:af:00.0"), -1);
    cr_assert_eq(tol_numa_node(root, "0000:b2:00.0"), -1, "a mask has 1024 bits");
    cr_assert_eq(tol_numa_node(root, "0000:ff:00.0"), -1);
    cr_assert_eq(tol_numa_node(root, ""), -1);
    cr_assert_eq(tol_numa_node(root, "../../../etc"), -1);
}

Test(numa, a_preference_ends_where_it_is_restored) {
    struct tol_numa_policy before = tol_numa_prefer(0);
    if (!before.is_changed) cr_skip_test("the kernel takes no memory policy here");
    struct tol_numa_policy inner = tol_numa_prefer(0);
    cr_assert(inner.is_changed && inner.mode != before.mode);
    tol_numa_restore(&inner);
    tol_numa_restore(&before);
    struct tol_numa_policy after = tol_numa_prefer(0);
    cr_assert_eq(after.mode, before.mode);
    cr_assert_eq(memcmp(after.nodes, before.nodes, sizeof after.nodes), 0);
    tol_numa_restore(&after);
    cr_assert_not(tol_numa_prefer(-1).is_changed);
}
