"""tools/new.py on copies of the tree: the twin of each activation, update rule and option, and of several ops, is in every
file that docs/changes.md names for its kind and that has the other. With a folder, a copy with one twin of each kind is
built there, and does what the others do.

    new.py SOURCE [FOLDER]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PARTS = ("docs", "dialects", "include", "lib", "python", "tools", "test/jax", "test/package", "test/unit/Analysis",
         "test/unit/Families")
OPS = ("softcap", "softmax", "clamp", "leaky", "power", "round", "activation", "normalize")  # XF…Op of one word
ONE_OF_EACH = {"activation": "softplus", "update": "balanced", "option": "integer-products", "op": "softcap"}
MODEL = """
xf.block @layer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %q = xf.reshape %x : tensor<8xf32> to tensor<1x8xf32>
  %a = xf.attention %q, %q, %q scale 0.5 : tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
  %f = xf.reshape %a : tensor<1x8xf32> to tensor<8xf32>
  %v = xf.add %x, %f : tensor<8xf32>
  %up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation ACTIVATION %u : tensor<16xf32>
  %c = xf.CAP %h at 30.0 : tensor<16xf32>
  %down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %down * %c : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @model {
  %t = xf.token : tensor<i32>
  %E = xf.param "embed" : tensor<31x8xf32>
  %x0 = xf.embed %E[%t] : tensor<31x8xf32>, tensor<i32>
  %x1 = xf.layer @layer(%x0) at "layers.0." : (tensor<8xf32>) -> tensor<8xf32>
  %H = xf.param "head" : tensor<31x8xf32>
  %l = xf.linear %H * %x1 : tensor<31x8xf32>, tensor<8xf32>
  xf.yield %l : tensor<31xf32>
}
"""


def copied(source, folder):
    for part in PARTS:
        shutil.copytree(source / part, folder / part, ignore=shutil.ignore_patterns("families", "__pycache__", "node_modules"))


def written(root, kind, name, other):
    done = subprocess.run([sys.executable, root / "tools/new.py", kind, name, "--like", other], capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def names(root):
    def first(file, pattern):
        return re.findall(pattern, (root / file).read_text(encoding="utf-8"), re.M)

    options = re.findall(r'^CTXC_OPTION\(\w+, "[^"]*", \w+, (\w+), "(\w+-\w+)"', (root / "include/ctxc/Session/Options.def").read_text(), re.M)
    fields = re.findall(r"^  bool (\w+)", (root / "include/ctxc/Session/Options.h").read_text(), re.M)
    return {"activation": first("dialects/XF/Functions.def", r"^CTXC_FUNCTION\((\w+)"),
            "update": first("include/ctxc/Numerics/Updates.def", r"^CTXC_UPDATE\(\w+, (\w+)"),
            "option": [flag for field, flag in options if field in fields and field.lower() == flag.replace("-", "")],
            "op": OPS}


EXPECTED = {
    "activation": {"dialects/XF/Functions.def", "dialects/XF/XFAttrs.td", "dialects/XF/XFTokenOps.td", "dialects/XF/EntryImage.cpp"},
    "update": {"include/ctxc/Numerics/Updates.def", "dialects/Patch/PatchAttrs.td", "include/ctxc/Numerics/UnitSolvers.h",
               "docs/updates.md"},
    "option": {"include/ctxc/Session/Options.def", "include/ctxc/Session/Options.h"},
    "op": {"dialects/XF/XFTokenOps.td", "lib/Reference/TokenOps.cpp", "lib/Gradient/TokenOps.cpp", "lib/Shard/Models.cpp",
           "python/ctxc/torch/_ops.py", "test/unit/Analysis/EveryOpTest.cpp"},
}


def with_one_of_each(root):
    for kind, other in ONE_OF_EACH.items():
        if written(root, kind, "toy-products" if kind == "option" else "toy", other)[0]:
            yield f"no {kind} like {other} can be written"


def complaints(source):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "tree"
        copied(source, root)
        known = names(root)
        for kind, others in known.items():
            if not others:
                yield f"no {kind} is known"
            for number, other in enumerate(others):
                name = f"toy-{'abcdefghijklmnopqrstuvwxyz'[number]}" if kind == "option" else f"toy{kind}{number}"
                code, said = written(root, kind, name, other)
                missing = EXPECTED[kind] - set(said)
                if code or missing:
                    yield f"{kind} like {other}: {said[-1]}; not in {', '.join(sorted(missing))}"
                if not written(root, kind, name, other)[0]:
                    yield f"{kind} {name} is written twice"
            if not written(root, kind, "toy", "no-such")[0]:
                yield f"{kind} like one that is not there"
        shutil.rmtree(root)
        copied(source, root)
        yield from with_one_of_each(root)
        for check in ("one_place", "flags"):
            done = subprocess.run([sys.executable, root / f"test/package/{check}.py", root], capture_output=True, text=True)
            if done.returncode:
                yield f"{check}.py: {done.stdout}{done.stderr}"


def built(source, folder):
    root = folder / "tree"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_dir() and path.name != ".git" and not path.name.startswith("build"):
            shutil.copytree(path, root / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.is_file():
            shutil.copy(path, root)
    yield from with_one_of_each(root)
    subprocess.run([root / "tools/build.sh", "ctxc"], env={**os.environ, "CTXC_BUILD": str(folder / "build")}, check=True)
    yield from compared(folder / "build/bin/ctxc", folder)


def compared(ctxc, folder):
    """What the twins are said to be, and are compiled to, is what the others are, but for their names."""
    def run(activation, cap, *words):
        path = folder / "model.mlir"
        path.write_text(MODEL.replace("ACTIVATION", activation).replace("CAP", cap))
        done = subprocess.run([ctxc, words[0], path, *words[1:]], capture_output=True, text=True)
        return done.returncode, re.sub(rf"\b({activation}|{cap})\b", "twin", done.stdout + done.stderr)

    for words in (("check",), ("compile", "--emit=linalg", "-o", "-"), ("compile", "--emit=asm", "-o", "-")):
        found, expected = run("toy", "toy", *words), run("softplus", "softcap", *words)
        if found != expected or expected[0]:
            yield f"ctxc {words[0]}: found {found}, expected {expected}"
    helped = subprocess.run([ctxc, "patch", "--help"], capture_output=True, text=True).stdout
    for text in ("--toy-products", r"\btoy\b(?!-)"):
        if not re.search(text, helped):
            yield f"ctxc patch --help does not say {text}"


def main(source, folder=None):
    source = pathlib.Path(source).resolve()
    found = list(built(source, pathlib.Path(folder).resolve()) if folder else complaints(source))
    print("\n".join(found) or "a twin of each kind is written")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
