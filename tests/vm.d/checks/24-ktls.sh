# Every byte over TLS is right, whoever seals it, and nothing of that is skipped here.
export ONERING_BIN=/bin/onering TMPDIR=/tmp
cd /tmp
run_tests /tests/test-harness tls_bytes || fail "tls_bytes"
! grep '^skipped: ' /tmp/result || fail "the kernel's TLS is not used"
