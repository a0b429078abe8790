# The test binaries pass on this kernel: the library's own tests, and the harness.
export ONERING_BIN=/bin/onering PROPTEST_CASES=32 ONERING_REPEATS_DIVISOR=50 TMPDIR=/tmp
cd /tmp
failed=
for binary in /tests/*; do
    # The kernel that is played in the simulation is the same everywhere; 24-ktls has more time.
    run_tests $binary --skip shard::simulation --skip tls_bytes ||
        failed="$failed $(basename $binary)"
done
[ -z "$failed" ] || fail "$failed"
