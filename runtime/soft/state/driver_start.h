/*
 * What cuInit does: opens the address space and makes the devices.
 */
#ifndef SOFT_DRIVER_START_H
#define SOFT_DRIVER_START_H

#include "base/abi.h"

/* CUDA_SUCCESS the first time and whenever it has been successful before. */
CUresult soft_state_init(void);

#endif
