#!/usr/bin/env python3
"""Breaks the analysis in one place at a time, and looks which test notices.

A mutant (test/mutants) drops one condition of a lemma. Sources are compiled from changed
copies, and linked into the tests' programs before the libraries, which stay as they were built
by tools/build.sh; nothing in the source tree or the build folder changes. Most mutants are in one
set of programs, with a switch each (test/mutants/switching.py); the others are compiled one by one.
The tests run from the quickest on, until one fails: then the mutant is caught. One that no test
catches has survived. Mutants that are equivalent, for a reason that the list states, are not run.

  tools/test-mutants.py [--only NAME…] [--state FILE]

With --state, what was found is kept in a file, a line for each mutant, and a later run with the same
file goes on with the others. Exit code 1 where a mutant survived or could not be built.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test", "mutants"))
import switching  # noqa: E402
from mutants import MUTANTS  # noqa: E402

# Programs of tests, the quickest first, with what they run. The seeds of the last are more than the
# gate's.
TESTS = [
    ("unit-Planning", []),
    ("unit-Analysis", []),
    ("unit-Transforms", ["--gtest_filter=-*Golden*"]),
    ("unit-Proof", ["--gtest_filter=-*Agreement*"]),
    ("unit-Evidence", []),
    ("unit-Distil", ["--gtest_filter=Joint*"]),
    ("lit", ["Analysis", "Planning", "Dialect", "Transforms", "Rules"]),
    ("unit-Property", []),
]
LIMIT = 1800  # seconds that the tests of a program may take


class Build:
    """What the build folder says of how it was built."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        with open(os.path.join(self.folder, "compile_commands.json"), encoding="utf-8") as file:
            self.entries = json.load(file)
        self.links = {}

    def compiled_from(self, source):
        """The commands that compile `source`, by itself or with others."""
        path = os.path.join(ROOT, source)
        for entry in self.entries:
            if entry["file"] == path or path in self.joined(entry["file"]):
                yield entry

    def joined(self, unit):
        """The sources that `unit` includes, if the build made it (ctxc_join_files)."""
        if not re.search(r"/unit_\w+\.cpp$", unit):
            return []
        with open(unit, encoding="utf-8") as file:
            return [os.path.normpath(os.path.join(os.path.dirname(unit), name))
                    for name in re.findall('#include "(.*)"', file.read())]

    def cached(self, name):
        """A value of CMake's cache."""
        with open(os.path.join(self.folder, "CMakeCache.txt"), encoding="utf-8") as file:
            return re.search(rf"^{name}:\w+=(.*)$", file.read(), re.MULTILINE).group(1)

    def link_of(self, program):
        if program not in self.links:
            said = subprocess.check_output(
                ["ninja", "-C", self.folder, "-t", "commands", f"bin/{program}"], text=True
            )
            last = said.strip().splitlines()[-1]
            words = re.match(r": && (.*?) && ", last).group(1)
            # Where a library is linked as a whole, what is changed would not come first.
            self.links[program] = shlex.split(re.sub(r"-Xlinker --(no-)?whole-archive ", "", words))
        return self.links[program]


def changed_text(mutant):
    """The source with the mutant's change; an error where it does not fit just one place."""
    with open(os.path.join(ROOT, mutant.file), encoding="utf-8") as file:
        text = file.read()
    if text.count(mutant.search) != 1:
        raise ValueError(f"{mutant.name}: {text.count(mutant.search)} places of {mutant.file} fit, expected one")
    return text.replace(mutant.search, mutant.replace)


class Trial:
    """Tests of changed sources, in a folder of their own. `texts` has the text of each file that is
    changed; `number` is the mutant that runs, where they hold several."""

    def __init__(self, build, texts, folder):
        self.build, self.texts, self.folder = build, texts, folder
        self.bin = os.path.join(folder, "bin")
        os.mkdir(self.bin)
        self.archive, self.number = os.path.join(folder, "changed.a"), -1

    def overlay(self):
        """The file that tells the compiler which texts to read in the place of others."""
        roots = []
        for i, (name, text) in enumerate(self.texts.items()):
            directory, base = os.path.split(os.path.join(ROOT, name))
            copy = os.path.join(self.folder, f"{i}-{base}")
            with open(copy, "w", encoding="utf-8") as file:
                file.write(text)
            contents = [{"type": "file", "name": base, "external-contents": copy}]
            roots.append({"type": "directory", "name": directory, "contents": contents})
        path = os.path.join(self.folder, "overlay.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"version": 0, "use-external-names": False, "roots": roots}, file)
        return path

    def compile(self):
        overlay, entries, objects = self.overlay(), {}, []
        for name in self.texts:
            found = {entry["file"]: entry for entry in self.build.compiled_from(name)}
            if not found:
                raise ValueError(f"{name} is compiled by nothing")
            entries.update(found)
        for entry in entries.values():
            words = shlex.split(entry["command"])
            if os.path.basename(words[0]) == "ccache":
                words = words[1:]
            made = os.path.join(self.folder, f"{len(objects)}.o")
            words[words.index("-o") + 1] = made
            self.call(words + ["-w", "-ivfsoverlay", overlay], entry["directory"])
            objects.append(made)
        # A program takes of these what it needs.
        self.call([self.build.cached("CMAKE_AR"), "rcs", self.archive, *objects], self.folder)

    def call(self, words, directory):
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr[-2000:])

    def link(self, program):
        words = list(self.build.link_of(program))
        path = os.path.join(self.bin, program)
        if os.path.exists(path):
            return path
        words[words.index("-o") + 1] = path
        # The first definition of a symbol counts.
        self.call([words[0], "-Wl,-z,muldefs", self.archive, *words[1:]], self.build.folder)
        return path

    def environment(self):
        cache = os.path.join(self.folder, "cache")
        switch = {switching.VARIABLE: str(self.number)}
        return dict(os.environ, XDG_CACHE_HOME=cache, CTXC_KERNEL_OPT="0", **switch)

    def failed_in(self, program, options):
        """What of the program's tests fails first, or None."""
        if program == "lit":
            return self.failed_in_lit(options)
        words = [self.link(program), "--gtest_fail_fast", "--gtest_brief=1", *options]
        try:
            done = subprocess.run(
                words,
                cwd=os.path.join(self.build.folder, "test", "unit"),
                env=self.environment(),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "it does not end"
        if done.returncode in (0, 77):
            return None
        named = re.findall(r"^\[  FAILED  \] ([^\s,]+)", done.stdout, re.MULTILINE)
        return named[0] if named else f"it ends with {done.returncode}"

    def failed_in_lit(self, folders):
        for program in ("ctxc", "ctxc-opt"):
            self.link(program)
        own = os.path.join(self.folder, "test")
        os.makedirs(own, exist_ok=True)
        with open(os.path.join(self.build.folder, "test", "lit.site.cfg.py"), encoding="utf-8") as file:
            text = file.read()
        text = text.replace(f'ctxc_build_dir = "{self.build.folder}"', f'ctxc_build_dir = "{self.folder}"')
        text += f'\nconfig.environment["{switching.VARIABLE}"] = "{self.number}"\n'
        with open(os.path.join(own, "lit.site.cfg.py"), "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(
            [self.build.cached("CTXC_LIT"), "-s", "--max-failures=1", *(os.path.join(own, folder) for folder in folders)],
            env=self.environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
            check=False,
        )
        if not done.returncode:
            return None
        named = re.findall(r"^(?:FAIL|TIMEOUT): \S+ :: (\S+)", done.stdout, re.MULTILINE)
        return named[0] if named else done.stdout[-300:] + done.stderr[-300:]


def failed_test(trial):
    """The first test that fails, or None."""
    for program, options in TESTS:
        if test := trial.failed_in(program, options):
            return f"{program}: {test}"
    return None


def switched_texts():
    """The texts with the switches of all mutants that can have one, and the numbers of these."""
    texts, numbers = {}, {}
    for number, mutant in enumerate(MUTANTS):
        if mutant.file not in texts:
            with open(os.path.join(ROOT, mutant.file), encoding="utf-8") as file:
                texts[mutant.file] = file.read()
        if text := switching.switched(texts[mutant.file], mutant, number):
            texts[mutant.file] = text
            numbers[mutant.name] = number
    used = {mutant.file for mutant in MUTANTS if mutant.name in numbers}
    return {name: switching.head_for(name) + texts[name] for name in sorted(used)}, numbers


def found_of(mutant, test):
    found = {"name": mutant.name, "file": mutant.file, "breaks": mutant.breaks}
    return dict(found, caught=test) if test else found


def judge_switched(build, chosen):
    """Yields what is found of those of `chosen` that have a switch."""
    texts, numbers = switched_texts()
    mutants = [mutant for mutant in chosen if mutant.name in numbers]
    if not mutants:
        return
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trial = Trial(build, texts, folder)
        trial.compile()
        if test := failed_test(trial):  # else tests would tell nothing
            sys.exit(f"without a mutant, a test fails: {test}")
        for mutant in mutants:
            trial.number = numbers[mutant.name]
            yield found_of(mutant, failed_test(trial))


def judge(build, mutant):
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        try:
            trial = Trial(build, {mutant.file: changed_text(mutant)}, folder)
            trial.compile()
            return found_of(mutant, failed_test(trial))
        except ValueError as error:
            return dict(found_of(mutant, None), error=str(error))


def line_of(found):
    result = found.get("caught") or ("ERROR " + found["error"] if "error" in found else "SURVIVED")
    return f"{found['name']:40} {result}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="names of mutants")
    parser.add_argument("--list", action="store_true", help="print the mutants, check that each fits, and end")
    parser.add_argument("--state", help="a file of what was found, to go on with")
    parser.add_argument("--jobs", type=int, default=1, help="mutants without a switch at a time (1)")
    parser.add_argument("--build", default=os.environ.get("CTXC_BUILD", os.path.join(ROOT, "build")))
    given = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not given.only or mutant.name in given.only]
    if unknown := set(given.only) - {mutant.name for mutant in chosen}:
        parser.error(f"no mutant is called {', '.join(sorted(unknown))}")
    if given.list:
        misfits = []
        for mutant in chosen:
            print(f"{mutant.name:40} {mutant.file:36} {mutant.breaks}")
            try:
                changed_text(mutant)
            except ValueError as error:
                misfits.append(error)
        print(f"{len(chosen)} mutants", *misfits, sep="\n")
        return 1 if misfits else 0
    equivalent = [mutant for mutant in chosen if mutant.equivalent]
    chosen = [mutant for mutant in chosen if not mutant.equivalent]
    done = {}
    if given.state and os.path.exists(given.state):
        with open(given.state, encoding="utf-8") as file:
            done = {found["name"]: found for found in map(json.loads, file)}
    build = Build(given.build)

    def note(found):
        done[found["name"]] = found
        print(line_of(found), flush=True)
        if given.state:
            with open(given.state, "a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")

    if left := [mutant for mutant in chosen if mutant.name not in done]:
        for found in judge_switched(build, left):
            note(found)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        todo = [pool.submit(judge, build, mutant) for mutant in chosen if mutant.name not in done]
        for each in concurrent.futures.as_completed(todo):
            note(each.result())
    results = [done[mutant.name] for mutant in chosen]
    left = [found for found in results if "caught" not in found]
    print(f"{len(results)} mutants, {len(results) - len(left)} caught; {len(equivalent)} others are equivalent")
    for found in left:
        print(line_of(found))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
