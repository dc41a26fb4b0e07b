/*
 * Machine: the machine of a run, for machine.json.
 *
 * It describes what measurements depend on, and nothing that identifies a person or a place: no
 * host name, no user, no path. The device's UUID tells one GPU from another. The machine's
 * name is recorded only if TOLLENS_NODE sets it, as tests of a fleet do.
 */
#ifndef HYP_MACHINE_H
#define HYP_MACHINE_H

#include "harness/session.h"

struct hyp_machine {
    enum hyp_device_kind kind; /* cuda or soft */
    char node[HYP_NODE_BYTES_MAX + 1]; /* "": not named */
    struct tol_device device;
    int driver_version; /* as cuDriverGetVersion returns it */
    int device_count;
    char processor[128];
    int processors;
    uint64_t memory_bytes;
    char kernel[256]; /* the operating system's */
    char system[128]; /* its distribution */
    char commit[64];  /* of the sources; "" if unknown */
    bool dirty;       /* the sources differ from the commit */
    char compiler[128];
    double begin_s; /* seconds since 1970, UTC */
};

/* Describes the host and the device of a session. On failure tol_message() says why the device
 * is not available. */
tol_status hyp_machine_read(const struct hyp_session *session, struct hyp_machine *machine);

/* Writes FOLDER/machine.json. false: hyp_error(). */
bool hyp_machine_write(const struct hyp_machine *machine, const char *folder);

#endif
