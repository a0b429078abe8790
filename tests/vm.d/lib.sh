# What the checks use. A check is run by `sh -eu`, as root, with this file read before it. It may
# change any setting of the guest, and sets it back for the checks after it.

# Ends the check as one that cannot be run on this kernel: counted, and not as passed.
skip() {
    echo "skipped: $*"
    exit 77
}

# Ends the check as failed.
fail() {
    echo "failed: $*"
    exit 1
}

# Fails unless file $1 has a line that the basic regular expression $2 matches.
has_line() {
    grep -q -e "$2" "$1" || { cat "$1" && fail "no line matches: $2"; }
}

# Fails unless the command exits with status $1. What it prints goes to /tmp/said.
exits_with() {
    expected=$1
    shift
    status=0
    timeout 60 "$@" >/tmp/said 2>&1 || status=$?
    [ "$status" = "$expected" ] ||
        { cat /tmp/said && fail "exit status $status, not $expected: $*"; }
}

# The shells that a command line is given to: root's, and that of a user without any capability.
as_root='sh -c'
as_nobody='su nobody -s /bin/sh -c'

# Runs the test binary $1 with the arguments after it, for at most 250 s, and reports how many of its tests
# passed, failed and were skipped; says whether all is well.
run_tests() {
    name=$(basename "$1") status=0
    timeout 250 "$@" >/tmp/result 2>&1 || status=$?
    echo "--- $name: status $status"
    [ $status = 0 ] || cat /tmp/result
    # Tests that say `skipped: why` have passed for libtest.
    skipped=$(grep -c '^skipped: ' /tmp/result) || true
    # The last one: a test that runs the binary again, as a process, prints one of its own.
    result=$(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed; .*/\1 \2/p' /tmp/result |
        tail -n 1)
    [ -n "$result" ] || { echo "no result" && return 1; }
    set -- $result
    [ $(($1 + $2)) = 0 ] || echo "test counts: $name $(($1 - skipped)) $2 $skipped"
    [ $status = 0 ]
}

# Starts `onering serve` with the arguments after the first, which is one of the shells above or
# such a shell with settings, and returns when it says that it serves. $server is its process.
serve() {
    shell=$1
    shift
    rm -f /tmp/stats.json
    # What the server before has said must not be taken for this one's.
    : >/tmp/served
    $shell "${limits:-} exec onering serve $* --stats /tmp/stats.json" >/tmp/served 2>&1 &
    server=$!
    for tenth in $(seq 300); do
        ! grep -q http:// /tmp/served || return 0
        [ -d /proc/$server ] || break
        sleep 0.1
    done
    cat /tmp/served
    fail "the server did not start"
}

# Stops the server: it must exit with 0. Its counters are in /tmp/stats.json then.
stop() {
    kill -TERM $server
    status=0
    wait $server || status=$?
    [ $status = 0 ] || { cat /tmp/served && fail "the server exited with $status"; }
}

# Prints counter $1 of shard $2 (0, 1, …), or of all shards together (total), from /tmp/stats.json.
counter() {
    case $2 in
        total) line=1 ;;
        *) line=$(($2 + 2)) ;;
    esac
    # The total comes first in the file, then each shard.
    value=$(tr -d ' ' </tmp/stats.json | tr ',{}' '\n\n\n' | sed -n "s/^\"$1\"://p" | sed -n "${line}p")
    [ -n "$value" ] || fail "no counter is named $1" >&2
    echo "$value"
}

# Fails unless the counter $1, over all shards, compares to $3 by the operator $2 of test(1).
expect() {
    counted=$(counter "$1" total)
    [ "$counted" "$2" "$3" ] || fail "$1 is $counted, not $2 $3"
}

# Has the host make $1 connections to URL $2, one request each, where COUNT in the URL becomes the
# number of the connection; fails unless each was answered with 200.
connect_from_host() {
    echo "connect $1 $2" >/dev/ttyS1
    read -r -t 90 answer </dev/ttyS1 || fail "the host did not answer"
    [ "$answer" = "$1 200" ] || fail "statuses seen by the host: $answer"
}

# Makes /site/1 to /site/$1, from a byte to a megabyte long, on a disk.
make_site() {
    rm -rf /site/*
    for n in $(seq "$1"); do
        head -c $((1 + (n - 1) * (n - 1) * 87380 % 1048576)) /dev/urandom >/site/$n
    done
    chmod 644 /site/*
}

# Evicts the files of /site from memory.
forget_pages() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}

# Fetches the site several times from the disk. The kernel keeps a page now and then although it was
# told to forget it.
refetch_cold() {
    for _ in 1 2 3 4 5; do
        forget_pages
        fetch_site "$1"
    done
}

# Fetches /site/1 to /site/$1 from 127.0.0.1:8080 and compares each byte.
fetch_site() {
    for n in $(seq "$1"); do
        wget -q -O /tmp/fetched http://127.0.0.1:8080/$n
        cmp /tmp/fetched /site/$n
    done
}
