/*
 * Choice dump: what the operations launch for drawn problems, as text, on devices that need not be
 * there. Nothing runs: the interposer answers for the driver. Internal: not installed.
 */
#ifndef KN_CHOICE_DUMP_H
#define KN_CHOICE_DUMP_H

#include "tollens.h"

/* What choices may depend on. */
struct choice_device {
    const char *name;
    int compute_capability, multiprocessors;
    int shared_bytes_per_block_optin, shared_bytes_per_multiprocessor;
};

enum { CHOICE_DEVICES = 6 };
extern const struct choice_device choice_devices[CHOICE_DEVICES];

/* The operations that are drawn: gemm, grouped, ... */
enum { CHOICE_OPERATIONS = 13 };
extern const char *const choice_operations[CHOICE_OPERATIONS];

struct choice_dump;

/* Opens the soft device at a path with an interposer that launches nothing. One at a time, since a
 * process has one interposer. Fails as tol_driver_open and tol_interpose_install do. */
tol_status choice_dump_open(const char *library, struct choice_dump **dump);
void choice_dump_close(struct choice_dump *dump);

/* Draws problem `index` of an operation and writes what the call on the device does: its status,
 * and for each launch the kernel, its grid, threads, shared memory and number of attributes, and a
 * hash of the tensor maps. The same index draws the same problem for every device. The call is made
 * twice, first without plans and then with those of the first; a second that differs is written
 * too. */
tol_status choice_dump_line(struct choice_dump *dump, int device, int operation, int index,
                            char *text, size_t bytes);

#endif
