#!/bin/busybox sh
# shellcheck shell=dash disable=SC1091,SC2154
# What the emulated machine runs: each of $tests at each of $levels (file /plan), between lines that script/emulate-x86 reads.
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev
. /plan
export SOTTO_TEST_SEED="$seed"
/tests/levels
for level in $levels; do
    for test in $tests; do
        echo "BEGIN $level $test"
        SOTTO_TEST_LEVELS=$level "/tests/$test" 2>&1
        echo "END $level $test $?"
    done
done
busybox sleep 1 # the last lines are on their way
busybox poweroff -f
