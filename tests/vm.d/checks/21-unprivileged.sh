# A user without any capability can serve.
make_site 3
serve "$as_nobody" /site --listen 127.0.0.1:8080 --cpus 0-1
fetch_site 3
stop
