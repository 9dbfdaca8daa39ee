"""The digest in the keys of cached kernels covers what the sources of the lowering include.

    digest.py SOURCE LIST    LIST has the files of the digest, a line each
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#?\s*include\s+"([^"]+)"', re.M)
# What machine code for given IR does not depend on.
APART = {
    "dialects/Patch/Patch.h": "names blocks",
    "dialects/XF/XF.h": "names blocks",
    "include/ctxc/Lowering/Codegen.h": "declares the calls",
    "include/ctxc/Lowering/GPU.h": "is of GPUs' code, which is not cached",
    "include/ctxc/Program/Executor.h": "declares an error",
    "include/ctxc/Support/Error.h": "declares an error",
    "lib/Lowering/Objects/GuardLibrary.h": "is of libraries on disk, which are not cached",
}


def find(source, name):
    return next((path for folder in (source, source / "include") if (path := folder / name).exists()), None)


def main(source, listed):
    source = pathlib.Path(source)
    files = [pathlib.Path(line) for line in pathlib.Path(listed).read_text(encoding="utf-8").splitlines() if line]
    known = {str(path.relative_to(source)) for path in files}
    included = {}
    for path in files:
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if found := find(source, name):
                included.setdefault(str(found.relative_to(source)), path.relative_to(source))
    complaints = [f"{by} includes {name}, which is not in the digest's list (lib/Lowering/CMakeLists.txt)"
                  for name, by in sorted(included.items()) if name not in known and name not in APART]
    complaints += [f"{name} need not be apart" for name in APART if name in known or name not in included]
    print(*complaints, f"{len(known)} files, {len(complaints)} complaints", sep="\n")
    return 1 if complaints or len(known) < 20 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
