"""Damages every kind of file that ctxc reads: `named.py SOURCE FOLDER EVERY`, each file in every EVERY-th way, from another one on.

Where a call fails, each error must name the file, or the folder that it is in. Tokens are named as
such: which of them came from where, the command line says.
"""

import json
import pathlib
import random
import shutil
import subprocess
import sys

source, root, every = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
llama, shards = source / "test/goldens/llama", source / "test/goldens/llama-sharded"
draw = random.Random(1)
problems, calls, failed, files = [], 0, 0, 0


def damaged(data):
    yield b""
    for part in (1, 7, len(data) // 2, len(data) - 1):
        yield data[:part]
    yield data + b"x"
    yield b"\0" * 64
    yield b"{}"
    yield b"[1]"
    for _ in range(6):
        at = draw.randrange(min(len(data), 4096))
        yield data[:at] + bytes([draw.randrange(256)]) + data[at + 1:]


def hold(name, command, path):
    """Runs `command` on each damaged form of the file; `name` is what messages call it by."""
    global calls, failed, files
    whole = path.read_bytes()
    files += 1
    for data in list(damaged(whole))[files % every::every]:
        path.write_bytes(data)
        calls += 1
        done = subprocess.run(["ctxc", *map(str, command)], capture_output=True, timeout=120,
                              cwd=root)
        errors = done.stderr.decode("utf-8", "replace")
        failed += done.returncode == 2
        for line in errors.splitlines():
            if " error: " in f" {line}" and name not in line and ": tokens: " not in line:
                problems.append(f"{name}: {line}")
        if done.returncode not in (0, 1, 2) or (done.returncode == 2 and not errors):
            problems.append(f"{name}: exit status {done.returncode}, {errors}")
        shutil.rmtree(root / "out", ignore_errors=True)
    path.write_bytes(whole)


def ctxc(*words):
    subprocess.run(["ctxc", *map(str, words)], cwd=root, check=True, capture_output=True)


run = ["--backend", "reference", "--tokens", "1,2,3"]
shutil.copytree(llama, root / "m")
hold("m", ["check", "m"], root / "m/config.json")
hold("m", ["verify", "m", *run], root / "m/model.safetensors")
shutil.copytree(shards, root / "s")
for path in sorted((root / "s").glob("model*")):
    hold("s", ["verify", "s", *run], path)
shutil.copytree(source / "examples/models/gemma3-kjv-1m", root / "g")
hold("g", ["verify", "g", "--backend", "reference", "--prompt", "And"], root / "g/tokenizer.model")
for kind in ("byte-level", "word-piece"):
    shutil.copytree(llama, root / kind)
    shutil.copytree(source / "test/tokenizers" / kind, root / kind, dirs_exist_ok=True)
    for path in sorted((root / kind).glob("tokenizer*.json")):
        hold(kind, ["verify", kind, "--backend", "reference", "--prompt", "a"], path)
ctxc("patch", "m", *run, "-o", "p.safetensors")
hold("p.safetensors", ["verify", "m", "--backend", "reference", "--patch", "p.safetensors"],
     root / "p.safetensors")
hold("p.safetensors", ["apply", "m", "p.safetensors", "-o", "out"], root / "p.safetensors")
ctxc("import", "m", "-o", "b.mlir")
ctxc("check", "b.mlir", "--proof", "p.json")
hold("b.mlir", ["check", "b.mlir"], root / "b.mlir")
hold("p.json", ["check-proof", "b.mlir", "p.json"], root / "p.json")
example = subprocess.run(["ctxc", "explain", "output-matrix", "--example", "fails"],
                         capture_output=True, check=True).stdout
(root / "f.mlir").write_bytes(example)
subprocess.run(["ctxc", "check", "f.mlir", "--witness=w.json"], cwd=root, capture_output=True)
for path in sorted(root.glob("w.*")):
    hold("w.", ["check", "--replay", "w.json"], path)
(root / "ids").write_text("1,2,3")
hold("ids", ["verify", "m", "--backend", "reference", "--tokens", "@ids"], root / "ids")
(root / "prompts").write_text("1,2,3\n4,5,6\n")
ctxc("experiment", "trace", "m", "--prompts", "prompts", "--threads", "1", "-o", "e")
hold("e/records.jsonl", ["experiment", "trace", "m", "--prompts", "prompts", "--threads", "1", "-o",
                         "e"], root / "e/records.jsonl")
print(f"{calls} calls, {failed} failed")
sys.exit("\n".join(dict.fromkeys(problems)) or (0 if failed > calls / 3 else "hardly any failed"))
