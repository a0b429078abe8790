#!/usr/bin/env bash
# Loads one server from four hosts of a Slurm cluster at the same moment, and merges what they
# measured:
#
#   TARGET=http://10.0.0.5/ ALLOW=10.0.0.5 sbatch slurm.sh
#
#SBATCH --job-name=onering-bench
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --exclusive
#SBATCH --time=00:05:00
set -euo pipefail

: "${TARGET:?the URL to load}" "${ALLOW:?the address of the server that may be loaded}"
export TARGET ALLOW
# Half a minute is for srun to reach every host.
START=$(($(date +%s) + 30))
export START

# The CPUs of the generator are those that Slurm gave to the task.
srun --kill-on-bad-exit=0 bash -c '
    cpus=$(taskset --cpu-list --pid $$ | sed "s/.*: //")
    exec onering-bench run --target "$TARGET" --allow-target "$ALLOW" \
        --connections 256 --rate 50000 --arrivals poisson --duration 60s --cpus "$cpus" \
        --start-at "$START" --seed "$SLURM_PROCID" --quiet --json "run-$SLURM_PROCID.json"
' || echo "a generator ended with an exit code other than 0" >&2

onering-bench merge run-*.json --json merged.json
