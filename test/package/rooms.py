"""Every library declares exactly the libraries whose headers it includes: those that its public headers include as
DEPS, and those that only its sources include as PRIVATE_DEPS. And no file includes itself by way of others.

    rooms.py SOURCE ARROWS    ARROWS is written by ctxc_check_layers: a line "Room DEPS|PRIVATE_DEPS Room"
"""
import pathlib
import re
import sys

ANY = re.compile(r'^\s*#?\s*include\s+"([^"]+)"', re.M)
INCLUDE = re.compile(r'^\s*#?\s*include\s+"(?:ctxc|dialects)/(\w+)/', re.M)


def rooms_included(files, room):
    found = {}
    for path in files:
        if path.suffix in (".h", ".cpp", ".td", ".def"):
            for other in INCLUDE.findall(path.read_text(encoding="utf-8")):
                found.setdefault(other, path)
    found.pop(room, None)
    return found


def check(source, room, declared):
    """The errors in one room, whose arrows are {"DEPS": set, "PRIVATE_DEPS": set}."""
    public = [source / "include/ctxc" / room, source / "dialects" / room]
    headers = [path for folder in public for path in folder.rglob("*") if path.suffix != ".cpp"]
    sources = [path for folder in (*public, source / "lib" / room) for path in folder.rglob("*")]
    shown = rooms_included(headers, room)
    hidden = {other: path for other, path in rooms_included(sources, room).items()
              if other not in shown}
    for kind, included in (("DEPS", shown), ("PRIVATE_DEPS", hidden)):
        for other in sorted(included.keys() - declared[kind]):
            yield f"{included[other].relative_to(source)} includes {other}: to be in {kind} of Ctxc{room}"
        for other in sorted(declared[kind] - included.keys()):
            yield f"Ctxc{room} has {other} in {kind}, which no {'header' if kind == 'DEPS' else 'source alone'} includes"


def find_cycles(source):
    """A complaint for each file that a file which it includes, or one that this includes, and so on, includes."""
    files = [path for folder in ("include", "dialects", "lib", "tools") for path in (source / folder).rglob("*")
             if path.suffix in (".h", ".cpp", ".def")]
    includes = {}
    for path in files:
        names = ANY.findall(path.read_text(encoding="utf-8"))
        includes[path] = [found for name in names for folder in (source, source / "include")
                          if (found := folder / name).exists()]
    done, open_files = set(), []

    def visit(path):
        if path in open_files:
            yield " includes ".join(str(each.relative_to(source)) for each in open_files[open_files.index(path):] + [path])
        elif path not in done:
            open_files.append(path)
            for other in includes.get(path, []):
                yield from visit(other)
            done.add(open_files.pop())

    for path in sorted(files):
        yield from visit(path)


def main(source, arrows):
    source = pathlib.Path(source)
    declared = {}
    for line in pathlib.Path(arrows).read_text(encoding="utf-8").splitlines():
        room, kind, *others = line.split()
        declared.setdefault(room, {"DEPS": set(), "PRIVATE_DEPS": set()})[kind] |= set(others)
    complaints = [text for room in sorted(declared) for text in check(source, room, declared[room])]
    complaints += find_cycles(source)
    print(*complaints, f"{len(declared)} rooms, {len(complaints)} complaints", sep="\n")
    return 1 if complaints or len(declared) < 10 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
