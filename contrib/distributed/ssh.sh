#!/usr/bin/env bash
# Loads one server from several hosts at the same moment, over ssh, and merges what they measured.
#
#   ssh.sh HOST… -- RUN-OPTION…
#   ssh.sh load1 load2 load3 -- --target http://10.0.0.5/ --allow-target 10.0.0.5 --rate 50000
#
# The options are those of `onering-bench run`, of each host: with --rate 50000, three hosts make
# 150 000 requests a second. Each host needs onering-bench in its search path, and a clock that agrees
# with the others' (bench/README.md). LEAD_S: seconds from now to the start, 15 if not set.
set -euo pipefail

hosts=()
while (($#)) && [[ $1 != -- ]]; do
    hosts+=("$1")
    shift
done
if ((${#hosts[@]} == 0)) || (($# < 2)); then
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
shift

start=$(($(date +%s) + ${LEAD_S:-15}))
echo "begins $(date -d "@$start" --iso-8601=seconds)" >&2

results=()
waited=()
for number in "${!hosts[@]}"; do
    result=run-$number.json
    # A seed of its own: generators that draw the same would ask for the same at the same moment.
    command=(onering-bench run "$@" --start-at "$start" --seed "$number" --quiet --json -)
    # ssh gives its words to a shell on the other side.
    ssh "${hosts[$number]}" "$(printf '%q ' "${command[@]}")" </dev/null >"$result" &
    waited+=($!)
    results+=("$result")
done

worst=0
for number in "${!hosts[@]}"; do
    code=0
    wait "${waited[$number]}" || code=$?
    ((code == 0)) || echo "${hosts[$number]}: exit code $code" >&2
    # 1 and 5 are measurements too: see the exit codes of onering-bench.
    ((code == 0 || code == 1 || code == 5)) || exit "$code"
    ((code <= worst)) || worst=$code
done

onering-bench merge "${results[@]}" --json merged.json
exit "$worst"
