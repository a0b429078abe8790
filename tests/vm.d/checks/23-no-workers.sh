# A warm load raises no kernel worker thread: nothing on a shard's ring is handed to one.
make_site 8
serve "$as_root" /site --listen 127.0.0.1:8080 --cpus 0-1
fetch_site 8
for round in $(seq 20); do
    for n in $(seq 40); do
        printf 'GET /%d HTTP/1.1\r\nHost: a\r\n\r\n' $((n % 8 + 1))
    done | nc -w 30 127.0.0.1 8080 >/dev/null
    cat /proc/$server/task/*/comm >>/tmp/threads
done
! grep -q iou-wrk /tmp/threads || fail "kernel workers: $(sort /tmp/threads | uniq -c)"
has_line /tmp/threads .
rm /tmp/threads
stop
expect requests -eq 808
