#!/usr/bin/env bash
# Runs a command as on a processor with AVX2 and nothing wider: tests/avx2/run.sh make test
#
# What reads /proc/cpuinfo finds another file there, in a mount namespace of the command's own; what asks the
# processor (LLVM, MLIR, XLA, OpenBLAS, oneDNN, MKL) gets the answers of cpuid.c. Needs Linux on x86-64, a
# processor whose CPUID can be made to fault (Intel's since 2012, AMD's since Zen 4), root and a C compiler.
set -euo pipefail

give_up() {
    echo "tests/avx2/run.sh: $1" >&2
    exit 2
}

[ $# -gt 0 ] || give_up "name a command, such as make test"
[ "$(uname -sm)" = "Linux x86_64" ] || give_up "needs Linux on x86-64"
grep -qw cpuid_fault /proc/cpuinfo || give_up "CPUID of this processor cannot be made to fault"
unshare --mount true 2>/dev/null || give_up "a mount namespace is not permitted: run it as root, in a container with SYS_ADMIN"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -E 's/ (avx512|amx|avx10)[a-z0-9_]*//g; s/ avx_(vnni|ifma|ne_convert)[a-z0-9_]*//g' /proc/cpuinfo > "$folder/cpuinfo"
"${CC:-cc}" -O1 -Wall -shared -fPIC "$(dirname "$0")/cpuid.c" -o "$folder/cpuid.so" -ldl ||
    give_up "cpuid.c does not compile: install a C compiler or set CC"

unshare --mount sh -c '
    mount --bind "$1/cpuinfo" /proc/cpuinfo
    export LD_PRELOAD="$1/cpuid.so"
    shift
    exec "$@"' as-avx2 "$folder" "$@"
