/*
 * Choices: which kernels the operations launch for drawn problems on six devices, as hashes.
 */
#include "choice_dump.h"
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
    {0x534c96374bbd5b86, 0x674b547725a1b6ff, 0xe483cf774dfeff9c, 0xdbbaf484b82371d3,
     0xc55806d0dc2a1cc5, 0xc55806d0dc2a1cc5},
    /* grouped */
    {0x443780279721f5eb, 0x28e60eda8ae55c78, 0x28e60eda8ae55c78, 0xcff152692d177bb1,
     0x7dd270c14e639a81, 0x7dd270c14e639a81},
    /* attention */
    {0xdd9131a1e2f37c8a, 0xb76ad7ade22693f1, 0x9102861826ce41be, 0xcee1bcfe260ca321,
     0x03d5581e080f3acd, 0x03d5581e080f3acd},
    /* backward */
    {0xa65813fb5ec509ce, 0xb0bb14477c9974ed, 0xb0bb14477c9974ed, 0xb607651a57ed9276,
     0xb607651a57ed9276, 0xb607651a57ed9276},
    /* packed */
    {0xb7e3d5c9b0583ad8, 0xd68f48aca6106859, 0xd68f48aca6106859, 0x04c07738be27054c,
     0x04c07738be27054c, 0x04c07738be27054c},
    /* paged */
    {0xaeef7ed0cc7568c6, 0x65666f1f4f83d4f1, 0x65666f1f4f83d4f1, 0xec7f878cf172187e,
     0xec7f878cf172187e, 0xec7f878cf172187e},
    /* e4m3 */
    {0xabde2006523df873, 0xabde2006523df873, 0xabde2006523df873, 0x9527a4fcf4e07be3,
     0x9527a4fcf4e07be3, 0x9527a4fcf4e07be3},
    /* softmax */
    {0x2f0077d5339c667e, 0x2f0077d5339c667e, 0x2f0077d5339c667e, 0xf65689671585cab3,
     0x6150a231fe2a85f3, 0x6150a231fe2a85f3},
    /* norm */
    {0xf7840bbc760c0df0, 0xbe773c75552a77ef, 0xbe773c75552a77ef, 0x65b49a4e5557cbff,
     0xf7ae3c460c411f46, 0xf7ae3c460c411f46},
    /* argmax */
    {0xd685f5ec4347dfd4, 0xd685f5ec4347dfd4, 0xd685f5ec4347dfd4, 0x234264f26d4f3c16,
     0x234264f26d4f3c16, 0x234264f26d4f3c16},
    /* top_k */
    {0x92a9c768f00066f3, 0x92a9c768f00066f3, 0x92a9c768f00066f3, 0x719f970a659957c8,
     0x719f970a659957c8, 0x719f970a659957c8},
    /* quant */
    {0x25d07cdf785683aa, 0x6ff5506983df5176, 0x6ff5506983df5176, 0xdfa173e4f9a10cc1,
     0x4b98f8715a9a29a2, 0x4b98f8715a9a29a2},
    /* linear */
    {0xa4d655bee9ff0587, 0x50c755800fa5dda9, 0x2c72bde5996a474e, 0xe70088fc62464e44,
     0xb7c237dbe8c5b3dd, 0xb7c237dbe8c5b3dd},
};

static uint64_t hash_of(struct choice_dump *dump, int operation, int device) {
    static char line[8192];
    uint64_t hash = KN_FNV_BEGIN;
    for (int i = 0; i < PROBLEMS; i++) {
        choice_dump_line(dump, device, operation, i, line, sizeof line);
        const char *after_name = strstr(line, choice_operations[operation]);
        cr_assert(after_name != NULL, "%s", line);
        hash = kn_fnv(hash, after_name, strlen(after_name));
    }
    return hash;
}

Test(choice, drawn_problems_get_the_kernels_that_they_got) {
    struct choice_dump *dump = NULL;
    if (test_on_gpu()) cr_skip_test("the devices are described, not there");
    MUST(choice_dump_open(test_library(), &dump));
    for (int o = 0; o < CHOICE_OPERATIONS; o++) {
        for (int d = 0; d < CHOICE_DEVICES; d++) {
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
    if (test_on_gpu()) cr_skip_test("the devices are described, not there");
    MUST(choice_dump_open(test_library(), &dump));
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
