"""The checker of proofs must include no header of analysis, planning or what builds on them,
directly or through another header of this project.

    includes.py SOURCE
"""
import pathlib
import re
import sys

FORBIDDEN = re.compile(r"(ctxc/|lib/|^)(Analysis|Planning|Transforms|Evidence|Report|Verify)/")
INCLUDE = re.compile(r'^\s*#include\s+[<"]([^>"]+)[>"]', re.M)


def resolve(source, file, name):
    for folder in (file.parent, source / "include", source):
        path = folder / name
        if path.exists():
            return path.resolve()
    return None


def main(source):
    source = pathlib.Path(source).resolve()
    roots = [*(source / "lib/Proof").glob("*"), *(source / "include/ctxc/Proof").glob("*")]
    work = [(path, [path]) for path in roots if path.suffix in (".h", ".cpp")]
    seen, bad = {path for path, _ in work}, 0
    while work:
        path, way = work.pop()
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if FORBIDDEN.search(name):
                names = " > ".join(str(p.relative_to(source)) for p in way)
                print(f"{names}: includes {name}, which the checker must not share")
                bad += 1
            found = resolve(source, path, name)
            if found and found not in seen:
                seen.add(found)
                work.append((found, way + [found]))
    print(f"{len(seen)} files, {bad} complaints")
    return 1 if bad or len(seen) < 10 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
