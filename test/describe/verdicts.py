#!/usr/bin/env python3
"""Checks every description by the program that has it.

  verdicts.py CTXC FAMILIES CONFIGS TYPES --page PAGE

FAMILIES has the descriptions, CONFIGS a config for each, a line each, and TYPES is docs/torch-types.md, whose verdicts came
from exported programs. A description must give the same verdict, and refuse a config with a key that it does not know, with
another value of one that it holds for, or with a size that is none. PAGE, docs/described-types.md, ends with a table of all
of them; it is written with CTXC_WRITE_DOCS=1 in the environment."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LARGE = {"hidden_size": 16384, "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8,
         "intermediate_size": 53248, "vocab_size": 128256}
WAY_OUT = "python -m ctxc.export"
failures = []


def expect(holds, message):
    if not holds:
        failures.append(message)
        print(message)


def check(ctxc, config, *options):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        run = subprocess.run([ctxc, "check", folder, "--format", "json", *options], capture_output=True, text=True)
    report = json.loads(run.stdout) if run.returncode < 2 else {}
    return run.returncode, {group["verdict"] for group in report.get("groups", [])}, run.stderr.replace(folder + "/", "")


def other_value(rule):
    """A value that differs from the expected one, of its kind, and that does not mean the same."""
    value = rule["value"]
    other = not value if isinstance(value, bool) else value + 1 if isinstance(value, (int, float)) else \
        "another" if isinstance(value, str) else 7
    return 7 if other in rule.get("same", ()) else other


def changed(description, config, values):
    """`config` with other values of keys that the description reads."""
    part = description.get("within")
    return {**config, part: {**config[part], **values}} if part else {**config, **values}


def expect_named(name, said, key, value, *parts):
    """What is said of a refused config names the key and its value, with these parts."""
    start = f"config.json: key '{key}' = "
    expect(any(start in line and all(part in line for part in parts) for line in said.splitlines()),
           f"{name}: {key} = {value!r} is not refused by its name, with {parts}\n{said}")


def check_type(ctxc, description, config, expected):
    name = description["model_type"]
    # "(all)" marks the verdict of the sites that reach a mixer's last matrix.
    verdict = expected and expected.removesuffix(" (all)")
    code, verdicts, said = check(ctxc, config, *(["--sites", "all"] if expected != verdict else []))
    expect(verdicts == {verdict}, f"{name}: found the verdicts {sorted(verdicts)}; expected {expected}\n{said}")
    # A run tells of all that is wrong with a config.
    before = f"{description['within']}." if "within" in description else ""
    fixed = {key: other_value(rule) for key, rule in description["fixed"].items()}
    around = {key: other_value(rule) for key, rule in description.get("around", {}).items()}
    none = {key: 0 for key, rule in description["sizes"].items() if rule["integer"] and rule.get("least", 1) > 0}
    code, _, said = check(ctxc, {**changed(description, config, {**fixed, **none, "a_key_of_tomorrow": 3}), **around, "another": 3})
    expect(code == 2, f"{name}: a config of other keys is not refused")
    for key, value in [*[(before + key, value) for key, value in fixed.items()], *around.items()]:
        expect_named(name, said, key, value, "; expected ", WAY_OUT)
    for key, value in [(before + "a_key_of_tomorrow", 3), ("another", 3), *[(before + key, 0) for key in none]]:
        expect_named(name, said, key, value, f" = {value} ")
    code, _, said = check(ctxc, changed(description, config, {key: "many" for key in description["sizes"]}))
    for key in description["sizes"]:
        expect_named(name, said, before + key, "many", " = 'many' ")
    expect(code == 2, f"{name}: a config without numbers is not refused")


def unknown_parts(description):
    """The parts of the program of which only what they read is known, by their names or their ops."""
    lines = sum(description["blocks"], []) + [line for end in description["before"] + description["behind"] for line in end["lines"]]
    ops = re.findall(r'xf\.contextual "([^"]*)"|graph\.opaque "([^"]*)" why "(?!it is not shown)', "\n".join(lines))
    return {part or op for part, op in ops}


def check_page(page, described, known):
    """The table of the page."""
    head, mark, _ = page.read_text().partition("| type |")
    table = "| type | verdict | no numbers of | choices | lists |\n|---|---|---|---|---|\n"
    for name, description in sorted(described.items()):
        cells = [", ".join(f"`{key}`" for key in sorted(keys)) for keys in
                 (unknown_parts(description), description.get("choices", {}), description.get("lists", {}))]
        table += f"| `{name}` | {known.get(name)} | {' | '.join(cells)} |\n"
    if os.environ.get("CTXC_WRITE_DOCS"):
        page.write_text(head + table)
    expect(page.read_text() == head + table, f"{page} has another table; CTXC_WRITE_DOCS=1 writes it:\n{table}")


def main():
    ctxc, families, configs, types, _, page = sys.argv[1], *map(Path, sys.argv[2:])
    known = {}
    for line in types.read_text().splitlines():
        row = [cell.strip() for cell in line.split("|")]
        if len(row) > 5 and re.match(r"[a-z0-9_-]+$", row[1]):
            known[row[1]] = row[4]
    lines = [json.loads(line) for line in configs.read_text().splitlines()]
    by_type = {config["model_type"]: config for config in lines}
    described = {path.stem: json.loads(path.read_text()) for path in sorted(families.glob("*.json"))}
    expect(described.keys() == by_type.keys(), f"configs and descriptions of other types: {sorted(described.keys() ^ by_type.keys())}")
    expect(len(described) > 0, "there are no descriptions")
    for name in sorted(described.keys() & by_type.keys()):
        check_type(ctxc, described[name], by_type[name], known.get(name))
    check_page(page, described, known)
    start = time.time()
    code, verdicts, said = check(ctxc, {"model_type": "arcee", **LARGE})
    expect(verdicts == {"controllable"}, f"a model of 405 billion parameters: {verdicts}\n{said}")
    print(f"{len(described)} descriptions; a model of 405 billion parameters took {time.time() - start:.2f} s")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
