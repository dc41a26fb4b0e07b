/*
 * Choices: which kernels the operations launch for drawn problems on six devices, as hashes.
 */
#include "choice_dump_scene.h"
#include "fnv.h"

#include "test/test_device.h"

#include <inttypes.h>
#include <string.h>

TestSuite(choice, .fini = test_end);

enum { PROBLEMS = 500 };

/* In the order of choice_operations and choice_devices. A kernel that is picked, a grid or a tensor
 * map that changes for one problem changes a hash: where that is wanted, put in what the test says,
 * and say in the commit which problems it is. */
static const uint64_t expected[CHOICE_OPERATIONS][CHOICE_DEVICES] = {
    /* gemm */
    {0x48731380781e3115, 0x43272703c8f6ceca, 0x3521269988906ac0, 0xf77b3ea25ab5f2bb,
     0x41179183154065e7, 0x41179183154065e7},
    /* grouped */
    {0x3efbe9dacc1a9d86, 0xaebde246f211cdcd, 0xaebde246f211cdcd, 0xef317ebad8c6adfa,
     0x78ac6af58d0d62e8, 0x78ac6af58d0d62e8},
    /* attention */
    {0x26b5f8e8fdf272d6, 0x146070b033e20c6b, 0x9791183ef3cdc804, 0x34272361a29584da,
     0xc2b8a992028025b9, 0xc2b8a992028025b9},
    /* backward */
    {0xf829a57fa768d126, 0x8e65729b61309391, 0x8e65729b61309391, 0x215707d89087771c,
     0x215707d89087771c, 0x215707d89087771c},
    /* packed */
    {0x1b0a3df8ed9016fd, 0xbe50fbfa3b522960, 0xbe50fbfa3b522960, 0x0753e9c18560550c,
     0x0753e9c18560550c, 0x0753e9c18560550c},
    /* paged */
    {0xda3547441af984f7, 0xd8be69edfc7fa353, 0xd8be69edfc7fa353, 0xf1f0f2ac447e460e,
     0xf1f0f2ac447e460e, 0xf1f0f2ac447e460e},
    /* e4m3 */
    {0x23f4113454e971f0, 0x23f4113454e971f0, 0x23f4113454e971f0, 0x012dac7255fd5da7,
     0x012dac7255fd5da7, 0x012dac7255fd5da7},
    /* softmax */
    {0x40fff47e6138e6a3, 0x40fff47e6138e6a3, 0x40fff47e6138e6a3, 0xfaba01e6e10575e3,
     0x61954c6ad8b4144f, 0x61954c6ad8b4144f},
    /* norm */
    {0x34f2aa1f13e298d4, 0xcf30701023cf99d1, 0xcf30701023cf99d1, 0xd047cec0edd8d3f8,
     0x873833ed649b9ddb, 0x873833ed649b9ddb},
    /* argmax */
    {0xea33e039afe42cd4, 0xea33e039afe42cd4, 0xea33e039afe42cd4, 0x4ff58d5260b0c276,
     0x4ff58d5260b0c276, 0x4ff58d5260b0c276},
    /* top_k */
    {0x1dbc1bc8dfe365b9, 0x1dbc1bc8dfe365b9, 0x1dbc1bc8dfe365b9, 0x686a17f9da00e78f,
     0x686a17f9da00e78f, 0x686a17f9da00e78f},
    /* quant */
    {0xed7ddc817458ef60, 0x388ed46c9dd6e143, 0x388ed46c9dd6e143, 0x92d5e5b34b2f6b69,
     0xeb9eebadf7037a42, 0xeb9eebadf7037a42},
    /* linear */
    {0xfe7e58ac4a73bb35, 0x21f739c77a0ac81e, 0x3bc8e1a8d6139b7d, 0x7b09aee4c09caea1,
     0xb917b2ee5a966088, 0xb917b2ee5a966088},
};

/* The soft device has a multiprocessor per worker, by default per core of the host; the number of
 * clusters that run at once follows from it, and with it some choices. */
static void open_dump(struct choice_dump **dump) {
    if (test_on_gpu()) cr_skip_test("the devices are described, not there");
    setenv("TOLLENS_SOFT_WORKERS", "2", 1);
    MUST(choice_dump_open(test_library(), dump));
}

static uint64_t hash_of(struct choice_dump *dump, int operation, int device) {
    static char line[8192];
    uint64_t hash = KN_FNV_BEGIN;
    for (int i = 0; i < PROBLEMS; i++) {
        choice_dump_line(dump, device, operation, i, line, sizeof line);
        const char *after_name = strstr(line, choice_operations[operation]);
        cr_assert(after_name != NULL, "%s", line);
        cr_assert(strstr(line, "again") == NULL, "%s", line);
        hash = kn_fnv(hash, after_name, strlen(after_name));
    }
    return hash;
}

Test(choice, drawn_problems_get_the_kernels_that_they_got) {
    struct choice_dump *dump = NULL;
    open_dump(&dump);
    for (int o = 0; o < CHOICE_OPERATIONS; o++) {
        for (int d = 0; d < CHOICE_DEVICES; d++) {
            if (!test_takes_trial()) continue;
            const uint64_t hash = hash_of(dump, o, d);
            cr_expect(hash == expected[o][d], "%s on %s: 0x%016" PRIx64, choice_operations[o],
                      choice_devices[d].name, hash);
        }
    }
    choice_dump_close(dump);
}

/* Goal: the dump sees what is launched, so a hash can differ. */
Test(choice, devices_and_problems_differ) {
    struct choice_dump *dump = NULL;
    char old[8192], new[8192];
    open_dump(&dump);
    int devices = 0, problems = 0;
    for (int i = 0; i < 40; i++) {
        choice_dump_line(dump, 0, 0, i, old, sizeof old);
        choice_dump_line(dump, 5, 0, i, new, sizeof new);
        devices += strcmp(strstr(old, "gemm"), strstr(new, "gemm")) != 0;
        choice_dump_line(dump, 5, 0, i + 1, old, sizeof old);
        problems += strcmp(strstr(old, "TOL_"), strstr(new, "TOL_")) != 0;
    }
    cr_assert(devices > 20 && problems > 20, "%d and %d of 40 differ", devices, problems);
    choice_dump_close(dump);
}
