# A NIC queue per shard: with the interrupts of queue i on CPU i, connections reach the shard of the
# CPU that their packets arrive on; with the interrupts swapped, the counter of misses shows it.
#
# Queue i's packets are sent from CPU i's queue (XPS), which teaches the tap device to return the
# connection's packets to the same queue, as a NIC's flow steering does.
[ -e /sys/class/net/eth0 ] || skip "the guest has no network card"
[ -e /sys/class/net/eth0/queues/rx-1 ] || fail "the network card has one queue"
make_site 1

# Binds the interrupts of queue 0 to CPU $1 and those of queue 1 to CPU $2.
bind_interrupts() {
    for queue in 0 1; do
        cpu=$1
        shift
        for direction in input output; do
            interrupt=$(sed -n "s/^ *\([0-9]*\):.*virtio.*-$direction\.$queue\$/\1/p" /proc/interrupts)
            echo $((1 << cpu)) >/proc/irq/$interrupt/smp_affinity
        done
        echo $((1 << queue)) >/sys/class/net/eth0/queues/tx-$queue/xps_cpus
    done
    grep virtio /proc/interrupts
}

# Serves 400 connections, steered as $1 says.
serve_connections() {
    serve "$as_root" /site --listen 10.99.0.2:8080 --cpus 0-1 --steer $1
    connect_from_host 400 'http://10.99.0.2:8080/1?COUNT'
    stop
    for shard in 0 1; do
        echo "shard $shard: $(counter accepted $shard) accepted," \
            "$(counter wrong_cpu $shard) on another CPU"
        [ "$(counter accepted $shard)" -gt 40 ] || fail "shard $shard has too few connections"
    done
    expect accepted -eq 400
}

bind_interrupts 0 1
for steer in cpu auto; do
    serve_connections $steer
    expect wrong_cpu -le 4
done

bind_interrupts 1 0
serve_connections cpu
expect wrong_cpu -gt 200
