#!/usr/bin/env python3
"""Pastes the commands of a page into a shell, and compares their output with the page's.

  run_readme.py README.md --build BUILD [--models MODELS] [--judges JUDGES] [--installed]

A fenced block marked ```sh is pasted as it is, and fails where one of its commands does. A block marked
```console holds commands, each after "$ ", and below each of them its output, standard output and errors
together. A command continues after a line that ends in a backslash, and to the end of a here-document
(<<'END'). In the expected text "..." stands for anything within a line, and a line with only "..." for any
lines. "$ echo $?" shows the exit code of the command before. Differences between machines are allowed:

  3.1 s       any time
  2.5e-16     a rounding error: at most ten times as much (or 1e-6, in float32)
  12.3        any other number with a point: within 2 %, or one in its last place
  blanks      any number of them counts as one

All of a page's commands go in order into one shell. It starts in a fresh copy of the files that are
checked in, with BUILD as the build folder; ctxc is on the path where the page puts it there, or by
--installed. A block that this cannot be asked of has a comment on the line before it that gives the reason:

  <!-- not run: it installs packages -->
"""

import argparse
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


HERE_DOCUMENT = re.compile(r"<<'(\w+)'")
NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
# What a test must not do to the machine that it runs on, nor to the build folder that it is given.
NOT_HERE = re.compile(r"\b(sudo|su|apt|apt-get|dpkg|brew|pip|docker|cpack)\s|tools/(setup|build|test)\S*\.sh|"
                      r"--prefix[= ]/|cmake --install (?!.*--prefix)|cmake .*--preset")


def blocks(text):
    """(line number of its first line, kind, lines) of each fenced block that is to be run."""
    fence, before = None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if fence is None:
                fence = (number + 1, line[3:].strip(), [], NOT_RUN.fullmatch(before.strip()))
            else:
                if fence[1] in ("sh", "console") and not fence[3]:
                    yield fence[:3]
                fence = None
        elif fence:
            fence[2].append(line)
        before = line


def console_commands(start, lines):
    """(line number, command, expected lines) of each command of a ```console block."""
    found, numbered = [], iter(enumerate(lines, start))
    for number, line in numbered:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command += "\n" + next(numbered)[1]
            if here := HERE_DOCUMENT.search(command):
                while command.splitlines()[-1] != here[1]:
                    command += "\n" + next(numbered)[1]
            found.append((number, command, []))
        elif not found:
            raise SystemExit(f"line {number}: expected a command, found {line!r}")
        else:
            found[-1][2].append(line.rstrip())
    for _, _, expected in found:
        while expected and not expected[-1]:
            expected.pop()
    return found


def commands(text):
    """(line number, command, expected lines) of each command of a page, in order; in place of the lines,
    None for a ```sh block, which prints what it likes and must not fail."""
    found = []
    for start, kind, lines in blocks(text):
        found += console_commands(start, lines) if kind == "console" else [
            (start, "\n".join(lines), None)]
    for number, command, _ in found:
        if refused := NOT_HERE.search(command):
            raise SystemExit(f"line {number}: '{refused[0].strip()}' is not for a test; mark the block by "
                             "<!-- not run: WHY --> on the line before it")
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
    """What a clone has, and the build folder that the page's reader has made by its first command."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / "build").mkdir()
    (folder / "build/bin").symlink_to(build / "bin")
    if (build / "cmake_install.cmake").exists():  # needed by cmake --install build
        (folder / "build/cmake_install.cmake").symlink_to(build / "cmake_install.cmake")
    if (build / "python").exists():
        (folder / "build/python").symlink_to(build / "python")
    (folder / "build/models").symlink_to(models)
    (folder / "build/judges").symlink_to(judges)


class Shell:
    """One bash, as a reader's: what a command sets, later ones see."""

    def __init__(self, folder, env):
        self.process = subprocess.Popen(
            ["bash", "--norc"], cwd=folder, env=env, text=True, errors="replace",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.end = f"--- end of command {os.getpid()} "

    def paste(self, command):
        """The command's printed lines and exit code; None as the code where the shell is gone."""
        script = (f"eval {shlex.quote(command)} </dev/null\n"
                  f"printf '\\n%s%d\\n' {shlex.quote(self.end)} $?\n")
        lines, status = [], None
        try:
            self.process.stdin.write(script)
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.startswith(self.end):
                    status = int(line[len(self.end):])
                    break
                lines.append(line.rstrip())
        except BrokenPipeError:
            pass
        while lines and not lines[-1]:
            lines.pop()
        return lines, status

    def run(self, command, status):
        """Pastes a command that sees `status` as the exit code of the one before."""
        return self.paste(f"(exit {status or 0})\n{command}")

    def run_all(self, block):
        """Pastes a block, and names each of its commands that fails."""
        trap = r"""'printf "failed (exit code %d): %s\n" $? "$BASH_COMMAND"; false'"""
        lines, status = self.paste(f"trap {trap} ERR\n{block}")
        self.paste("trap - ERR")
        return [line for line in lines if line.startswith("failed (")], status, lines

    def close(self):
        self.process.communicate()


def differences(shell, command, expected, status):
    """What is wrong with a command or block, as lines; and its exit code."""
    if expected is None:
        failed, status, printed = shell.run_all(command)
        return printed if failed or status != 0 else [], status
    actual, status = shell.run(command, status)
    if matches(expected, actual):
        return [], status
    return list(difflib.unified_diff(expected, actual, "expected", "printed", lineterm="")), status


def problems(page, text, folder, env):
    """Pastes a page's commands into a shell in `folder`; prints what is wrong. How many commands there
    were, and how many of them printed something else or failed."""
    shown, failures, status = commands(text), 0, 0
    shell = Shell(folder, env)
    for number, command, expected in shown:
        wrong, status = differences(shell, command, expected, status)
        if wrong or status is None:
            failures += 1
            print(f"{page}:{number}: {command}\nprints something else, or fails (exit code {status}):",
                  *wrong, sep="\n")
        if status is None:
            break
    shell.close()
    return len(shown), failures


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readme", type=Path)
    parser.add_argument("--build", type=Path, required=True, help="ctxc's build folder")
    parser.add_argument("--models", type=Path, help="where Gemma 3 270M is (BUILD/models)")
    parser.add_argument("--judges", type=Path, help="the judges' Python (BUILD/judges)")
    parser.add_argument("--installed", action="store_true", help="the page's reader has ctxc installed")
    args = parser.parse_args()
    build = args.build.resolve()
    env = os.environ | {"CTXC_READY": "1", "CTXC_BUILD": str(build)}
    if args.installed:
        env["PATH"] = os.pathsep.join([str(build / "bin"), env["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        scratch_copy(Path(folder), build, (args.models or build / "models").absolute(),
                     (args.judges or build / "judges").absolute())
        count, failures = problems(args.readme, args.readme.read_text(), folder, env)
    if not count:
        print(f"{args.readme}: has no ```console or ```sh block with a command")
        return 2
    print(f"{args.readme}: {count} commands, {failures} print something else or fail")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
