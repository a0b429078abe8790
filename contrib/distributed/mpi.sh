#!/usr/bin/env bash
# Loads one server from every host of Open MPI's launcher at the same moment, and merges what they
# measured. MPI starts the generators, and no more: they do not speak with each other. (With MPICH:
# mpiexec -ppn 1, which passes all variables on; the rank is PMI_RANK.)
#
#   TARGET=http://10.0.0.5/ ALLOW=10.0.0.5 mpi.sh --hostfile hosts -np 4
#
# The options are those of mpirun. The directory must be one that all hosts share. RATE (50000),
# CONNECTIONS (256), DURATION (60s): of each host. LEAD_S: seconds from now to the start (15).
set -euo pipefail

: "${TARGET:?the URL to load}" "${ALLOW:?the address of the server that may be loaded}"
START=$(($(date +%s) + ${LEAD_S:-15}))
export TARGET ALLOW START
export RATE=${RATE:-50000} CONNECTIONS=${CONNECTIONS:-256} DURATION=${DURATION:-60s}

mpirun -x TARGET -x ALLOW -x START -x RATE -x CONNECTIONS -x DURATION \
    --map-by ppr:1:node "$@" bash -c '
    cpus=$(taskset --cpu-list --pid $$ | sed "s/.*: //")
    rank=${OMPI_COMM_WORLD_RANK:?not started by Open MPI}
    exec onering-bench run --target "$TARGET" --allow-target "$ALLOW" \
        --connections "$CONNECTIONS" --rate "$RATE" --arrivals poisson --duration "$DURATION" \
        --cpus "$cpus" \
        --start-at "$START" --seed "$rank" --quiet --json "run-$rank.json"
' || echo "a generator ended with an exit code other than 0" >&2

onering-bench merge run-*.json --json merged.json
