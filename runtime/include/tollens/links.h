/*
 * Links: what NVML reports about a device's PCI Express link and its NVLinks, and what a PCI
 * Express link can carry at most.
 *
 * An idle device may lower the generation of its PCI Express link to save power: read the link
 * while copies run, or use the maxima.
 *
 * Threads: any. Source: NVML API Reference, "Device Queries", "Field Value Queries", "NvLink
 * Methods"; PCI Express Base Specification 5.0, sections 2.2 and 4.2.
 */
#ifndef TOLLENS_LINKS_H
#define TOLLENS_LINKS_H

#include "status.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_context;

/* A number that NVML does not report is -1. */
struct tol_links {
    bool is_told;                    /* false: NVML gave no report, and all below is unknown */
    char reason[160];                /* why there is no report; "" if there is one */
    int pcie_generation, pcie_width; /* now; the width in lanes */
    int pcie_generation_max, pcie_width_max; /* of this device in this machine */
    int nvlinks;                             /* active ones; 0: none */
    int nvlink_version;                      /* of the first active one, in tenths: 40 is 4.0 */
    int64_t nvlink_mb_per_s; /* of all active ones, in each direction, in 10^6 bytes */
    /* Data over all NVLinks since the driver was loaded, in units of 1024 bytes. */
    int64_t nvlink_sent_kib, nvlink_received_kib;
};

/* Reads the links of the context's device. Returns TOL_OK where NVML gives no report, too.
 * TOL_INVALID_ARGUMENT: NULL. */
TOL_API tol_status tol_links_read(const struct tol_context *context, struct tol_links *links);

/* How copies cross a PCI Express link. */
enum tol_pcie_direction {
    TOL_PCIE_TO_HOST,  /* the device writes: memory write packets */
    TOL_PCIE_TO_DEVICE /* the device reads: completions with data */
};

/*
 * The most bytes per second that a PCI Express link of generation 1 to 5 carries for copies: what
 * is left of its symbols after the coding (8b/10b up to generation 2, 128b/130b from 3 on) and
 * after the framing, sequence number, header and checksum of each packet: 24 bytes for each write
 * with a 64-bit address and 20 for each completion (the same in generations 1 and 2). payload_bytes
 * is the maximum payload of a packet; 0 means 256, which hosts commonly set. Acknowledgements and
 * flow control, some per cent more, are not subtracted. Returns 0 for another generation.
 */
TOL_API double tol_pcie_peak(int generation, int width, enum tol_pcie_direction direction,
                             unsigned payload_bytes);

#ifdef __cplusplus
}
#endif
#endif
