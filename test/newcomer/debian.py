#!/usr/bin/env python3
"""Debians that have nothing, to try in them what others do on their machines.

  debian.py WORK [--suite NAME] [--include PACKAGES] [--copy FROM:TO]… [--user NAME] -- COMMAND…

runs the command of a shell in a new one, and gives its exit status; 77, which CTest counts as skipped, with the reason
where none can be made here. Others import Layer.

A layer is what a machine's disk holds: the files of the layers below it, which it never changes, and its own changes
above (overlayfs). The lowest has Debian's essential packages, apt, certificates, and the user `newcomer`, who may use
sudo where that is installed. Its archive is kept from run to run in $XDG_CACHE_HOME, as the tests' other files are, for
a week. Everything else that this machine has stays outside, but for what says how packages are reached: apt's sources
and proxies, and pip's and npm's settings.
"""

import argparse
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

USER = "newcomer"
SKIPPED = 77


class NotHere(Exception):
    """No Debian can be made on this machine; the message says why."""


def _release():
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise NotHere("this is no Debian: /etc/os-release has no VERSION_CODENAME")


def _sources():
    """This machine's own sources of packages."""
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*.list")),
             *sorted(folder.glob("sources.list.d/*.sources"))]
    return [str(file) for file in files if file.is_file() and file.stat().st_size]


def _apt_options():
    """What this machine told apt about how archives are reached."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return [line for line in dump.splitlines()
            if line.startswith(("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Retries"))
            and not line.endswith('"";')]


def _make(archive, suite, sources, options, include):
    for old in archive.parent.glob(f"{suite}-*.tar"):
        if old.stat().st_mtime < time.time() - 7 * 86400:
            old.unlink(missing_ok=True)
    made = archive.with_name("new-" + archive.name)
    account = (f'chroot "$1" useradd --create-home --shell /bin/bash {USER}; mkdir -p "$1/etc/sudoers.d"; '
               f"echo '{USER} ALL=(ALL) NOPASSWD: ALL' | install -m 440 /dev/stdin \"$1/etc/sudoers.d/{USER}\"")
    run = subprocess.run(
        ["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", f"--include={','.join(['ca-certificates', *include])}",
         *(f"--aptopt={option}" for option in options), f"--customize-hook={account}", suite, str(made),
         *(["-", *sources] if sources else [])],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "TMPDIR": str(archive.parent)})
    if run.returncode:
        made.unlink(missing_ok=True)
        raise NotHere("no mirror of Debian can be reached: " + run.stdout.strip().splitlines()[-1])
    made.rename(archive)


def _need_overlay(work):
    """Layers cannot lie everywhere, such as in another layer."""
    trial = Path(work) / f"overlay-{os.getpid()}"
    folders = [trial / name for name in ("lower", "changes", "work", "root")]
    for folder in folders:
        folder.mkdir(parents=True)
    lower, changes, kept, root = map(str, folders)
    run = subprocess.run(["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o",
                          f"lowerdir={lower},upperdir={changes},workdir={kept}", root], capture_output=True, text=True)
    shutil.rmtree(trial)
    if run.returncode:
        raise NotHere(f"no overlay can be mounted where {work} is: {run.stderr.strip().splitlines()[0]}")


def base(work, suite=None, include=()):
    """The folder of the lowest layer, with the packages of `include` too."""
    if os.geteuid():
        raise NotHere("making an empty Debian needs root")
    if not shutil.which("mmdebstrap"):
        raise NotHere("mmdebstrap is not there; tools/setup.sh --judges installs it")
    _need_overlay(work)
    suite = suite or _release()
    sources = _sources() if suite == _release() else []
    options = _apt_options()
    week = int(time.time()) // (7 * 86400)
    key = repr((suite, sorted(include), [Path(file).read_text() for file in sources], options, week))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path(work)) / "empty-debians"
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / f"{suite}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.tar"
    with open(cache / "lock", "w") as lock:  # tests that start at the same time make one
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _make(archive, suite, sources, options, include)
    folder = Path(work) / archive.stem
    if not folder.exists():
        made = folder.with_name(f"{folder.name}.{os.getpid()}")
        made.mkdir(parents=True)
        subprocess.run(["tar", "--extract", "--file", str(archive), "--directory", str(made), "--numeric-owner"], check=True)
        made.rename(folder)
    return folder


def _settings_of_registries():
    """Files and variables by which pip and npm reach packages, where they are not the usual ones."""
    home = Path.home()
    mounts = {str(file): str(file) for file in (Path("/etc/pip.conf"), Path("/usr/local/share/ca-certificates"),
                                                Path("/etc/ssl/certs/ca-certificates.crt")) if file.exists()}
    for name in (".config/pip/pip.conf", ".npmrc"):
        for inside in ("/root", f"/home/{USER}"):
            if (home / name).exists():
                mounts[str(home / name) + ":" + inside] = f"{inside}/{name}"
    variables = {key: value for key, value in os.environ.items()
                 if key.startswith("PIP_") or key.lower() in ("http_proxy", "https_proxy", "no_proxy")}
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    for word in listed.replace("'", " ").replace("=", " ").replace("\\n", " ").split():
        path = Path(word.removeprefix("file://"))
        if path.is_absolute() and path.exists() and not str(path).startswith("/etc/ssl"):
            mounts[str(path)] = str(path)
    return mounts, variables


def inside(command):
    """The line of `before` that runs a command of the shell inside, as root."""
    return f"chroot $root su - root -c {shlex.quote(command)}"


class Layer:
    """Changes in the folder `own` above the layers of `below`, the highest first."""

    def __init__(self, own, below):
        self.own, self.below = Path(own), [Path(folder) for folder in below]
        for name in ("changes", "work", "root"):
            (self.own / name).mkdir(parents=True, exist_ok=True)

    def above(self, own):
        """A new layer on this one, which must not be changed any more."""
        return Layer(own, [self.own / "changes", *self.below])

    def run(self, command, user="root", mounts={}, network=True, registries=False, log=None, before=""):
        """Runs a shell's command as a login of the user would, and returns its status and what it printed. `mounts`
        maps what of this machine is seen inside to where; with ":ro" behind it, nothing can be written there. `before`
        runs first, outside, with the root's folder in $root. Nothing of it is left when the command ends."""
        variables = {}
        mounts = dict(mounts)
        if registries:
            more, variables = _settings_of_registries()
            mounts.update(more)
        root = shlex.quote(str(self.own / "root"))
        lines = ["set -e", f"root={root}",
                 "mount -t overlay overlay -o lowerdir=" + ":".join(shlex.quote(str(folder)) for folder in self.below)
                 + f",upperdir={shlex.quote(str(self.own / 'changes'))},workdir={shlex.quote(str(self.own / 'work'))} $root",
                 "mount -t proc proc $root/proc", "mount --rbind /dev $root/dev",
                 "for file in /etc/resolv.conf /etc/hosts; do [ ! -e $file ] || { touch $root$file; mount --bind $file $root$file; }; done"]
        for source, place in mounts.items():
            source, read_only = source.partition(":")[0], place.endswith(":ro")
            source, place = shlex.quote(source), "$root" + shlex.quote(place.removesuffix(":ro"))
            lines += [f"mkdir -p $(dirname {place})",
                      f"if [ -d {source} ]; then mkdir -p {place}; else [ -e {place} ] || touch {place}; fi",
                      f"mount --bind {source} {place}"]
            if read_only:
                lines.append(f"mount -o remount,bind,ro {place}")
        words = "".join(f"export {name}={shlex.quote(value)}; " for name, value in variables.items())
        lines += [before, f"exec chroot $root su - {user} -c {shlex.quote(words + command)}"]
        outside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc"]
        if not network:
            outside.append("--net")
        run = subprocess.run([*outside, "sh", "-c", "\n".join(lines)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace",
                             env={"PATH": os.environ["PATH"], "TERM": "dumb"})
        if log:
            Path(log).write_text(run.stdout)
        return run.returncode, run.stdout

    def remove(self):
        shutil.rmtree(self.own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--suite")
    parser.add_argument("--include", default="")
    parser.add_argument("--copy", action="append", default=[])
    parser.add_argument("--user", default="root")
    parser.add_argument("command")
    arguments = parser.parse_args()
    try:
        lowest = base(arguments.work, arguments.suite, [name for name in arguments.include.split(",") if name])
    except NotHere as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    layer = Layer(arguments.work / "layer", [lowest])
    before = "\n".join("cp -r -T {} $root{}".format(*map(shlex.quote, pair.split(":"))) for pair in arguments.copy)
    status, printed = layer.run(arguments.command, arguments.user, before=before)
    sys.stdout.write(printed)
    layer.remove()
    return status


if __name__ == "__main__":
    sys.exit(main())
