/*
 * The work of cuInit: opens the address space and creates the devices.
 */
#ifndef SOFT_DRIVER_START_H
#define SOFT_DRIVER_START_H

#include "base/abi.h"

/* CUDA_SUCCESS the first time, and if it has succeeded before. */
CUresult soft_state_init(void);

#endif
