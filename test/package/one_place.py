"""A list of names stands in one place: no other source lists most of the names of a .def file again, where a new one would
be forgotten. What has to follow such a list, since it says something about each name, says it about all of them. And the
files that docs/changes.md names exist.

    one_place.py SOURCE
"""
import pathlib
import re
import sys

FOLDERS = ("lib", "include", "dialects", "tools", "python", "bench")
KINDS = {".h", ".cpp", ".td", ".def", ".py"}

# The list; how a row names its entry; files that list the names too, and why.
LISTS = {
    "include/ctxc/Numerics/Updates.def": (r"^CTXC_UPDATE\(\w+, (\w+)", {
        "dialects/Patch/PatchAttrs.td": "TableGen reads no .def file; PatchDialect.cpp asserts that both are the same",
        "include/ctxc/Export/PatchFile.h": "a comment",
        "include/ctxc/Planning/BlockPlan.h": "names those that patch a matrix too",
        "tools/plots/style.py": "each has a colour and a marker",
        "python/ctxc/torch/_norms.py": "each has a solver in PyTorch",
    }),
    "include/ctxc/Planning/Objectives.def": (r'^CTXC_OBJECTIVE\(\w+, "([\w-]+)"', {"include/ctxc/Planning/Planner.h": "a comment"}),
    "include/ctxc/Support/Devices.def": (r"^CTXC_DEVICE\(\w+, (\w+)", {
        "include/ctxc/Lowering/GPU.h": "examples", "include/ctxc/Runtime/GPU/Device.h": "examples",
    }),
    "include/ctxc/Support/BlockFormats.def": (r"^CTXC_\w+\(\w+, (\w+)", {
        "dialects/XF/XFTypes.td": "TableGen reads no .def file; XFDialect.cpp asserts that both are the same",
    }),
    "dialects/XF/Functions.def": (r"^CTXC_FUNCTION\((\w+)", {
        "dialects/XF/XFAttrs.td": "TableGen reads no .def file; a switch over Functions.def has each kind",
        "dialects/XF/XFTokenOps.td": "the table of the language reference",
        "dialects/XF/Functions.h": "the parts of formulas",
        "python/ctxc/torch/_ops.py": "the parts of formulas",
    }),
}
# What says something about every name of a list.
FOLLOWS = {
    "docs/updates.md": "include/ctxc/Numerics/Updates.def",
    "docs/gpu.md": "include/ctxc/Support/Devices.def",
    "dialects/XF/XFTokenOps.td": "dialects/XF/Functions.def",
}
NEAR = 400  # letters


def names_of(source, file):
    return re.findall(LISTS[file][0], (source / file).read_text(encoding="utf-8"), re.M)


def listed(text, names, share=2 / 3):
    """The line on which most of `names` stand near each other as words of their own; None if they do not."""
    places = sorted((found.start(), name) for name in names
                    for found in re.finditer(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text))
    for first, _ in places:
        near = {name for at, name in places if first <= at < first + NEAR}
        if len(near) > max(2, len(names) * share):
            return text.count("\n", 0, first) + 1
    return None


def complaints(source):
    for file, (_, others) in LISTS.items():
        names, found = names_of(source, file), set()
        for path in sorted(path for folder in FOLDERS for path in (source / folder).rglob("*") if path.suffix in KINDS):
            name = str(path.relative_to(source))
            # One that may list them does so too while a new name is not there yet.
            line = None if name == file else listed(path.read_text(encoding="utf-8"), names, 1 / 2 if name in others else 2 / 3)
            if line and name in others:
                found.add(name)
            elif line:
                yield f"{name}:{line}: lists {', '.join(names)}; read {file}"
        yield from (f"{name} no longer lists the names of {file}" for name in others.keys() - found)
    for name, file in FOLLOWS.items():
        text = (source / name).read_text(encoding="utf-8")
        yield from (f"{name}: says nothing about {each}, which {file} has" for each in names_of(source, file)
                    if not re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", text))


def missing(source, page="docs/changes.md"):
    """The files that the page names, and that are not there. One without a folder stands beside the one before it."""
    folder = None
    for name in re.findall(r"`([\w./-]+\.(?:cpp|h|td|def|py|md))`", (source / page).read_text(encoding="utf-8")):
        path = source / name if "/" in name else folder / name
        folder = path.parent
        if not path.exists():
            yield f"{page}: {name} is not there"


def main(source):
    source = pathlib.Path(source)
    found = [*complaints(source), *missing(source)]
    print("\n".join(found) or "one place each: " + ", ".join(LISTS))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
