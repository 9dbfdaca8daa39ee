"""Runs ctxc on names that are meant to control a terminal: `hostile.py CHECKPOINT FOLDER`.

Puts an escape sequence, a zero byte, a C1 control and a line feed with a forged message into
whatever a file, a folder or a command line can name: keys and values of JSON, tensors, shards,
tokens, parameters of blocks, records, paths. Whatever ctxc then says, on either stream, must hold
none of these, and no line may begin with the forged message.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import urllib.parse

source, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
FORGED = "FORGED: all is well"
BAD = f"a\x1b[2Jb\x9bc\n{FORGED}\n\x07"
problems, count = [], 0


def run(*arguments, cwd=None):
    global count
    count += 1
    words = [os.fsencode(str(word)) for word in ("ctxc", *arguments)]
    done = subprocess.run(words, capture_output=True, timeout=120, cwd=cwd or root)
    for name, data in (("stdout", done.stdout), ("stderr", done.stderr)):
        text = data.decode("utf-8", "replace")
        found = [repr(c) for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
        if found:
            problems.append(f"{arguments}: {name} has {sorted(set(found))}")
        if any(line.startswith(FORGED) for line in text.splitlines()):
            problems.append(f"{arguments}: {name} has the forged line")
    if done.returncode < 0 or (done.returncode and not done.stderr and not done.stdout):
        problems.append(f"{arguments}: exit status {done.returncode} without a word")
    return done


def copied(name):
    to = root / name
    shutil.copytree(source, to)
    return to


def safetensors(path, header):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))


def checkpoints():
    config = json.loads((source / "config.json").read_text())
    for i, changed in enumerate([
            {**config, BAD: 1}, {**config, "model_type": BAD}, {**config, "hidden_act": BAD},
            {**config, "num_hidden_layers": BAD}, {**config, "rope_scaling": {BAD: BAD}},
            {**config, "torch_dtype": BAD}]):
        folder = copied(f"config{i}")
        (folder / "config.json").write_text(json.dumps(changed))
        run("check", folder)
    for i, text in enumerate(["{" + BAD, '{"' + BAD + '": 1}', '{"a\\u0000b": 1}', "\0\x1b"]):
        folder = copied(f"text{i}")
        (folder / "config.json").write_bytes(text.encode("utf-8"))
        run("check", folder)
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    for i, header in enumerate([
            {BAD: entry}, {BAD: {**entry, "dtype": BAD}}, {"x\0y": {**entry, "shape": [5]}},
            {"__metadata__": {BAD: BAD}, BAD: entry}, {"a": {**entry, BAD: 1}}]):
        folder = copied(f"tensors{i}")
        safetensors(folder / "model.safetensors", header)
        for command in (["check", folder], ["verify", folder, "--tokens", "1,2"],
                        ["apply", folder, folder / "model.safetensors", "-o", "no"]):
            run(*command)
        run("verify", source, "--patch", folder / "model.safetensors")
    folder = copied("index")
    (folder / "model.safetensors").unlink()
    for name in (BAD, "x\0.safetensors", "../" + BAD):
        index = {"weight_map": {BAD: name, "b": name}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        run("check", folder)


def blocks():
    escaped = "".join(f"\\{b:02X}" for b in BAD.encode())
    text = ('xf.block @"%s"(%%x: tensor<4xf32>) -> tensor<4xf32> {\n  %%p = xf.param "%s" : '
            "tensor<4xf32>\n  %%y = xf.bias %%x + %%p : tensor<4xf32>, tensor<4xf32>\n"
            "  xf.yield %%y : tensor<4xf32>\n}\n")
    for i, (block, name) in enumerate([(escaped, "b"), ("b", escaped), ("b", BAD), (BAD, "b")]):
        path = root / f"block{i}.mlir"
        path.write_text(text % (block, name))
        run("check", path)
        run("check", path, "--format", "json")
        run("compile", path, "--emit=xf", "-o", "-")
        run("verify", path, "--weights", "random:1", "--tokens", "1,2")
    (root / "raw.mlir").write_bytes(b"xf.block @b\x1b[2J \0 \xff\x9b\n" + FORGED.encode() + b"\n")
    run("check", root / "raw.mlir")


def json_files():
    for text in (json.dumps({"format": BAD}), json.dumps({BAD: 1}), BAD, "\0", "[" * 9999,
                 json.dumps({"format": "ctxc-proof", "version": 1, "blocks": [{BAD: BAD}]}),
                 json.dumps({"format": "ctxc-witness", "version": 1, "tensors": BAD,
                             "witnesses": []})):
        path = root / "file.json"
        path.write_text(text)
        run("check-proof", source, path)
        run("check", "--replay", path)
        records = root / "records"
        shutil.rmtree(records, ignore_errors=True)
        records.mkdir()
        (records / "records.jsonl").write_text(text + "\n")
        run("experiment", "trace", source, "-o", records)


def texts(value):
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(each)


def json_output():
    """What is written as JSON stays JSON, with the same names."""
    path = root / "j\x7f\u0085\x1b.mlir"
    shutil.copy(source.parents[1] / "Rules/all-frozen.mlir", path)
    for form in ("json", "sarif"):
        done = run("check", path, "--format", form)
        if not any(path.name in urllib.parse.unquote(text) for text in texts(json.loads(done.stdout))):
            problems.append(f"{form}: the file has another name")


def words():
    for option in ("--tokens", "--keep", "--plan", "--update", "--prompt", "--dtype", "--weights",
                   "--target", "--positions", "--threads", "--json", "--patch", "--embeddings"):
        run("verify", source, "--tokens", "1,2", option, BAD)
        run("verify", source, "--tokens", "1,2", option, "@" + BAD)
    for arguments in ([BAD], ["check", BAD], ["check", source, BAD], ["check", source, "--" + BAD],
                      ["explain", BAD], ["man", BAD], ["completion", BAD],
                      ["experiment", BAD, source, "-o", "no"], ["import", BAD],
                      ["check", source, "--load-dialect-plugin=" + BAD],
                      ["compile", source, "--emit", BAD, "-o", BAD],
                      ["explain", "--check-pages", BAD], ["check-proof", source, BAD]):
        run(*arguments)
    folder = root / ("d" + BAD)
    folder.mkdir()
    shutil.copytree(source, folder / "m")
    for arguments in (["check", folder / "m"],
                      ["verify", folder / "m", "--backend", "reference", "--tokens", "1,2"],
                      ["inspect", folder / "m", "--backend", "reference", "--tokens", "1,2"],
                      ["patch", folder / "m", "--backend", "reference", "--tokens", "1,2", "-o",
                       folder / "p"],
                      ["apply", folder / "m", folder / "p", "-o", folder / "q"],
                      ["patch", folder / "m", "--tokens", "1,2", "-o", folder / "m/config.json"],
                      ["explain", "--check-pages", folder]):
        run(*arguments)


for part in (checkpoints, blocks, json_files, json_output, words):
    part()
print(f"{count} calls")
sys.exit("\n".join(problems) or 0)
