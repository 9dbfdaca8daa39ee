"""Algorithms learn what they need about an op through its interfaces, so that an op of a plugin takes part in everything:
outside of the rooms that define what ops mean, import them or make code of them, none asks whether an op is a certain one of
xf's. Those that still do are in ops_by_name.tsv, file and ops; the list only shrinks: an entry that is no longer needed
is an error too.

    ops_by_name.py SOURCE
"""
import collections
import pathlib
import re
import sys

ROOMS = ("Gradient", "Import", "Lowering", "Reference", "Shard")
# What a model consists of, beside the ops that compute.
STRUCTURE = {"Block", "Layer", "Model", "Param", "Position", "Setting", "Token", "Yield"}
ASKS = re.compile(r"\b(?:isa|cast|dyn_cast|getOps|getParentOfType|Case)(?:_\w+)?<([^<>;(){}]*)>")
OP = re.compile(r"\bxf::(\w+)Op\b")


def asked(source):
    """{file: Counter of ops}"""
    found = {}
    for folder in ("lib", "include", "tools", "python/core"):
        for path in sorted((source / folder).rglob("*")):
            name = path.relative_to(source)
            if path.suffix not in (".h", ".cpp") or (folder in ("lib", "include") and set(name.parts[1:3]) & set(ROOMS)):
                continue
            text = path.read_text(encoding="utf-8")
            ops = collections.Counter(op for ask in ASKS.findall(text) for op in OP.findall(ask) if op not in STRUCTURE)
            if ops:
                found[str(name)] = ops
    return found


def main(source):
    found = asked(pathlib.Path(source))
    lines = (pathlib.Path(__file__).parent / "ops_by_name.tsv").read_text().splitlines()
    known = {file: collections.Counter(ops.split()) for file, ops in (line.split("\t") for line in lines)}
    complaints = []
    for file in sorted({*found, *known}):
        more, fewer = found.get(file, collections.Counter()), known.get(file, collections.Counter())
        complaints += [f"{file}: asks whether an op is xf.{op}; ask what it needs to know of the op's interfaces"
                       for op in (more - fewer)]
        complaints += [f"{file}: asks for {op} less often: take it from ops_by_name.tsv" for op in (fewer - more)]
    print("\n".join(complaints) or f"{sum(map(len, found.values()))} ops by name in {len(found)} files")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
