#!/bin/sh
# Tests and measures Tollens as PyTorch's allocator on a machine with a GPU and PyTorch. Needs no
# network and, besides python3 with PyTorch, a C compiler alone: it compiles the library itself.
#
#   runtime/driver/torch/on_gpu.sh [tests] [graphs] [marks] [bench] [BENCH OPTIONS]
#
# Without a part: all. graphs: that one of the tests alone.
# Writes into $OUT (default: build/on-gpu): torch-tests.txt, torch-marks.txt, torch-bench.txt,
# torch-bench.json. Exit code: 0 all held, 1 a test failed, 2 something could not be run.
set -u
cd "$(dirname "$0")/../.." || exit 2
out=${OUT:-build/on-gpu}
mkdir -p "$out" build/on-gpu-objects || exit 2
parts=
while [ $# -gt 0 ]; do
    case $1 in
    tests | graphs | marks | bench) parts="$parts $1" && shift ;;
    *) break ;;
    esac
done
[ -n "$parts" ] || parts="tests marks bench"
failed=0

# The library, from the sources that configure.py finds.
list_sources() {
    python3 -c 'import configure; print("\n".join([*configure.DRIVER_PARTS, *configure.TORCH]))'
}
compile() {
    list_sources | xargs -P 8 -I '{}' sh -c '
        mkdir -p "build/on-gpu-objects/$(dirname "{}")" &&
        ${CC:-cc} -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -fexceptions -O3 -DNDEBUG \
            -Iruntime/driver -Iruntime/models/gguf -Iruntime/models/tokenizer -Iruntime/include \
            -c "{}.c" -o "build/on-gpu-objects/{}.o"' || return 1
    objects=$(list_sources | sed 's|.*|build/on-gpu-objects/&.o|')
    # shellcheck disable=SC2086
    ${CC:-cc} -shared -o build/on-gpu-objects/libtollens-torch.so $objects -lpthread -ldl -lm
}
compile || { echo "on_gpu.sh: the library cannot be compiled" >&2 && exit 2; }
TOLLENS_TORCH_LIBRARY=$PWD/build/on-gpu-objects/libtollens-torch.so
export TOLLENS_TORCH_LIBRARY
python3 -c 'import torch; print(torch.__version__, torch.cuda.get_device_name(0),
            torch.cuda.get_device_properties(0).total_memory)' || exit 2

tests() {
    for name in "$@"; do
        echo "== torch_${name}_test.py"
        timeout 280 python3 "runtime/driver/torch/torch_${name}_test.py" || failed=1
    done
}

# Whether compute-sanitizer sees the blocks in a pool: an access between two must be found with
# marks, and nothing where the accesses are right.
marks() {
    sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    if ! [ -x "$sanitizer" ]; then
        echo "marks: not run here: there is no compute-sanitizer"
        return
    fi
    objects=$(python3 build/on-gpu-objects/sources.py runtime |
        sed 's|.*|build/on-gpu-objects/&.o|')
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -O1 -g -Iruntime -Iruntime/include \
        runtime/driver/bench/marks_check.c $objects -o build/on-gpu-objects/marks-check \
        -lpthread -ldl -lm || { failed=1 && return; }
    for how in right between freed; do
        echo "== $how"
        # The runtime asks for parameters until the driver refuses: no error of the program's.
        "$sanitizer" --nvtx=yes --report-api-errors no --error-exitcode 9 build/on-gpu-objects/marks-check $how
        code=$?
        if [ $how = right ]; then wanted=0; else wanted=9; fi
        echo "marks: $how: exit code $code, expected $wanted"
        [ $code = $wanted ] || failed=1
    done
}

case $parts in
*tests*) tests use mempool graphs >"$out/torch-tests.txt" 2>&1 ;;
*graphs*) tests graphs >"$out/torch-tests.txt" 2>&1 ;;
esac
case $parts in *marks*) marks >"$out/torch-marks.txt" 2>&1 ;; esac
for file in torch-tests torch-marks; do
    [ ! -f "$out/$file.txt" ] || grep -E '^(Ran|OK|FAILED|FAIL|ERROR|marks:|==)' "$out/$file.txt"
done
case $parts in
*bench*)
    PYTHONUNBUFFERED=1 python3 runtime/driver/torch/torch_bench.py --json "$out/torch-bench.json" "$@" \
        2>"$out/torch-bench-progress.txt" | tee "$out/torch-bench.txt"
    [ -s "$out/torch-bench.json" ] || failed=1
    ;;
esac
exit $failed
