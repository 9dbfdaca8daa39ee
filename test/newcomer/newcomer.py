#!/usr/bin/env python3
"""What a newcomer runs, on a machine that has nothing.

  newcomer.py SOURCE BUILD WORK demo root|newcomer     the README's first command in an empty Debian, by that user
  newcomer.py SOURCE BUILD WORK tests                  its second command
  newcomer.py SOURCE BUILD WORK configurations         other machines' ways to configure, where the demo ran
  newcomer.py SOURCE BUILD WORK breaks                 faults that configurations must find
  newcomer.py SOURCE BUILD WORK messages               what is said where something is missing

With --cache FOLDER the builds read this machine's ccache; without, everything is compiled. The commands are read from
README.md: its blocks with MARK before them, in their order.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from configurations import BREAKS, CONFIGURATIONS, MESSAGES
from debian import SKIPPED, USER, Layer, NotHere, base

MARK = "<!-- not run: test/newcomer runs it in an empty Debian -->"
HOMES = {"root": "/root", USER: f"/home/{USER}"}
# Where this machine's clone and the compiler's cache are seen inside.
CLONE, CACHE = "/media/ctxc.git", "/media/ccache"


def commands(page):
    """The blocks of the page that a newcomer runs."""
    return re.findall(re.escape(MARK) + r"\n```sh\n(.*?)```", page.read_text(), re.S)


def snapshot(source, folder):
    """A bare repository with one commit: the working tree of `source`, without what git ignores."""
    git = ["git", "-C", str(source)]
    if subprocess.run([*git, "rev-parse"], capture_output=True).returncode:
        raise NotHere(f"{source} is not a clone")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    index = {**os.environ, "GIT_INDEX_FILE": str(folder / "snapshot"), "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
             **{f"GIT_{who}_{what}": "newcomer@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}}
    subprocess.run([*git, "add", "--all"], env=index, check=True)
    run = lambda *words: subprocess.run([*git, *words], env=index, check=True, capture_output=True, text=True).stdout.strip()
    commit = run("commit-tree", "-m", "The working tree", run("write-tree"))
    (folder / "refs/heads/main").write_text(commit + "\n")
    return folder


class Newcomer:
    def __init__(self, arguments):
        self.source, self.work = arguments.source, arguments.work
        self.mounts = {str(arguments.cache): CACHE + ":ro"} if arguments.cache else {}

    def empty(self, name):
        """A new layer on an empty Debian with git and sudo, in which git clone finds the working tree."""
        work = self.work / name
        if (work / "layer").exists():
            shutil.rmtree(work / "layer")
        lowest = base(work, include=("git", "sudo"))
        layer = Layer(work / "layer", [lowest])
        self.mounts[str(snapshot(self.source, work / "ctxc.git"))] = CLONE + ":ro"
        if CACHE + ":ro" in self.mounts.values():  # set up by the machine: the newcomer knows nothing of it
            (layer.own / "changes/etc").mkdir(parents=True, exist_ok=True)
            (layer.own / "changes/etc/ccache.conf").write_text(f"cache_dir = {CACHE}\nread_only = true\ntemporary_dir = /tmp\n")
        return layer

    def run(self, layer, command, title, **options):
        start = time.monotonic()
        status, printed = layer.run(command, mounts=self.mounts, **options)
        print(f"{title}: exit status {status}, {time.monotonic() - start:.0f} s")
        return status, printed


# The clone belongs to another user than the newcomer, for which git asks to be told.
CLONED = f"git config --global safe.directory '*' && git clone -q {CLONE} ctxc && cd ctxc && "


def demo(newcomer, user):
    layer = newcomer.empty(user)
    command = commands(newcomer.source / "README.md")[0]
    status, printed = newcomer.run(layer, CLONED + command, command.strip(), user=user,
                                   log=newcomer.work / f"demo-{user}.log")
    lines = printed.splitlines()
    print("\n".join(line for line in lines if line.startswith(("==", "+ ctxc", "tokens", "verified:"))))
    if status or not lines or not lines[-1].startswith("verified: "):
        return "expected 'verified: …' as the last line, found:\n" + "\n".join(lines[-30:])
    return None


def tests(newcomer, user):
    layer = newcomer.empty("tests")
    command = commands(newcomer.source / "README.md")[1]
    log = newcomer.work / "tests.log"
    status, printed = newcomer.run(layer, CLONED + command, command.strip(), user=user, registries=True, log=log)
    print("\n".join(printed.splitlines()[-40:]))
    layer.remove()
    return None if status == 0 else f"the tests failed; all that was printed is in {log}"


def after_demo(newcomer):
    """The machine on which the demo ran as root."""
    layer = newcomer.work / "root/layer"
    if not (layer / "changes/root/ctxc/build/bin/ctxc").exists():
        raise NotHere("the demo has not run as root; newcomer.py … demo root does that")
    newcomer.mounts[str(newcomer.work / "root/ctxc.git")] = CLONE + ":ro"
    return Layer(layer, [base(newcomer.work / "root", include=("git", "sudo"))])


def tried(newcomer, machine, setting, broken=""):
    """Runs a Setting on a machine above; what is wrong, or None."""
    layer = machine.above(newcomer.work / "settings" / setting.name.replace(" ", "-"))
    place = shlex.quote(setting.place)
    script = "\n".join(["set -e", setting.prepare, f"mkdir -p $(dirname {place})", f"git clone -q {CLONE} {place}",
                        f"cd {place}", broken, setting.command])
    status, printed = newcomer.run(layer, f"bash -c {shlex.quote(script)}", setting.name, user=setting.user,
                                   network=setting.network, before=setting.before)
    layer.remove()
    if status != setting.status:
        return f"{setting.name}: expected the exit status {setting.status}, found {status} and\n{printed}"
    for line in setting.says:
        if not re.search(line, printed, re.M):
            return f"{setting.name}: expected {line!r}, found\n{printed}"
    for line in setting.says_not:
        if re.search(line, printed, re.M):
            return f"{setting.name}: found {line!r} in\n{printed}"
    return None


def all_tried(settings):
    def run(newcomer, user):
        machine = after_demo(newcomer)
        wrong = [found for setting in settings if (found := tried(newcomer, machine, setting))]
        return "\n".join(wrong)
    return run


def breaks(newcomer, user):
    """Each fault must show in its configuration."""
    machine = after_demo(newcomer)
    found = {setting.name: setting for setting in CONFIGURATIONS}
    missed = [name for name, (setting, broken) in BREAKS.items()
              if not tried(newcomer, machine, found[setting], broken)]
    return "not found by its configuration: " + ", ".join(missed) if missed else None


PARTS = {"demo": demo, "tests": tests, "configurations": all_tried(CONFIGURATIONS), "messages": all_tried(MESSAGES),
         "breaks": breaks}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "build", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("what", choices=PARTS)
    parser.add_argument("user", nargs="?", choices=HOMES, default="root")
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    try:
        wrong = PARTS[arguments.what](Newcomer(arguments), arguments.user)
    except NotHere as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    if wrong:
        print(wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
