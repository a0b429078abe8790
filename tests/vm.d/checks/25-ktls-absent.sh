# Without the kernel's TLS the server seals by itself, and says so; told to insist on it, it does not start.
rmmod tls
onering doctor >/tmp/said
has_line /tmp/said 'advice .*kernel TLS .*not loaded'
has_line /tmp/said 'fix: `modprobe tls`'
make_site 1
serve "$as_root" /site --listen 127.0.0.1:8080 --tls-listen 127.0.0.1:8443
stop
cat >/tmp/onering.toml <<TOML
listen = ["127.0.0.1:8080"]
tls_listen = ["127.0.0.1:8443"]
[tls]
ktls = "on"
[[site]]
root = "/site"
TOML
exits_with 3 onering serve --config /tmp/onering.toml
has_line /tmp/said 'ktls.*not loaded'
rm /tmp/onering.toml
insmod /modules/tls.ko
