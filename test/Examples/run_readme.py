#!/usr/bin/env python3
"""Runs the commands that a README shows, and compares their output with the README's.

  run_readme.py README.md --build BUILD [--models MODELS] [--judges JUDGES]

A fenced block marked ```console holds commands, each after "$ ", and below each of them its output, standard
output and errors together. A command continues after a line that ends in a backslash, and to the end of a
here-document (<<'END'). In the expected text "..." stands for anything within a line, and a line with only
"..." for any lines. "$ echo $?" shows the exit code of the command before. Differences between machines are
allowed:

  3.1 s       any time
  2.5e-16     a rounding error: at most ten times as much (or 1e-6, in float32)
  12.3        any other number with a point: within 2 %, or one in its last place
  blanks      any number of them counts as one

All commands of a README run in order, in one scratch copy of the repository's root (links, so that
what a command writes there stays there), with BUILD/bin first on the path.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


HERE_DOCUMENT = re.compile(r"<<'(\w+)'")


def commands(text):
    """(line number, command, expected lines) of each command in the ```console blocks."""
    found, inside, number = [], False, 0
    lines = iter(text.splitlines())
    for line in lines:
        number += 1
        if line.startswith("```"):
            inside = line.strip() == "```console"
        elif inside and line.startswith("$ "):
            command, start = line[2:], number
            while command.endswith("\\"):
                command += "\n" + next(lines)
                number += 1
            if here := HERE_DOCUMENT.search(command):
                while command.splitlines()[-1] != here[1]:
                    command += "\n" + next(lines)
                    number += 1
            found.append((start, command, []))
        elif inside:
            if not found:
                raise SystemExit(f"line {number}: expected a command, found {line!r}")
            found[-1][2].append(line.rstrip())
    for _, _, expected in found:
        while expected and not expected[-1]:
            expected.pop()
    return found


NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
FLEXIBLE = re.compile(r"(?P<time>\d+(?:\.\d+)? s\b)|(?P<error>\d+(?:\.\d+)?e-\d+)|"
                      r"(?P<close>\d+\.\d+(?![.\d]))|(?P<any>\.\.\.)")


def line_pattern(line, checks):
    """The regular expression of one expected line; appends the conditions on its groups."""
    line, pattern, end = " ".join(line.split()), "", 0
    for found in FLEXIBLE.finditer(line):
        pattern += re.escape(line[end:found.start()])
        end = found.end()
        if found.lastgroup == "any":
            pattern += r"[^\n]*?"
        elif found.lastgroup == "time":
            pattern += NUMBER + " s"
        else:
            pattern += f"({NUMBER})"
            checks.append((found.lastgroup, found.group()))
    return pattern + re.escape(line[end:]) + r"\n"


def close_enough(kind, expected, actual):
    if kind == "error":
        # The rounding of a float32 sum differs between processors: below 1e-6 only the magnitude is
        # compared.
        floor = 1e-6 if float(expected) > 1e-12 else 0
        return float(actual) <= max(10 * float(expected), floor)
    last_place = 10.0 ** -len(expected.split(".")[1])
    return abs(float(actual) - float(expected)) <= max(0.02 * float(expected), 1.001 * last_place)


def matches(expected, actual):
    """Whether the printed lines are the expected ones, up to the differences that are allowed."""
    checks = []
    pattern = "".join(r"(?:[^\n]*\n)*?" if line.strip() == "..." else line_pattern(line, checks)
                      for line in expected)
    found = re.fullmatch(pattern, "".join(" ".join(line.split()) + "\n" for line in actual))
    return found is not None and all(close_enough(kind, number, printed)
                                     for (kind, number), printed in zip(checks, found.groups()))


def scratch_copy(folder, build, models, judges):
    for entry in ROOT.iterdir():
        if not entry.name.startswith((".", "build")):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").mkdir()
    (folder / "build/bin").symlink_to(build / "bin")
    if (build / "cmake_install.cmake").exists():  # needed by cmake --install build
        (folder / "build/cmake_install.cmake").symlink_to(build / "cmake_install.cmake")
    (folder / "build/models").symlink_to(models)
    (folder / "build/judges").symlink_to(judges)


def run(command, cwd, env, status):
    """The command's output lines and exit code; `status` is the exit code of the command before it."""
    done = subprocess.run(["bash", "-c", f"(exit {status})\n{command}"], cwd=cwd, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", stdin=subprocess.DEVNULL)
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines, done.returncode


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readme", type=Path)
    parser.add_argument("--build", type=Path, required=True, help="ctxc's build folder")
    parser.add_argument("--models", type=Path, help="where Gemma 3 270M is (BUILD/models)")
    parser.add_argument("--judges", type=Path, help="the judges' Python (BUILD/judges)")
    args = parser.parse_args()
    build = args.build.resolve()
    shown = commands(args.readme.read_text())
    if not shown:
        print(f"{args.readme}: has no ```console block with a command")
        return 2
    path = os.pathsep.join([str(build / "bin"), os.environ["PATH"]])
    env = os.environ | {"PATH": path, "CTXC_READY": "1", "CTXC_BUILD": str(build)}
    failures = status = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch_copy(Path(folder), build, (args.models or build / "models").absolute(),
                     (args.judges or build / "judges").absolute())
        for number, command, expected in shown:
            actual, status = run(command, folder, env, status)
            if not matches(expected, actual):
                failures += 1
                print(f"{args.readme}:{number}: $ {command}\nprints something else (exit code "
                      f"{status}):")
                print("\n".join(difflib.unified_diff(expected, actual, "expected", "printed",
                                                     lineterm="")))
    print(f"{args.readme}: {len(shown)} commands, {failures} print something else")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
