#!/usr/bin/env python3
"""Checks that the Dockerfile fits the repository that it builds.

  dockerfile.py ROOT            its instructions, what they copy, run and install
  dockerfile.py ROOT --last     prints the shell commands of its last stage, for test/package/deb.sh
  dockerfile.py ROOT --stage N  prints a stage, from 0, as a script that takes what it copies from /context, and from
                                /from/NAME what it copies from another stage (test/newcomer)

No Docker is needed. What the first stage installs is tools/setup.sh's affair alone, so that there is one
list of packages; the last installs the Debian package, whose dependencies dpkg-shlibdeps found, and what
that package suggests.
"""

import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path

KNOWN = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}


def instructions(text):
    """(line number, instruction, its arguments), continued lines joined."""
    number, lines = 0, iter(text.splitlines())
    for line in lines:
        number += 1
        start = number
        if not line.strip() or line.startswith("#"):
            continue
        while line.endswith("\\"):
            line = line[:-1] + next(lines)
            number += 1
        yield start, *line.split(None, 1)


def stages(text):
    """The instructions of each stage."""
    found = []
    for step in instructions(text):
        if step[1] == "FROM":
            found.append([])
        found[-1].append(step)
    return found


def copied(arguments, root, ignored, names):
    """What is wrong with a COPY."""
    words = arguments.split()
    if words[0].startswith("--from="):
        if words[0][7:] not in names:
            yield f"there is no earlier stage {words[0][7:]}"
        return
    for source in words[:-1]:
        if not (root / source).exists():
            yield f"{source} is not there"
        if any(fnmatch.fnmatch(source, pattern) for pattern in ignored):
            yield f".dockerignore leaves {source} out"


def run(arguments, root, preset):
    """What is wrong with a RUN."""
    parsed = subprocess.run(["sh", "-n"], input=arguments, text=True, stderr=subprocess.PIPE)
    if parsed.returncode:
        yield parsed.stderr.strip()
    for script in re.findall(r"\btools/\S+\.sh(?: --\w+)?", arguments):
        path, _, option = script.partition(" ")
        if not (root / path).is_file():
            yield f"{path} is not there"
        elif option and f"  {option})" not in (root / path).read_text():
            yield f"{path} has no option {option}"
    for name in re.findall(r"--preset (\S+)", arguments):
        if name != preset["name"]:
            yield f"expected the preset {preset['name']}, found {name}"
    for config in re.findall(r"--config (\S+)/CPackConfig.cmake", arguments):
        if preset["binaryDir"] != "${sourceDir}/" + config:
            yield f"expected the folder of the preset, {preset['binaryDir']}, found {config}"


def installed(arguments):
    """The packages that a RUN installs by apt-get."""
    for words in re.findall(r"apt-get install ([^&|;]*)", arguments):
        yield from (word for word in words.split() if not word.startswith("-"))


def problems(root):
    text = (root / "Dockerfile").read_text()
    ignored = (root / ".dockerignore").read_text().split()
    presets = json.loads((root / "CMakePresets.json").read_text())["configurePresets"]
    preset = next(preset for preset in presets if preset["name"] == "package")
    suggested = re.search(r'PACKAGE_SUGGESTS "(.*)"', (root / "cmake/CtxcInstall.cmake").read_text())[1]
    all_stages, names, bases = stages(text), [], []
    for index, stage in enumerate(all_stages):
        for number, instruction, arguments in stage:
            wrong = []
            if instruction not in KNOWN:
                wrong.append(f"unknown instruction {instruction}")
            elif instruction == "FROM":
                base, *named = arguments.split(" AS ")
                bases.append(base)
                names += named
            elif instruction == "COPY":
                wrong += copied(arguments, root, ignored, names)
            elif instruction == "RUN":
                wrong += run(arguments, root, preset)
                for package in installed(arguments):
                    if index == 0:
                        wrong.append(f"tools/setup.sh has the list of packages, {package} with them")
                    elif "*.deb" not in package and package not in re.split(r"[ ,|]+", suggested):
                        wrong.append(f"the package does not suggest {package}")
            yield from (f"Dockerfile:{number}: {message}" for message in wrong)
    if len(set(bases)) != 1 or len(bases) != 2:
        yield f"expected two stages on one Debian, found {bases}"
    if "tools/setup.sh" not in text:
        yield "the first stage does not run tools/setup.sh"


def script(stage):
    """The stage as lines of the shell."""
    for _, instruction, arguments in stage:
        words = arguments.split()
        if instruction == "WORKDIR":
            yield f"mkdir -p {arguments}; cd {arguments}"
        elif instruction == "RUN":
            yield f"( {arguments} )"
        elif instruction == "COPY":
            *sources, target = (word for word in words if not word.startswith("--"))
            start = f"/from/{words[0][7:]}" if words[0].startswith("--from=") else "/context/"
            if target.endswith("/"):
                yield f"mkdir -p {target}"
            yield f"cp -r {' '.join(start + source for source in sources)} {target}"


def main():
    root = Path(sys.argv[1])
    if sys.argv[2:] == ["--last"]:
        for _, instruction, arguments in stages((root / "Dockerfile").read_text())[-1]:
            if instruction == "RUN":
                print(arguments)
        return 0
    if sys.argv[2:3] == ["--stage"]:
        print("\n".join(script(stages((root / "Dockerfile").read_text())[int(sys.argv[3])])))
        return 0
    found = list(problems(root))
    for message in found:
        print(message)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
