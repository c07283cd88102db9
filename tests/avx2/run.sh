#!/usr/bin/env bash
# Runs a command as on a processor with AVX2 and nothing wider: tests/avx2/run.sh make test
#
# What reads /proc/cpuinfo finds another file there, in a mount namespace of the command's own; what asks the
# processor (LLVM, MLIR, XLA, OpenBLAS, oneDNN, MKL) gets the answers of cpuid.c. Needs Linux on x86-64, root
# and a C compiler. Where CPUID cannot be made to fault (most virtual machines on AMD's processors), only
# /proc/cpuinfo is another, which irgym's own code generators go by, and it says so. Tests that run rewritten ONNX
# models are left out then: irgym would choose blocks of channels for AVX2, and ONNX Runtime those for AVX-512.
set -euo pipefail

onnx=(
    tests/envs/graph
    tests/api/test_versus_original.py
    'tests/test_exports.py::test_a_section_of_the_page[An ONNX model]'
    tests/test_published.py::test_a_network_of_torchvision
    tests/test_published.py::test_a_block_of_transformers
    tests/test_published.py::test_a_model_of_onnx
)

give_up() {
    echo "tests/avx2/run.sh: $1" >&2
    exit 2
}

[ $# -gt 0 ] || give_up "name a command, such as make test"
[ "$(uname -sm)" = "Linux x86_64" ] || give_up "needs Linux on x86-64"
unshare --mount true 2>/dev/null || give_up "a mount namespace is not permitted: run it as root, in a container with SYS_ADMIN"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -E 's/ (avx512|amx|avx10)[a-z0-9_]*//g; s/ avx_(vnni|ifma|ne_convert)[a-z0-9_]*//g' /proc/cpuinfo > "$folder/cpuinfo"
if grep -qw cpuid_fault /proc/cpuinfo; then
    "${CC:-cc}" -O1 -Wall -shared -fPIC "$(dirname "$0")/cpuid.c" -o "$folder/cpuid.so" -ldl ||
        give_up "cpuid.c does not compile: install a C compiler or set CC"
    preloaded=$folder/cpuid.so
else
    preloaded=
    echo "tests/avx2/run.sh: CPUID cannot be made to fault here: libraries still find what the processor has;" \
        "left out: ${onnx[*]}" >&2
    for one in "${onnx[@]}"; do PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} --deselect '$one'"; done
    export PYTEST_ADDOPTS
fi

unshare --mount sh -c '
    mount --bind "$1/cpuinfo" /proc/cpuinfo
    [ -z "$2" ] || export LD_PRELOAD="$2"
    shift 2
    exec "$@"' as-avx2 "$folder" "$preloaded" "$@"
