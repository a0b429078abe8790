#!/usr/bin/env bash
# Loads one server from every host of an MPI launcher at the same moment, and merges what they
# measured. MPI starts the generators, and no more: they do not speak with each other.
#
#   TARGET=http://10.0.0.5/ ALLOW=10.0.0.5 mpi.sh --hostfile hosts -np 4
#
# The options are those of mpirun. The directory must be one that all hosts share.
set -euo pipefail

: "${TARGET:?the URL to load}" "${ALLOW:?the address of the server that may be loaded}"
export TARGET ALLOW
START=$(($(date +%s) + 15))
export START

# The rank goes by another name in Open MPI than in MPICH and its kin.
mpirun -x TARGET -x ALLOW -x START --map-by ppr:1:node "$@" bash -c '
    rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?started by neither Open MPI nor MPICH}}
    exec onering-bench run --target "$TARGET" --allow-target "$ALLOW" \
        --connections 256 --rate 50000 --arrivals poisson --duration 60s --cpus 0-7 \
        --start-at "$START" --seed "$rank" --quiet --json "run-$rank.json"
' || echo "a generator ended with an exit code other than 0" >&2

onering-bench merge run-*.json --json merged.json
