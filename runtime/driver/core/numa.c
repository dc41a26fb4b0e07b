/*
 * Reading /sys, and the two system calls, which the C library does not wrap.
 */
#include "numa.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tol_numa_node(const char *root, const char *pci_bus_id) {
    char path[512], bus[32] = "";
    int node = -1;
    for (size_t i = 0; i + 1 < sizeof bus && pci_bus_id[i] != '\0'; i++) {
        bus[i] = (char)tolower((unsigned char)pci_bus_id[i]);
    }
    if (bus[0] == '\0' || strchr(bus, '/') != NULL) return -1;
    /* With one node there is nothing to choose. */
    snprintf(path, sizeof path, "%s/devices/system/node/node1", root);
    FILE *file = fopen(path, "r");
    if (file == NULL) return -1;
    fclose(file);
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", root, bus);
    file = fopen(path, "r");
    if (file == NULL) return -1;
    char text[16] = "", *end = NULL;
    if (fgets(text, sizeof text, file) != NULL) {
        long number = strtol(text, &end, 10);
        if (end != text && number >= 0 && number < 1024) node = (int)number;
    }
    fclose(file);
    return node;
}

#if defined(__linux__)

#include <sys/syscall.h>
#include <unistd.h>

/* As linux/mempolicy.h has it. */
enum { PREFERRED = 1 };

struct tol_numa_policy tol_numa_prefer(int node) {
    struct tol_numa_policy policy = {0};
    enum { WORD_BITS = 8 * sizeof policy.nodes[0], BITS = 16 * WORD_BITS };
    if (node < 0 || node >= BITS) return policy;
    if (syscall(SYS_get_mempolicy, &policy.mode, policy.nodes, (unsigned long)BITS, NULL, 0ul)) {
        return policy;
    }
    unsigned long nodes[16] = {0};
    nodes[node / WORD_BITS] = 1ul << (node % WORD_BITS);
    policy.is_changed = syscall(SYS_set_mempolicy, PREFERRED, nodes, (unsigned long)BITS) == 0;
    return policy;
}

void tol_numa_restore(const struct tol_numa_policy *policy) {
    if (!policy->is_changed) return;
    (void)syscall(SYS_set_mempolicy, policy->mode, policy->nodes,
                  8ul * (unsigned long)sizeof policy->nodes);
}

#else

struct tol_numa_policy tol_numa_prefer(int node) {
    (void)node;
    return (struct tol_numa_policy){0};
}

void tol_numa_restore(const struct tol_numa_policy *policy) {
    (void)policy;
}

#endif
