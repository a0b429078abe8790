# The server gives out every file with its bytes, and SIGTERM ends it with status 0.
make_site 12
serve "$as_root" /site --listen 127.0.0.1:8080 --cpus 0-1
fetch_site 12
printf 'GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' |
    nc 127.0.0.1 8080 >/tmp/fetched
has_line /tmp/fetched '^HTTP/1.1 404 '
stop
expect requests -eq 13
