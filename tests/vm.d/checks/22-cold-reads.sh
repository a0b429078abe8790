# Files that are not in memory are read into registered buffers, not by a sendfile that waits.
make_site 12
serve "$as_root" /site --listen 127.0.0.1:8080 --cpus 0-1
fetch_site 12
refetch_cold 12
stop
expect residency_cold -gt 0
expect fixed_reads -gt 0
expect unregistered_reads -eq 0
