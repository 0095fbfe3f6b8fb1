# Shared by script/test and script/test-full; read with `.`
passed=0 failed=0 skipped=0

# run_ctest BUILD [ctest's arguments]: adds to passed, failed and skipped.
run_ctest() {
    lib_build=$1
    shift
    lib_xml=$lib_build/ctest.xml
    rm -f "$lib_xml"
    (cd "$lib_build" && ctest --output-on-failure -j2 --timeout "${TEST_TIMEOUT:-600}" --output-junit ctest.xml "$@")
    lib_code=$?
    lib_suite=$(tr '\n' ' ' <"$lib_xml" 2>/dev/null | sed 's/<testcase.*//')
    lib_n() { printf '%s' "$lib_suite" | sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p"; }
    lib_all=$(lib_n tests) lib_bad=$(lib_n failures) lib_out=$(lib_n skipped) lib_off=$(lib_n disabled)
    lib_all=${lib_all:-0} lib_bad=${lib_bad:-0}
    lib_out=$((${lib_out:-0} + ${lib_off:-0}))
    if [ "$lib_code" -ne 0 ] && [ "$lib_bad" -eq 0 ]; then
        echo "ctest failed before it could count (exit code $lib_code)" >&2
        lib_bad=1
    fi
    lib_cases=$(grep -c '^\[  SKIPPED \] [a-z]' "$lib_build/Testing/Temporary/LastTest.log" 2>/dev/null)
    [ "${lib_cases:-0}" -eq 0 ] || echo "note: $lib_cases cases inside the test programs were skipped (see $lib_build/Testing/Temporary/LastTest.log)"
    passed=$((passed + lib_all - lib_bad - lib_out))
    [ $((lib_all - lib_bad - lib_out)) -ge 0 ] || passed=0
    failed=$((failed + lib_bad))
    skipped=$((skipped + lib_out))
    return "$lib_code"
}
