#!/usr/bin/env python3
"""Kills an experiment in the middle, runs it again, and compares with one that was not interrupted.

  interrupt.py WHOLE DIR COMMAND...    WHOLE has the uninterrupted records; COMMAND ends with -o DIR
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def records(path):
    """The records of a file by key; no line may be broken."""
    parsed = [json.loads(line) for line in Path(path, "records.jsonl").read_text().splitlines()]
    return {r["key"]: r for r in parsed if "key" in r}


def main():
    whole, directory, *command = sys.argv[1:]
    file = Path(directory, "records.jsonl")
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        if file.exists() and file.read_bytes().count(b"\n") > 5:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.001)
    process.wait()
    if process.returncode != -signal.SIGKILL:
        print(f"was not killed in time: exit code {process.returncode}")
        return 1
    # Simulates a kill in the middle of a write.
    os.truncate(file, file.stat().st_size - 20)
    before = len(file.read_bytes().splitlines()) - 2
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stderr + done.stdout)
    if done.returncode or f"goes on after {before} records" not in done.stderr:
        print(f"expected it to go on after {before} records")
        return 1
    if records(whole) != records(directory):
        print("the records are others than those of the run that was not interrupted")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
