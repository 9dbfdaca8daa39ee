#!/usr/bin/env python3
"""What a newcomer runs, on a machine that has nothing.

  newcomer.py SOURCE WORK demo root|newcomer     the README's first command in an empty Debian, by that user
  newcomer.py SOURCE WORK tests                  its second command
  newcomer.py SOURCE WORK configurations         other machines' ways to configure, where the demo ran
  newcomer.py SOURCE WORK breaks                 faults that configurations must find
  newcomer.py SOURCE WORK messages               what is said where something is missing
  newcomer.py SOURCE WORK install                docs/install.md's blocks, and the demo by what they install
  newcomer.py SOURCE WORK docker                 the Dockerfile's instructions, and the demo by their last stage

--suite NAME takes another Debian than this one. --build has configurations also build ctxc. With --cache FOLDER the
builds read this machine's ccache; without, everything is compiled. The commands are read from README.md: its blocks with
MARK before them, in their order.
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
from debian import SKIPPED, USER, Layer, NotHere, base, inside

MARK = "<!-- not run: test/newcomer runs it in an empty Debian -->"
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
        self.source, self.work, self.builds, self.tries_rare = (
            arguments.source, arguments.work, arguments.build, arguments.rare)
        self.suite = arguments.suite
        self.mounts = {str(arguments.cache): CACHE + ":ro"} if arguments.cache else {}

    def empty(self, name):
        """A new layer on an empty Debian with git and sudo, in which git clone finds the working tree."""
        work = self.work / name
        if (work / "layer").exists():
            shutil.rmtree(work / "layer")
        lowest = base(work, self.suite, include=("git", "sudo"))
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


def not_verified(newcomer, status, printed):
    """What is wrong with the end of a demo, or None: it gives the tokens that the README shows."""
    text = re.search(r"^text  .*$", (newcomer.source / "README.md").read_text(), re.M)[0]
    lines = printed.splitlines()
    print("\n".join(line for line in lines if line.startswith(("==", "+ ctxc", "text ", "tokens ", "verified:"))))
    if status == 0 and lines and lines[-1].startswith("verified: ") and text in lines:
        return None
    return f"expected {text!r}, and 'verified: …' as the last line, found:\n" + "\n".join(lines[-30:])


def demo(newcomer, user):
    name = newcomer.suite or user
    layer = newcomer.empty(name)
    command = commands(newcomer.source / "README.md")[0]
    status, printed = newcomer.run(layer, CLONED + command, command.strip(), user=user,
                                   log=newcomer.work / f"demo-{name}.log")
    if name != "root":  # others start from that one
        layer.remove()
    return not_verified(newcomer, status, printed)


# The demo, by the ctxc that was installed.
INSTALLED = 'PATH=$PATH:~/.local/bin; ctxc=$(command -v ctxc); CTXC_READY=1 CTXC_BUILD=${ctxc%/bin/ctxc} tools/demo.sh'


def install(newcomer, user):
    """Each way of docs/install.md that begins with a clone."""
    wrong = []
    for block in commands(newcomer.source / "docs/install.md"):
        layer = newcomer.empty("install")
        status, printed = newcomer.run(layer, f"set -e; {CLONED} {block}\n{INSTALLED}", block.strip().splitlines()[-1],
                                       log=newcomer.work / "install.log")
        layer.remove()
        wrong.append(not_verified(newcomer, status, printed))
    return "\n".join(filter(None, wrong))


def docker(newcomer, user):
    """The Dockerfile's instructions, without Docker."""
    page = newcomer.source / "test/package/dockerfile.py"
    stage = lambda number: subprocess.run([sys.executable, str(page), str(newcomer.source), "--stage", str(number)],
                                          check=True, capture_output=True, text=True).stdout
    build = newcomer.empty("docker")
    context = f"git config --global safe.directory '*'; git clone -q {CLONE} /context; rm -rf /context/.git\n"
    status, printed = newcomer.run(build, f"set -e; {context}{stage(0)}", "the first stage", log=newcomer.work / "docker.log")
    if status:
        return "\n".join(printed.splitlines()[-30:])
    last = Layer(newcomer.work / "docker/last", [base(newcomer.work / "docker")])
    changes = build.own / "changes"
    before = f"mkdir -p $root/from/build; cp -r {shlex.quote(str(changes))}/packages $root/from/build; " \
             f"cp -r {shlex.quote(str(changes))}/context $root"
    status, printed = newcomer.run(last, f"set -e; {stage(1)}\nsu - ctxc -c 'cd /context && {INSTALLED}'", "the last stage",
                                   before=before)
    build.remove()
    last.remove()
    return not_verified(newcomer, status, printed)


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
    layer = machine.above(newcomer.work / f"settings-{os.getpid()}" / setting.name.replace(" ", "-"))
    place = shlex.quote(setting.place)
    command = setting.command.replace("--configure", "ctxc") if newcomer.builds else setting.command
    cloned = ["set -e", "git config --system safe.directory '*'", setting.prepare, f"mkdir -p $(dirname {place})",
              f"git clone -q {CLONE} {place}", f"cd {place}", broken]
    before = inside("\n".join(cloned)) + "\n" + setting.before
    status, printed = newcomer.run(layer, f"cd {place}; {command}", setting.name, user=setting.user,
                                   network=setting.network, before=before)
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
        empty = Layer(newcomer.work / f"settings-{os.getpid()}/nothing", machine.below)
        wrong = [found for setting in settings
                 if (newcomer.tries_rare or not setting.rare)
                 and (found := tried(newcomer, empty if setting.empty else machine, setting))]
        shutil.rmtree(newcomer.work / f"settings-{os.getpid()}")
        return "\n".join(wrong)
    return run


def breaks(newcomer, user):
    """Each fault must show in its configuration."""
    machine = after_demo(newcomer)
    found = {setting.name: setting for setting in CONFIGURATIONS}
    missed = [name for name, (setting, broken) in BREAKS.items()
              if not tried(newcomer, machine, found[setting], broken)]
    shutil.rmtree(newcomer.work / f"settings-{os.getpid()}")
    return "not found by its configuration: " + ", ".join(missed) if missed else None


PARTS = {"demo": demo, "tests": tests, "configurations": all_tried(CONFIGURATIONS), "messages": all_tried(MESSAGES),
         "breaks": breaks, "install": install, "docker": docker}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("what", choices=PARTS)
    parser.add_argument("user", nargs="?", choices=("root", USER), default="root")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--rare", action="store_true")
    parser.add_argument("--suite")
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
