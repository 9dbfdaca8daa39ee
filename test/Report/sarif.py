"""Validates the output of `ctxc check --format sarif` against the published SARIF 2.1.0 schema, for every N-th of the blocks
and checkpoints in the folders. No report may have an error; reports that were damaged must have errors.

    sarif.py CTXC VALIDATOR N FOLDER…

VALIDATOR is Microsoft's SARIF Multitool, which reads the schema and knows the standard's rules.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ATTEMPTS = 3


def inputs(folders):
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name.endswith(".mlir") or os.path.exists(os.path.join(path, "config.json")):
                yield path


def report(ctxc, path):
    done = subprocess.run([ctxc, "check", path, "--format", "sarif", "-Woutput-only"],
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{path}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def errors(validator, reports, folder):
    """The validator's messages. It runs once for all reports, which are a list of names and documents."""
    for name, document in reports:
        with open(os.path.join(folder, name + ".sarif"), "w", encoding="utf-8") as file:
            json.dump(document, file)
    # Without ICU the program must be told not to look for it; it compares no text here.
    environment = dict(os.environ, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1")
    command = [validator, "validate", os.path.join(folder, "*.sarif"),
               "--level", "Error", "--kind", "Fail"]
    # A run that dies before its summary says nothing about the reports, and is repeated.
    for attempt in range(ATTEMPTS):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        scanned = re.search(r"Done\. (\d+) files scanned", done.stdout)
        if scanned and int(scanned[1]) == len(reports):
            break
        print(f"attempt {attempt + 1}: expected {len(reports)} files scanned, found exit code "
              f"{done.returncode} and:\n{done.stdout}{done.stderr}", file=sys.stderr)
    else:
        raise SystemExit(f"the validator did not come to its end in {ATTEMPTS} attempts")
    return [line for line in done.stdout.splitlines() if ": error " in line]


def misnamed(node):
    """The modules in a document whose name is not the last part of their full name."""
    if isinstance(node, list):
        return [place for item in node for place in misnamed(item)]
    if not isinstance(node, dict):
        return []
    found = [place for item in node.values() for place in misnamed(item)]
    if node.get("kind") == "module" and node["name"] != node["fullyQualifiedName"].split(".")[-1]:
        found.append(node)
    return found


def without(document, *path):
    """A copy in which one property is missing."""
    copy = json.loads(json.dumps(document))
    *parents, last = path
    place = copy
    for step in parents:
        place = place[step]
    del place[last]
    return copy


def main(ctxc, validator, each, folders):
    reports = [(os.path.splitext(os.path.basename(path))[0], report(ctxc, path))
               for path in list(inputs(folders))[::int(each)]]
    results = [result for _, document in reports for result in document["runs"][0]["results"]]
    found = {result["level"] for result in results}
    if not {"error", "warning"} <= found:
        raise SystemExit(f"expected errors and warnings among the results, found {sorted(found)}")

    with tempfile.TemporaryDirectory() as folder:
        complaints = errors(validator, reports, folder)
    complaints += [f"{name}: {place['name']!r} for {place['fullyQualifiedName']}"
                   for name, document in reports for place in misnamed(document)]

    rejected = next(document for _, document in reports if document["runs"][0]["results"])
    spoiled = [("no-version", without(rejected, "version")),
               ("no-tool", without(rejected, "runs", 0, "tool", "driver", "name")),
               ("no-message", without(rejected, "runs", 0, "results", 0, "message"))]
    for name, document in spoiled:
        with tempfile.TemporaryDirectory() as folder:
            if not errors(validator, [(name, document)], folder):
                complaints.append(f"{name}: spoiled on purpose, and nothing was found")

    print(*complaints, sep="\n")
    print(f"{len(reports)} reports with {len(results)} results, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], sys.argv[4:]))
