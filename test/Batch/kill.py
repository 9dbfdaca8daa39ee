#!/usr/bin/env python3
"""Kills `ctxc batch` at random moments until it is done, two processes at a time, and compares what is there with
what one process makes that nobody kills.

  kill.py CTXC MODEL WORK [--kills N] [--seed S]
"""
import argparse
import json
import random
import shutil
import subprocess
import time
from pathlib import Path

LINES, PARTS = 48, 2


def prompts(chance):
    """Lines that share beginnings, some of them bad."""
    shared = [[chance.randrange(1, 80) for _ in range(12)] for _ in range(3)]
    for line in range(LINES):
        if line % 17 == 5:
            yield "{bad"
            continue
        tokens = shared[line % 3][:chance.randrange(4, 13)] + [chance.randrange(1, 80), line + 1]
        asked = {"id": line, "tokens": tokens, "make": ["patch", "metrics"]}
        if line % 5 == 0:
            asked["positions"] = "all"
        yield json.dumps(asked)


def command(options, directory, part):
    return [options.ctxc, "batch", options.model, options.work / "prompts.jsonl", "-o", directory, "--window", "4",
            "--part", f"{part}/{PARTS}", "--threads", "1"]


def files(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if not path.name.endswith(".lock")}


def records(directory):
    """Each file that is there is whole, and so is what it names."""
    found = []
    for path in sorted(directory.glob("records-*.jsonl")):
        lines = path.read_text().splitlines(keepends=True)
        assert all(line.endswith("\n") for line in lines), path
        for record in map(json.loads, lines):
            assert record["shard"] is None or (directory / record["shard"]).exists(), record
            found.append((record["line"], record["position"]))
    assert len(found) == len(set(found)), "a record is there twice"
    return set(found)


def main():
    parser = argparse.ArgumentParser()
    for name in ("ctxc", "model", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    (options.work / "prompts.jsonl").write_text("\n".join(prompts(chance)) + "\n")
    undisturbed, killed = options.work / "undisturbed", options.work / "killed"
    begin = time.monotonic()
    for part in (1, 2):
        subprocess.run(command(options, undisturbed, part), check=True, stdout=subprocess.DEVNULL)
    seconds = (time.monotonic() - begin) / PARTS
    before, kills = set(), 0
    while kills < options.kills:
        processes = [subprocess.Popen(command(options, killed, part), stdout=subprocess.DEVNULL) for part in (1, 2)]
        time.sleep(chance.uniform(0, 1.2 * seconds))
        for process in processes:
            kills += process.poll() is None
            process.kill()
            assert process.wait() in (0, -9)
        now = records(killed) if killed.exists() else set()
        assert before <= now, "a record is gone"
        before = now
        if all(process.returncode == 0 for process in processes):
            break
    for part in (1, 2):
        subprocess.run(command(options, killed, part), check=True, stdout=subprocess.DEVNULL)
    expected, found = files(undisturbed), files(killed)
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    different = [name for name in expected if found[name] != expected[name]]
    assert not different, different
    print(f"killed {kills} times; {len(expected)} files, {len(records(killed))} records, as without")


if __name__ == "__main__":
    main()
