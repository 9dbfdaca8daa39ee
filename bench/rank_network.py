#!/usr/bin/env python3
"""Holds the predicted times of ranks on a slow network against measured ones.

  tools/build.sh ctxc ctxc-mpich
  bench/rank_network.py build/bin/ctxc MODEL [--shard tensor=2] [--network 0.25,100] [--page docs/clusters.md]

The ranks are processes of this machine. bench/slow_network.c delays their messages as a network of so many GB/s and
microseconds would. Measured are the milliseconds that `ctxc verify` takes to make a patch and to run a token with one, the
median of --rounds; predicted are those of `ctxc compile --emit=cost`. The speed of memory that it needs is what
`ctxc tune` measures in as many processes at once as ranks compute at a time. `verify` runs each token with a patch of its own,
which rank 0 sends the ranks that share its layers before they can begin: the time for its bytes is added to the prediction.
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from page import publish, table

HEADING = "### Measured on a slow network"
HERE = Path(__file__).resolve().parent


def ranks_of(shard):
    return math.prod(int(part.split("=")[1]) for part in shard.split(","))


def run(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr[-500:]}")
    return done


def speeds(args, count, folder):
    """The GB/s at which each of `count` processes at once reads float32 matrices, for one vector and for two."""
    files = [folder / f"tune-{i}.json" for i in range(count)]
    processes = [subprocess.Popen([args.ctxc, "tune", "--threads", "1", "--dry-run", "--memory", "300", "--force",
                                   "--json", file], stdout=subprocess.DEVNULL) for file in files]
    if any(process.wait() for process in processes):
        raise RuntimeError("ctxc tune failed")
    found = []
    for file in files:
        kind = next(each for each in json.loads(file.read_text())["kinds"] if each["kind"] == "f32")
        way = next(each for each in kind["tried"] if each["reading"] == kind["default"])
        found.append((way["oneVectorGBps"], way["twoVectorsGBps"]))
    return [statistics.mean(of) for of in zip(*found)]


def measured(args, shard, network, library, folder):
    """Milliseconds of making a patch, and of a token that is run with one."""
    bandwidth, latency = map(float, network.split(","))
    tokens = ",".join(map(str, [2] + [100 + 37 * i % 1500 for i in range(args.prompt - 1)]))
    report, times = folder / "report.json", []
    for _ in range(args.rounds):
        arrivals = folder / "arrivals"
        arrivals.unlink(missing_ok=True)
        slow = ["env", f"LD_PRELOAD={library}", f"CTXC_SLOW_SECONDS={latency * 1e-6}",
                f"CTXC_SLOW_BYTES={bandwidth * 1e9}", f"CTXC_SLOW_FILE={arrivals}"]
        run([args.mpirun, "-bind-to", "none", "-n", ranks_of(shard), *slow, args.ctxc, "verify", args.model, "--tokens",
             tokens, "--generate", args.generate, "--threads", "1", "--force", "--json", report, "--shard", shard],
            env=os.environ | {"OMP_WAIT_POLICY": "passive"})
        rates = json.loads(report.read_text())["tokensPerSecond"]
        times.append((1e3 / rates["patch"], 1e3 / rates["verify"]))
        print(shard, network, *times[-1], file=sys.stderr)
    return [statistics.median(of) for of in zip(*times)]


def patch_bytes(args, folder):
    """Of a token's patch."""
    tokens = ",".join(map(str, [2] + [100 + 37 * i % 1500 for i in range(7)]))
    path = folder / "patch.safetensors"
    run([args.ctxc, "patch", args.model, "--tokens", tokens, "-o", path, "--force"])
    return path.stat().st_size


def predicted(args, shard, network, bandwidths, patch):
    cost = run([args.ctxc, "compile", args.model, "--emit=cost", "--shard", shard, "--bandwidth", bandwidths[0],
                "--bandwidth-of-two", bandwidths[1], "--visible", f"{args.prompt + args.generate // 2},1", "--network",
                network, "--format", "json", "-o", "-"])
    found = json.loads(cost.stdout)
    sending = (found["tensor"] - 1) * patch / float(network.split(",")[0]) * 1e-9
    return found["secondsToPatch"] * 1e3, (found["secondsPatched"] + sending) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ctxc", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--shard", action="append", default=[])
    parser.add_argument("--network", action="append", default=[], metavar="GB/S,MICROSECONDS")
    parser.add_argument("--mpirun", default=shutil.which("mpirun.mpich") or "mpirun")
    parser.add_argument("--mpicc", default=shutil.which("mpicc.mpich") or "mpicc", help="of the same MPI")
    parser.add_argument("--prompt", type=int, default=64, help="tokens")
    parser.add_argument("--generate", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--page", type=Path, help="writes the table into this page, too")
    args = parser.parse_args()
    shards = args.shard or ["tensor=2", "pipeline=2"]
    networks = args.network or ["1,20", "0.25,100", "0.1,200"]
    rows, worst = [], 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = folder / "slow_network.so"
        run([args.mpicc, "-O2", "-shared", "-fPIC", HERE / "slow_network.c", "-o", library])
        patch = patch_bytes(args, folder)
        for shard in shards:
            together = int(dict(part.split("=") for part in shard.split(",")).get("tensor", 1))
            bandwidths = speeds(args, together, folder)
            for network in networks:
                cells = []
                for found, expected in zip(measured(args, shard, network, library, folder),
                                           predicted(args, shard, network, bandwidths, patch)):
                    cells += [f"{found:.1f}", f"{expected:.1f}", f"{found / expected:.2f} ×"]
                    worst = max(worst, found / expected, expected / found)
                rows.append([f"`{shard}`", network, "{:.1f}, {:.1f}".format(*bandwidths), *cells])
    head = ["", "network", "memory, GB/s", "patch, measured", "predicted", "", "patched token, measured", "predicted", ""]
    processor = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    options = " ".join([*(f"--network {each}" for each in networks), f"--prompt {args.prompt}",
                        f"--generate {args.generate}", f"--rounds {args.rounds}"])
    publish(f"""{HEADING}

`bench/rank_network.py build/bin/ctxc MODEL {options}` with {args.model.name} ({processor[1] if processor else 'unknown'}):
milliseconds. The ranks are processes of one machine with a thread each; a library delays their messages as a network of
so many GB/s and microseconds would. `ctxc verify` runs each token with a patch of its own, which rank 0 sends the ranks that
share its layers ({patch / 1e6:.2f} MB); its time is in the prediction.

{table(head, rows)}

Measured and predicted times differ by a factor of at most {worst:.2f}. Where messages are slow, ranks that share
layers make a patch faster than predicted: values that are exchanged between the same two segments go in one message, and the
prediction counts a message for each.
""", HEADING, args.page)


if __name__ == "__main__":
    main()
