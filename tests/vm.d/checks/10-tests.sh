# The test binaries pass on this kernel: the library's own tests, and the harness.
export ONERING_BIN=/bin/onering PROPTEST_CASES=32 ONERING_REPEATS_DIVISOR=50 TMPDIR=/tmp
cd /tmp
failed=
for binary in /tests/*; do
    name=$(basename $binary)
    status=0
    # The kernel that is played in the simulation is the same everywhere.
    timeout 250 $binary --skip shard::simulation >/tmp/result 2>&1 || status=$?
    echo "--- $name: status $status"
    [ $status = 0 ] || cat /tmp/result
    # Tests that say `skipped: why` have passed for libtest.
    skipped=$(grep -c '^skipped: ' /tmp/result) || true
    # The last one: a test that runs the binary again, as a process, prints one of its own.
    result=$(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed; .*/\1 \2/p' /tmp/result |
        tail -n 1)
    if [ -z "$result" ]; then
        echo "no result"
        failed="$failed $name"
        continue
    fi
    set -- $result
    [ $status = 0 ] || failed="$failed $name"
    [ $(($1 + $2)) = 0 ] || echo "test counts: $name $(($1 - skipped)) $2 $skipped"
done
[ -z "$failed" ] || fail "$failed"
