# What sealing costs in instructions per byte, by the kernel and by us.
TMPDIR=/tmp /tests/test-harness instructions_90 --ignored --nocapture --test-threads 1
