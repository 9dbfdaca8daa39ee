#!/usr/bin/env python3
"""The files of examples/06-many-machines: each part's command runs as the scheduler would run it, and what comes out is
what one process makes.

  clusters_test.py CTXC SOURCE WORK
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

CTXC, SOURCE, WORK = map(lambda word: Path(word).resolve(), sys.argv[1:4])
EXAMPLE = SOURCE / "examples/06-many-machines"
MODEL = SOURCE / "examples/models/gemma3-kjv-1m"


def run(words, **environment):
    path = f"{CTXC.parent}:{os.environ['PATH']}"
    done = subprocess.run([str(word) for word in words], cwd=SOURCE, capture_output=True, text=True,
                          env={**os.environ, "PATH": path, **environment})
    assert done.returncode == 0, f"{words}: {done.stderr}"


def files(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def merged(name):
    run([CTXC, "batch", "--merge", WORK / name, "-o", WORK / f"{name}-merged"])
    return files(WORK / f"{name}-merged")


def slurm():
    script = (EXAMPLE / "slurm.sh").read_text()
    first, last = map(int, re.search(r"^#SBATCH --array=(\d+)-(\d+)$", script, re.M).groups())
    assert first == 1
    for task in range(first, last + 1):
        run(["bash", EXAMPLE / "slurm.sh"], SLURM_ARRAY_TASK_ID=str(task), SLURM_CPUS_PER_TASK="1",
            RESULTS=str(WORK / "slurm"))
    return merged("slurm")


def kubernetes():
    text = (EXAMPLE / "kubernetes.yaml").read_text()
    job = yaml.safe_load(text)
    try:
        import kubernetes_validate
        kubernetes_validate.validate(job, "1.31", strict=True)
    except ImportError:
        pass
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    pod = spec["template"]["spec"]
    assert spec["completionMode"] == "Indexed" and pod["restartPolicy"] in ("Never", "OnFailure")
    [container] = pod["containers"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert set(mounts.values()) <= volumes and "/data" in mounts
    data = WORK / "kubernetes"
    data.mkdir()
    (data / "model").symlink_to(MODEL)
    shutil.copy(EXAMPLE / "prompts.jsonl", data)
    for index in range(spec["completions"]):
        words = [re.sub(r"/data\b", str(data), word) for word in container["command"] + container["args"]]
        run(words, JOB_COMPLETION_INDEX=str(index))
    shutil.move(data / "results", WORK / "pods")
    return merged("pods")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    run([CTXC, "batch", MODEL, EXAMPLE / "prompts.jsonl", "-o", WORK / "whole", "--make", "patch,metrics",
         "--window", "2"])
    whole = merged("whole")
    assert slurm() == whole, "an array of Slurm makes something else"
    assert kubernetes() == whole, "a job of Kubernetes makes something else"
    print(f"{len(whole)} files, three times the same")


if __name__ == "__main__":
    main()
