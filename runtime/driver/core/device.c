/*
 * Reading a device: one table maps attributes to fields.
 */
#include "tollens/device.h"

#include "check.h"
#include "libcuda_state.h"

#include <stdio.h>
#include <string.h>

/* An attribute that is stored in an int, or in a bool, of struct tol_device. */
struct field {
    CUdevice_attribute attribute;
    size_t offset;
    bool is_bool;
};

#define NUMBER(field, attribute)                                                                   \
    { attribute, offsetof(struct tol_device, field), false }
#define FLAG(field, attribute)                                                                     \
    { attribute, offsetof(struct tol_device, field), true }

static const struct field fields[] = {
    NUMBER(multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    NUMBER(warp_threads, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
    NUMBER(block_threads_max, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    NUMBER(block_max[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
    NUMBER(block_max[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
    NUMBER(block_max[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
    NUMBER(grid_max[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
    NUMBER(grid_max[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
    NUMBER(grid_max[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
    NUMBER(multiprocessor_threads_max, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
    NUMBER(multiprocessor_blocks_max, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
    NUMBER(shared_bytes_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
    NUMBER(shared_bytes_per_block_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    NUMBER(shared_bytes_per_multiprocessor,
           CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    NUMBER(registers_per_block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
    NUMBER(constant_bytes, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
    NUMBER(l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
    NUMBER(clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    NUMBER(memory_clock_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
    NUMBER(memory_bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
    NUMBER(copy_engines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
    FLAG(concurrent_kernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS),
    FLAG(ecc, CU_DEVICE_ATTRIBUTE_ECC_ENABLED),
    FLAG(unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING),
    FLAG(cooperative_launch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH),
    FLAG(virtual_memory_management, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
    FLAG(memory_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
    FLAG(cluster_launch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH),
};

static tol_status read_fields(const struct tol_driver_table *cu, CUdevice handle,
                              struct tol_device *device) {
    tol_status status = TOL_OK;
    int major = 0, minor = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int value = 0;
        TOL_CU(cu, cuDeviceGetAttribute, (&value, fields[i].attribute, handle),
               "reading attribute %d of device %d", (int)fields[i].attribute, device->ordinal);
        void *place = (char *)device + fields[i].offset;
        bool flag = value != 0;
        if (fields[i].is_bool) {
            memcpy(place, &flag, sizeof flag);
        } else {
            memcpy(place, &value, sizeof value);
        }
    }
    TOL_CU(cu, cuDeviceGetAttribute, (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle),
           "reading the compute capability of device %d", device->ordinal);
    TOL_CU(cu, cuDeviceGetAttribute, (&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle),
           "reading the compute capability of device %d", device->ordinal);
    device->compute_capability = 10 * major + minor;
out:
    return status;
}

/* RFC 9562, section 4: groups of 8, 4, 4, 4 and 12 hexadecimal digits in the bytes' order. */
static void write_uuid(const CUuuid *uuid, char *text, size_t bytes) {
    size_t used = (size_t)snprintf(text, bytes, "GPU");
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, bytes - used, "%s%02x", begins_group ? "-" : "",
                                 (unsigned)(unsigned char)uuid->bytes[i]);
    }
}

tol_status tol_device_count(const struct tol_driver *driver, int *count) {
    tol_status status = TOL_OK;
    int value = 0;
    TOL_CHECK(driver != NULL && count != NULL, TOL_INVALID_ARGUMENT,
              "tol_device_count: an argument is NULL");
    TOL_CU(driver->functions, cuDeviceGetCount, (&value), "counting devices");
    *count = value;
out:
    return status;
}

tol_status tol_device_read(const struct tol_driver *driver, int ordinal,
                           struct tol_device *result) {
    tol_status status = TOL_OK;
    struct tol_device device = {.ordinal = ordinal};
    size_t memory_bytes = 0;
    CUdevice handle = 0;
    CUuuid uuid = {{0}};
    int count = 0;

    TOL_CHECK(driver != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_device_read: an argument is NULL");
    TOL_TRY(tol_device_count(driver, &count));
    TOL_CHECK(ordinal >= 0 && ordinal < count, TOL_NO_DEVICE,
              "device %d does not exist: the driver reports %d devices", ordinal, count);
    TOL_CU(driver->functions, cuDeviceGet, (&handle, ordinal), "getting the handle of device %d",
           ordinal);
    TOL_CU(driver->functions, cuDeviceGetName, (device.name, (int)sizeof device.name, handle),
           "reading the name of device %d", ordinal);
    TOL_CU(driver->functions, cuDeviceTotalMem_v2, (&memory_bytes, handle),
           "reading the memory size of device %d", ordinal);
    device.memory_bytes = memory_bytes;
    TOL_CU(driver->functions, cuDeviceGetPCIBusId,
           (device.pci_bus_id, (int)sizeof device.pci_bus_id, handle),
           "reading the PCI address of device %d", ordinal);
    TOL_CU(driver->functions, cuDeviceGetUuid_v2, (&uuid, handle), "reading the UUID of device %d",
           ordinal);
    write_uuid(&uuid, device.uuid, sizeof device.uuid);
    TOL_TRY(read_fields(driver->functions, handle, &device));
    device.soft = driver->is_soft;
    *result = device;
out:
    return status;
}
