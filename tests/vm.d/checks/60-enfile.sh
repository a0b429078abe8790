# When the host has no file left to give, the server waits without spinning, says so once, and serves
# again as soon as there are some. Only here may the limit of the whole host be changed.
echo content >/tmp/file
serve "$as_nobody" /tmp --listen 127.0.0.1:8080 --cpus 0
wget -q -O /dev/null http://127.0.0.1:8080/file
enough=$(cat /proc/sys/fs/file-max)
# Root's own files are not limited. (Small counts are kept per CPU and pass for none, hence zero.)
echo 0 >/proc/sys/fs/file-max
clients=
for n in 1 2 3 4 5; do
    wget -q -O /tmp/fetched.$n http://127.0.0.1:8080/file &
    clients="$clients $!"
done
for tenth in $(seq 300); do
    ! grep -q 'no descriptor' /tmp/served || break
    sleep 0.1
done
# A spell in which a loop that spins would turn a hundred thousand times.
sleep 2
echo "$enough" >/proc/sys/fs/file-max
for client in $clients; do wait $client || fail "a client was not answered"; done
for n in 1 2 3 4 5; do cmp /tmp/file /tmp/fetched.$n; done
stop
[ "$(grep -c 'no descriptor' /tmp/served)" = 1 ] || { cat /tmp/served && fail "not said once"; }
expect accept_paused_descriptors -ge 1
expect turns -le 2000
