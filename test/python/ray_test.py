"""ctxc.ray on a local Ray with two workers, of which one is killed in the middle: all rows come, once.

  ray_test.py REPOSITORY [ROWS]
"""

import os
import signal
import sys
from pathlib import Path

try:
    import ray
    import ray.data
except ImportError:
    print("skipped: ray is not installed")
    sys.exit(77)

import ctxc
import ctxc.ray

ROOT = Path(sys.argv[1])
ROWS = int(sys.argv[2]) if len(sys.argv) > 2 else 240
MODEL = ROOT / "examples/models/gemma3-kjv-1m"


def parent_of(process):
    return int((Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[1])


def is_ours(process):
    while process > 1 and process != os.getpid():
        process = parent_of(process)
    return process == os.getpid()


def workers():
    """Process ids of the actors that hold the model, as Ray names them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::MapWorker") and is_ours(int(folder.name)):
                found.append(int(folder.name))
        except OSError:
            pass  # it has ended
    return sorted(found)


def main():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    asked = [{"row": i, "prompt": "And David said unto " + ("Saul" if i % 2 else "Jonathan") + ", " * (i % 5)}
             for i in range(ROWS)]
    asked[7]["prompt"] = ""
    dataset = ray.data.from_items(asked, override_num_blocks=ROWS // 8)
    made = ctxc.ray.patches(dataset, MODEL, make=["patch", "metrics"], batch_size=8, concurrency=2, num_cpus=1,
                            options={"threads": 1})
    rows, killed = [], []
    for row in made.iter_rows():
        rows.append(row)
        if not killed:
            killed = workers()[:1]
            for process in killed:
                os.kill(process, signal.SIGKILL)
    assert killed, "no worker was found"
    numbers = sorted(row["row"] for row in rows)
    assert numbers == list(range(ROWS)), f"{len(numbers)} rows, {len(set(numbers))} different"
    bad = [row["row"] for row in rows if row["error"]]
    assert bad == [7], bad
    assert all(row["verified"] for row in rows if not row["error"])
    # Whoever made them, patches are those of one process.
    model = ctxc.load(MODEL)
    for row in rows[::37]:
        if row["error"]:
            continue
        path = "ray-test.safetensors"
        ctxc.Context(model, row["prompt"]).patch().save(path)
        assert open(path, "rb").read() == row["patch"], row["row"]
        os.remove(path)
    print(f"{ROWS} rows, each once; worker {killed[0]} was killed after the first")


if __name__ == "__main__":
    main()
