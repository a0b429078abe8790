#!/usr/bin/env bash
# Loads one server from four hosts of a Slurm cluster at the same moment, and merges what they
# measured:
#
#   TARGET=http://10.0.0.5/ ALLOW=10.0.0.5 sbatch slurm.sh
#
# RATE (50000), CONNECTIONS (256), DURATION (60s): of each host. LEAD_S: seconds from now to the start,
# for srun to reach every host (30).
#
#SBATCH --job-name=onering-bench
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --exclusive
#SBATCH --time=00:05:00
set -euo pipefail

: "${TARGET:?the URL to load}" "${ALLOW:?the address of the server that may be loaded}"
START=$(($(date +%s) + ${LEAD_S:-30}))
export TARGET ALLOW START
export RATE=${RATE:-50000} CONNECTIONS=${CONNECTIONS:-256} DURATION=${DURATION:-60s}

# The CPUs of the generator are those that Slurm gave to the task.
srun --kill-on-bad-exit=0 bash -c '
    cpus=$(taskset --cpu-list --pid $$ | sed "s/.*: //")
    exec onering-bench run --target "$TARGET" --allow-target "$ALLOW" \
        --connections "$CONNECTIONS" --rate "$RATE" --arrivals poisson --duration "$DURATION" \
        --cpus "$cpus" \
        --start-at "$START" --seed "$SLURM_PROCID" --quiet --json "run-$SLURM_PROCID.json"
' || echo "a generator ended with an exit code other than 0" >&2

onering-bench merge run-*.json --json merged.json
