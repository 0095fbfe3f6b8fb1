#!/bin/sh
# Runs a test on Intel's OpenCL runtime for processors, which has halves, dot products of bytes and subgroups of 8 to 64:
# opencl_intel.sh SOURCE CACHE PROGRAM [ARGUMENTS]. Leaves with 77 where script/bootstrap --intel has not put it.
library=$1/.venv/lib/libintelocl.so
cache=$2
shift 2
if [ ! -e "$library" ]; then
    echo "$library is not here; script/bootstrap --intel gets it"
    exit 77
fi
# The first name is for Khronos' loader, the second for Debian's.
export OCL_ICD_FILENAMES="$library" OCL_ICD_VENDORS="$library" LD_LIBRARY_PATH="${library%/*}" XDG_CACHE_HOME="$cache" \
    SOTTO_TEST_DEVICE=opencl
exec "$@"
