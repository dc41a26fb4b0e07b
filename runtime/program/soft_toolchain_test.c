/*
 * The compilers of `tollens soft`: what programs find, what goes on to the real ones, and what
 * comes back. NVRTC and nvcc are stand-ins here, so no toolkit is needed.
 */
#include "program/shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(soft_toolchain, .init = program_begin, .fini = program_end);

#define CLIENT "\"${T%/*}/soft-client\""
#define STAND_IN "TOLLENS_SOFT_REAL_NVRTC=${T%/*}/libnvrtc-stand-in.so "

Test(soft_toolchain, the_toolchain_is_in_front_and_can_be_left_out) {
    const char *const list =
        "sh -c 'command -v ptxas; echo \"triton $TRITON_PTXAS_PATH $TRITON_PTXAS_BLACKWELL_PATH\"; "
        "ls ${LD_LIBRARY_PATH%%:*}'";
    char command[256];
    snprintf(command, sizeof command, "\"$T\" soft --allow-unused -- %s", list);
    cr_assert(program_shell(command) == 0, "%s", program_output);
    cr_assert(program_says("/bin/ptxas\ntriton /") && program_says("/bin/ptxas /") &&
                  program_says("libnvrtc.so.12\nlibnvrtc.so.13\n") &&
                  program_says("libnvJitLink.so.12\nlibnvJitLink.so.13\n"),
              "%s", program_output);
    snprintf(command, sizeof command, "\"$T\" soft --allow-unused --toolchain off -- %s", list);
    program_shell(command);
    cr_assert(program_says("triton  \n") && !program_says("tollens-soft-") &&
                  !program_says("libnvrtc") && !program_says("JitLink"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --toolchain perhaps -- true") == 2 &&
                  program_says("soft: --toolchain is on or off, not perhaps"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" doctor") >= 0 && program_says("--toolchain off leaves them") &&
                  program_says("  libnvrtc.so.13 ") && program_says("  ptxas "),
              "%s", program_output);
}

Test(soft_toolchain, ptxas_writes_what_the_device_loads_and_reports_errors) {
    program_write("k.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k() { ret; }\n");
    program_write("bad.ptx", ".version 8.0\n.target sm_90\n.address_size 64\nfrob\n");
#define IN_TOOLCHAIN "cd \"$D\" && \"$T\" soft --allow-unused -- "
    cr_assert(program_shell(IN_TOOLCHAIN "ptxas -lineinfo -v --gpu-name=sm_90a --fmad=false k.ptx "
                                         "-o k.cubin && head -c 16 k.cubin | tail -c 7") == 0 &&
                  program_says("'k' for 'sm_90'") && program_says("tollens"),
              "%s", program_output);
    cr_assert(program_shell(IN_TOOLCHAIN "ptxas --gpu-name=sm_90 bad.ptx") == 255, "%s",
              program_output);
    cr_assert(program_says("ptxas bad.ptx, line 4; error   : ") &&
                  program_says("ptxas fatal   : Ptx assembly aborted due to errors\n"),
              "%s", program_output);
    cr_assert(program_shell(IN_TOOLCHAIN "ptxas --version") == 0 &&
                  program_says("release 13.0, V13.0.88"),
              "%s", program_output);
}

Test(soft_toolchain, nvrtc_makes_ptx_of_what_was_to_be_machine_code) {
    static const struct {
        const char *options, *log;
    } cases[] = {
        {"--gpu-architecture=sm_90,-lineinfo", "--gpu-architecture=compute_90\n-lineinfo\n"},
        {"-arch=sm_90a", "-arch=compute_90a\n"},
        {"-arch,sm_86", "-arch\ncompute_86\n"},
        {"--gpu-architecture,sm_100a", "--gpu-architecture\ncompute_100a\n"},
        {"-DX=sm_1,'-arch sm_75'", "-arch compute_75\n"}};
    char command[200];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        /* The first word of the last is no architecture, so it stays, and is refused. */
        const bool is_refused = strncmp(cases[i].options, "-D", 2) == 0;
        for (int edition = 0; edition < 2; edition++) {
            snprintf(command, sizeof command, "%s\"$T\" soft --error-exitcode 7 -- %s nvrtc%s %s",
                     STAND_IN, CLIENT, edition == 0 ? "" : "12", cases[i].options);
            cr_assert(program_shell(command) == (is_refused ? 5 : 0), "%s", program_output);
            cr_assert(program_says(cases[i].log), "%s: %s", cases[i].options, program_output);
            cr_assert(!program_says("cuGetExportTable"), "%s", program_output);
            cr_assert(is_refused || (program_says("cubin: there\n") && program_says("1 launch\n")),
                      "%s", program_output);
        }
    }
    /* Who asks for PTX gets no cubin, as from the real one. */
    cr_assert(program_shell(STAND_IN "\"$T\" soft -- " CLIENT " nvrtc -arch=compute_80") == 0 &&
                  program_says("cubin: none\n"),
              "%s", program_output);
}

/* As PyPI's packages are loaded. */
Test(soft_toolchain, nvrtc_is_replaced_by_path_and_calls_the_one_of_that_path) {
    cr_assert(program_shell("cp \"${T%/*}/libnvrtc-stand-in.so\" \"$D/libnvrtc.so.13\" && "
                            "\"$T\" soft --error-exitcode 7 -- " CLIENT
                            " nvrtc=$D/libnvrtc.so.13 -arch=sm_90") == 0,
              "%s", program_output);
    cr_assert(program_says(": -arch=compute_90\n") && program_says("cubin: there\n"), "%s",
              program_output);
    /* The stand-in itself refuses machine code. */
    cr_assert(program_shell("\"$T\" soft --toolchain off -- " CLIENT
                            " nvrtc=$D/libnvrtc.so.13 -arch=sm_90") == 5 &&
                  program_says(": -arch=sm_90\n"),
              "%s", program_output);
}

Test(soft_toolchain, nvrtc_refuses_forms_without_ptx_by_name) {
    static const char *const cases[][2] = {{"-arch=sm_90,-dlto", "LTO-IR (-dlto"},
                                           {"--dlink-time-opt", "LTO-IR (-dlto"},
                                           {"-gen-opt-lto", "LTO-IR (-dlto"},
                                           {"--optix-ir", "OptiX IR (-optix-ir)"}};
    char command[200];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(command, sizeof command, "%s\"$T\" soft -- %s nvrtc %s", STAND_IN, CLIENT,
                 cases[i][0]);
        cr_assert(program_shell(command) == 5, "%s", program_output);
        const char *said = strstr(program_output, cases[i][1]);
        cr_assert(said != NULL && strstr(said + 1, cases[i][1]) != NULL,
                  "in the log and on stderr: %s", program_output);
    }
    cr_assert(program_shell("TOLLENS_SOFT_REAL_NVRTC=/none.so \"$T\" soft -- " CLIENT
                            " nvrtc -arch=sm_90") == 11 &&
                  program_says("TOLLENS_SOFT_REAL_NVRTC=/none.so is no NVRTC: /none.so: "),
              "%s", program_output);
}

Test(soft_toolchain, nvjitlink_links_ptx_to_what_the_device_loads) {
    static const struct {
        const char *kind, *says;
        int code;
    } cases[] = {{"ptx", "1 launch\n", 0},
                 {"twice", "more than one linked input", 4},
                 {"ltoir", "nvJitLink: first is LTO-IR, which only NVIDIA's compiler reads", 5},
                 {"option-lto", "1 launch\n", 0},
                 {"option-Xptxas=-O3", "1 launch\n", 0},
                 {"option-ptx", "-ptx generates PTX from LTO-IR", 11},
                 {"option-frob", "the option '-frob' is not supported", 1},
                 {"option-arch=lto_90", "-arch=lto_90 is no architecture of PTX", 16}};
    char command[200];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int edition = 0; edition < 2; edition++) {
            snprintf(command, sizeof command, "\"$T\" soft -- %s nvjitlink%s %s", CLIENT,
                     edition == 0 ? "" : "12", cases[i].kind);
            cr_assert(program_shell(command) == cases[i].code, "%s: %s", command, program_output);
            cr_assert(program_says(cases[i].says), "%s: %s", command, program_output);
        }
    }
}

/* A toolkit whose nvcc prints its words and writes PTX. */
Test(soft_toolchain, nvcc_adds_ptx_and_makes_containers) {
    static const struct {
        const char *words, *passed;
    } cases[] = {
        {"-arch=sm_90 -c a.cu",
         "<-arch=sm_90><-c><a.cu><-gencode><arch=compute_90,code=compute_90>\n"},
        {"-fatbin -gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90a,code=sm_90a a.cu",
         "<a.cu><-gencode><arch=compute_80,code=compute_80><-gencode><arch=compute_90a,code="
         "compute_90a>\n"},
        {"-ptx -arch=compute_80 a.cu", "<-ptx><-arch=compute_80><a.cu>\n"},
        {"-arch native -c a.cu", "<-arch><sm_90><-c><a.cu><-gencode>"},
        {"--version", "<--version>\n"}};
    char command[400];
    program_write("nvcc",
                  "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; last=$word; done; echo\n"
                  "case \"$*\" in *-o*) printf '.version 8.0\\n.target sm_80\\n"
                  ".address_size 64\\n.visible .entry k() { ret; }\\n' >\"$last\";; esac\n"
                  "case \"$*\" in *broken*) exit 3;; esac\n");
#define IN_TOOLKIT                                                                                 \
    "chmod +x \"$D/nvcc\" && cd \"$D\" && PATH=$D:$PATH \"$T\" soft --allow-unused -- nvcc "
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(command, sizeof command, IN_TOOLKIT "%s", cases[i].words);
        cr_assert(program_shell(command) == 0, "%s", program_output);
        cr_assert(program_says(cases[i].passed), "%s: %s", cases[i].words, program_output);
    }
    cr_assert(program_shell(IN_TOOLKIT
                            "-cubin -arch=sm_90 -lineinfo x/a.cu && head -c 16 a.cubin | "
                            "tail -c 7") == 0,
              "%s", program_output);
    cr_assert(program_says("<-ptx><-arch=sm_90><-lineinfo><x/a.cu><-o></") &&
                  program_says("tollens"),
              "%s", program_output);
    cr_assert(program_shell(IN_TOOLKIT "--cubin -arch sm_80 -o other a.cu && test -s other") == 0 &&
                  !program_says("<other>"),
              "%s", program_output);
    cr_assert(program_shell(IN_TOOLKIT "-cubin -arch=sm_70 a.cu") == 255 &&
                  program_says("is not for sm_70"),
              "%s", program_output);
    cr_assert(program_shell(IN_TOOLKIT "-cubin broken.cu; echo code $?") == 0 &&
                  program_says("code 3\n"),
              "%s", program_output);
    cr_assert(program_shell(IN_TOOLKIT "-cubin -gencode arch=compute_80,code=[sm_80,sm_90] a.cu") ==
                      255 &&
                  program_says("-cubin takes one architecture, not sm_80 and sm_90"),
              "%s", program_output);
}

/* PyCUDA looks for libcudadevrt.a in ../lib64 of the folder of nvcc, TileLang for the nvcc of
 * CUDA_HOME. */
Test(soft_toolchain, the_toolkit_is_found_from_nvcc_and_nvcc_from_the_toolkit) {
    static const char *const toolkits[] = {"env -u CUDA_HOME PATH=$D/kit/bin:$PATH",
                                           "PATH=/usr/bin:/bin CUDA_HOME=$D/kit"};
    char command[500];
    program_write("real", "#!/bin/sh\necho \"real $*\"\n");
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "rm -rf \"$D/kit\" && mkdir -p \"$D/kit/bin\" \"$D/kit/lib64\" && "
                 "cd \"$D/kit\" && echo devrt >lib64/libcudadevrt.a && cp ../real bin/nvcc && "
                 "chmod +x bin/nvcc && %s \"$T\" soft --allow-unused -- sh -c "
                 "'n=${CUDA_HOME:+$CUDA_HOME/bin/}nvcc; cat $(dirname $(command -v $n))/../lib64/"
                 "libcudadevrt.a; $n -arch=sm_90 -c a.cu; echo home $CUDA_HOME'",
                 toolkits[i]);
        cr_assert(program_shell(command) == 0, "%s", program_output);
        cr_assert(program_says("devrt\n") &&
                      program_says("real -arch=sm_90 -c a.cu -gencode arch=compute_90"),
                  "%s", program_output);
        cr_assert(program_says("home /") == (i == 1) && !program_says("/kit\n"), "%s",
                  program_output);
    }
}

Test(soft_toolchain, what_programs_compile_is_kept_apart) {
    cr_assert(program_shell("XDG_CACHE_HOME=$D/cache NUMBA_CACHE_DIR=/mine \"$T\" soft "
                            "--allow-unused -- sh -c 'cd \"$CUPY_CACHE_DIR\" && pwd; env'") == 0,
              "%s", program_output);
    cr_assert(program_says("/cache/tollens-soft/cupy\n") &&
                  program_says("NUMBA_CACHE_DIR=/mine\n") &&
                  program_says("/cache/tollens-soft/triton\n"),
              "%s", program_output);
}
