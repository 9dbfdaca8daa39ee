#!/usr/bin/env python3
"""Takes every key of a format through a set of values, and compares ctxc with the program whose format it is.

  format_keys.py TABLES FORMAT [--generated N] [--seed S] [--only KEY] [--verbose] PROGRAM…

TABLES prints ctxc's tables of keys, one for each format; FORMAT is a file of keys/, which knows the judge; PROGRAM… are the
programs that it calls. For each key and value ctxc must either refuse the file in words that name the key, or give what
the judge gives; and where the judge refuses, so must ctxc, naming the key as well. Every key that the judge knows has a
row of its own in the table, and an unknown key is refused. FORMAT also makes further files, `--generated` of them, which hold what
people write; these must be read as the judge reads them, or be refused in words that FORMAT says.

A FORMAT has
  NAME               of the table
  known()            the judge's own keys
  values(key)        what the key is set to; ABSENT takes it away
  cases(key, value)  (name, case) for each file in which the key has the value
  ctxc(case)         (result, ""), or (None, the message)
  judge(case)        (result, ""), or (None, the reason)
  differ(a, b)       what is different, in words; None where nothing is
  generated(choose)  a name, a case, and a regular expression of the refusal, or None where it must be read, or a list of
                     names, of which a refusal may name one
and, where it wants them,
  names(key)         further words that name the key
  is_no_matter(key, value, reason)  whether ctxc may read what the judge refuses for this reason
"""
import argparse
import fnmatch
import importlib
import itertools
import json
import random
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "keys"))

from key_values import ABSENT  # noqa: E402


def tables(program):
    """ctxc's rows by format: key, and whether it is read, may have any value, or some."""
    return json.loads(subprocess.run([program], capture_output=True, text=True, check=True).stdout)


def fault(names, found, message, judge, differ, may_differ=lambda reason: False, must_name=True):
    """The error in how ctxc reads a file; None if there is none. `found` is ctxc's result, or None where it refuses with
    `message`, which must have one of `names`; judge() gives the judge's result, or None and a reason. Without `must_name`, a
    refusal of what the judge refuses too may say anything."""
    if found is None and any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", message) for name in names):
        return None
    unnamed = f"refused without naming the key: {message.strip()}"
    if found is None and must_name:
        return unnamed
    expected, reason = judge()
    if expected is None:
        return None if found is None or may_differ(reason) else f"accepted, but the judge fails: {reason}"
    return unnamed if found is None else differ(found, expected)


def same(key, value, format):
    """Faults of one key at one value."""
    names = [key, *getattr(format, "names", lambda key: [])(key)]
    no_matter = getattr(format, "is_no_matter", lambda key, value, reason: False)
    for name, case in format.cases(key, value):
        found, message = format.ctxc(case)
        what = fault(names, found, message, lambda: format.judge(case), format.differ,
                     lambda reason: no_matter(key, value, reason))
        yield f"{name}: {key} {'absent' if value is ABSENT else '= ' + json.dumps(value)}", found is not None, what


def table_faults(rows, format):
    patterns = [row["key"] for row in rows if row["key"] != "*"]
    for key in format.known():
        if not any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns):
            yield f"{format.NAME}: the table has no row {key!r}, which the judge reads"
    if rows[-1]["key"] != "*" or rows[-1]["is"] == "any":
        yield f"{format.NAME}: the table has to end with a row for unknown keys, which refuses them"


def made(format, count, seed):
    choose = random.Random(seed)
    no_matter = getattr(format, "is_no_matter", lambda key, value, reason: False)
    for i in range(count):
        name, case, refusal = format.generated(choose)
        found, message = format.ctxc(case)
        if isinstance(refusal, list):
            what = fault(refusal, found, message, lambda: format.judge(case), format.differ,
                         lambda reason: no_matter("", ABSENT, reason))
            yield f"{i} {name}", found is not None, what
            continue
        if found is None:
            good = refusal is not None and re.search(refusal, message)
            yield f"{i} {name}", False, None if good else f"refused: {message.strip()}"
            continue
        expected, reason = format.judge(case)
        if refusal is not None:
            yield f"{i} {name}", True, f"read; expected a refusal /{refusal}/"
        elif expected is None:
            yield f"{i} {name}", True, f"read, but the judge fails: {reason}"
        else:
            yield f"{i} {name}", True, format.differ(found, expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables")
    parser.add_argument("format")
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--generated", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    format = importlib.import_module(args.format)
    format.start(*args.programs)
    rows = tables(args.tables)[format.NAME]
    faults = [] if args.only else list(table_faults(rows, format))
    keys = [row["key"] for row in rows if "*" not in row["key"]] + ["a_key_of_the_future"]
    count = read = 0
    results = (each for key in keys if args.only in (None, key)
               for value in format.values(key) for each in same(key, value, format))
    if not args.only:
        results = itertools.chain(results, made(format, args.generated, args.seed))
    for what, is_read, problem in results:
        count += 1
        read += is_read
        if args.verbose:
            print(f"{what}: {problem or ('equal' if is_read else 'refused')}", flush=True)
        if problem:
            faults.append(f"{what}: {problem}")
    print(f"{format.NAME}: {len(keys)} keys, {count} files, {read} read, {len(faults)} faults")
    print(*("  " + text for text in faults), sep="\n")
    return 1 if faults or not read or (not args.only and read == count) else 0


if __name__ == "__main__":
    sys.exit(main())
