# Where kernel.io_uring_disabled forbids io_uring, the server refuses with that cause and the remedy.
setting=/proc/sys/kernel/io_uring_disabled
[ -e $setting ] || skip "this kernel has no kernel.io_uring_disabled (since 6.6)"
trap 'echo 0 >$setting' EXIT
make_site 1
serve='onering serve /site --listen 127.0.0.1:8080'
echo 2 >$setting
for shell in "$as_root" "$as_nobody"; do
    exits_with 3 $shell "$serve"
    has_line /tmp/said 'kernel.io_uring_disabled = 2'
    has_line /tmp/said 'sysctl -w kernel.io_uring_disabled=0'
done
echo 1 >$setting
exits_with 3 $as_nobody "$serve"
has_line /tmp/said 'kernel.io_uring_disabled = 1'
has_line /tmp/said 'kernel.io_uring_group'
echo 0 >$setting
serve "$as_nobody" /site --listen 127.0.0.1:8080
stop
