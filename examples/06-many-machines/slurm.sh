#!/bin/bash
# One job of an array for each part: sbatch slurm.sh. All write into one directory of a common file system; a job that
# was preempted, or ran out of time, goes on where it was when it is started again.
#SBATCH --job-name=ctxc-batch
#SBATCH --array=1-4
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=01:00:00
#SBATCH --requeue
set -euo pipefail
model=${MODEL:-examples/models/gemma3-kjv-1m}
prompts=${PROMPTS:-examples/06-many-machines/prompts.jsonl}
results=${RESULTS:-build/slurm-batch}
exec ctxc batch "$model" "$prompts" -o "$results" --make patch,metrics --window 2 \
    --part "$SLURM_ARRAY_TASK_ID/4" --threads "${SLURM_CPUS_PER_TASK:-1}"
