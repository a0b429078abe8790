# Without lockable memory the server works, reads into buffers that are not registered, and counts
# these. Kernels from 6.14 charge the ring itself: there the server refuses, and names the limit.
make_site 12
for kib in 0 64; do
    limits="ulimit -l $kib;"
    serve "$as_nobody" /site --listen 127.0.0.1:8080 --cpus 0-1
    refetch_cold 12
    stop
    expect fixed_reads -eq 0
    expect unregistered_reads -gt 0
done
