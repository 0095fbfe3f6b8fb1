#!/bin/sh
# Runs a test on oclgrind, which plays an OpenCL device and reports races, barriers that not all items reach, accesses
# outside buffers and wrong calls: opencl_races.sh WORK PROGRAM [ARGUMENTS]. Leaves with 77 when oclgrind is not there.
work=$1
shift
for folder in /usr/lib /usr/lib64 /usr/local/lib /usr/lib/"$(uname -m)"-linux-gnu; do
    for library in "$folder"/oclgrind/liboclgrind-rt-icd.so "$folder"/liboclgrind-rt-icd.so; do
        [ -e "$library" ] && OCL_ICD_VENDORS=$library
    done
done
if [ -z "$OCL_ICD_VENDORS" ] || ! command -v oclgrind >/dev/null; then
    echo "oclgrind is not here"
    exit 77
fi
rm -rf "$work"
mkdir -p "$work" || exit 1
# Optimised, its kernels hold calls that oclgrind does not know.
export OCL_ICD_VENDORS OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 OCLGRIND_LOG="$work/log" XDG_CACHE_HOME="$work" \
    OCLGRIND_BUILD_OPTIONS=-cl-opt-disable
"$@" >"$work/output" 2>&1
code=$?
cat "$work/output"
[ ! -s "$work/log" ] || head -100 "$work/log"
[ $code -eq 0 ] || exit $code
grep -q Oclgrind "$work/output" || { # another loader, which asked no oclgrind
    echo "the OpenCL loader does not find oclgrind"
    exit 77
}
[ ! -s "$work/log" ]
