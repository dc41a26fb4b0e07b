/*
 * NUMA: which node of the machine's memory is nearest to a device, and allocating pages there.
 *
 * Linux reports the node in /sys and accepts the calling thread's memory policy. On other systems,
 * and on machines with one node, nothing is requested.
 */
#ifndef TOLLENS_NUMA_H
#define TOLLENS_NUMA_H

#include <stdbool.h>

/* The node of the PCI device, "0000:3b:00.0", by the files below root ("/sys"); -1: not known, or
 * there is no other node. */
int tol_numa_node(const char *root, const char *pci_bus_id);

/* What the calling thread's policy was. */
struct tol_numa_policy {
    bool is_changed;
    int mode;
    unsigned long nodes[16];
};

/* New pages of the calling thread come from node, if it has free pages; -1 changes nothing. */
struct tol_numa_policy tol_numa_prefer(int node);
void tol_numa_restore(const struct tol_numa_policy *policy);

#endif
