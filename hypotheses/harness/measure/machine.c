/*
 * Asking the driver, /proc, the distribution and git.
 */
#include "machine.h"

#include "harness/clock.h"
#include "files/atomic_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Copies what follows separator in the first line of a file that begins with key. */
static void machine_find_line(const char *path, const char *key, char separator, char *value,
                              size_t bytes) {
    char line[512];
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        char *text = strchr(line, separator);
        if (text == NULL) continue;
        text += 1 + strspn(text + 1, " \t\"");
        text[strcspn(text, "\"\n")] = '\0';
        snprintf(value, bytes, "%s", text);
        break;
    }
    if (file != NULL) fclose(file);
}

/* The first line that a command prints; "" if it fails. */
static void first_line(const char *command, char *text, size_t bytes) {
    text[0] = '\0';
    FILE *output = popen(command, "r");
    if (output == NULL) return;
    if (fgets(text, (int)bytes, output) == NULL) text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (pclose(output) != 0) text[0] = '\0';
}

/* From git in a checkout; from the file COMMIT, "ID clean" or "ID dirty", in a bundle. */
static void read_commit(struct hyp_machine *machine) {
    char command[4600], path[4300], text[256];
    const char *root = hyp_session_root();
    if (root == NULL || strchr(root, '\'') != NULL) return;
    snprintf(path, sizeof path, "%s/COMMIT", root);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        char state[16] = "";
        if (fscanf(file, "%63s %15s", machine->commit, state) < 1) machine->commit[0] = '\0';
        machine->dirty = strcmp(state, "clean") != 0;
        fclose(file);
        return;
    }
    /* git finds a repository above the root, too, and that would be another project's. */
    snprintf(path, sizeof path, "%s/.git", root);
    if (access(path, R_OK) != 0) return;
    snprintf(command, sizeof command, "git -C '%s' rev-parse HEAD 2>/dev/null", root);
    first_line(command, machine->commit, sizeof machine->commit);
    snprintf(command, sizeof command, "git -C '%s' status --porcelain 2>/dev/null", root);
    first_line(command, text, sizeof text);
    machine->dirty = text[0] != '\0';
}

tol_status hyp_machine_read(const struct hyp_session *session, struct hyp_machine *machine) {
    struct utsname system;
    struct tol_driver *driver = NULL;
    memset(machine, 0, sizeof *machine);
    machine->begin_s = hyp_clock_day_s();
    if (session->node != NULL) {
        snprintf(machine->node, sizeof machine->node, "%s", session->node);
    }
    machine->kind = session->kind;
    tol_status status = hyp_session_open(&machine->kind, &driver);
    if (status != TOL_OK) return status;
    machine->driver_version = tol_driver_version(driver);
    status = tol_device_count(driver, &machine->device_count);
    if (status == TOL_OK) status = tol_device_read(driver, session->ordinal, &machine->device);
    tol_driver_close(driver);
    if (status != TOL_OK) return status;

    machine_find_line("/proc/cpuinfo", "model name", ':', machine->processor,
                      sizeof machine->processor);
    machine_find_line("/etc/os-release", "PRETTY_NAME", '=', machine->system,
                      sizeof machine->system);
    machine->processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    machine->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (uname(&system) == 0) {
        snprintf(machine->kernel, sizeof machine->kernel, "%s %s %s", system.sysname,
                 system.release, system.machine);
    }
    snprintf(machine->compiler, sizeof machine->compiler, "%s", COMPILER);
    read_commit(machine);
    return TOL_OK;
}

bool hyp_machine_write(const struct hyp_machine *machine, const char *folder) {
    char path[1024];
    const struct tol_device *device = &machine->device;
    json_t *gpu = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:I, s:i, s:i, s:i, s:b}", "kind",
        hyp_device_kind_name(machine->kind), "name", device->name, "uuid", device->uuid, "ordinal",
        device->ordinal, "compute_capability", device->compute_capability, "memory_bytes",
        (json_int_t)device->memory_bytes, "multiprocessors", device->multiprocessors, "clock_khz",
        device->clock_khz, "memory_clock_khz", device->memory_clock_khz, "ecc", (int)device->ecc);
    json_t *object =
        json_pack("{s:i, s:s?, s:o, s:{s:i, s:i}, s:{s:s, s:i, s:I, s:s, s:s}, s:s, s:b, s:s, s:f}",
                  "schema", 1, "node", machine->node[0] != '\0' ? machine->node : NULL, "device",
                  gpu, "driver", "version", machine->driver_version, "devices",
                  machine->device_count, "host", "processor", machine->processor, "processors",
                  machine->processors, "memory_bytes", (json_int_t)machine->memory_bytes, "kernel",
                  machine->kernel, "system", machine->system, "commit", machine->commit, "dirty",
                  (int)machine->dirty, "compiler", machine->compiler, "begin_s", machine->begin_s);
    char *text = object != NULL ? json_dumps(object, JSON_INDENT(2)) : NULL;
    json_decref(object);
    if (text == NULL) return hyp_fail("the description of the machine is not text");
    snprintf(path, sizeof path, "%s/machine.json", folder);
    bool ok = hyp_file_write(path, text);
    free(text);
    return ok;
}
