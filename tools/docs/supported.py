"""Writes the table of docs/supported.md from the tables of docs/families.md, described-types.md and torch-types.md, each of which a test
compares with what it is about, and from lib/Import/HuggingFace/wrappers.json, which judge.wrappers does.

  supported.py REPOSITORY [--check]     with --check: fails where the page is not what it writes
"""

import json
import re
import sys
from pathlib import Path

BEGIN, END = "<!-- types -->\n", "<!-- end of types -->\n"


def rows(page, heading):
    """The cells of the table under the first column's name `heading`."""
    lines = iter(page.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            next(lines)
            break
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def table(repository):
    """A line for each model type: what a directory needs, what runs it, and the verdicts of its blocks."""
    docs = repository / "docs"
    known = {}
    for kind, *cells in rows(docs / "torch-types.md", "type"):
        if len(cells) > 5:
            known[kind] = ["export", {"kernels": "kernels", "program": "the exported program"}[cells[4]], {cells[2]}]
        else:
            break
    text = (docs / "torch-types.md").read_text(encoding="utf-8")
    for section, how in (("## Not run by ctxc", "nothing yet"), ("## Without a verdict", "nothing yet")):
        part = text.split(section, 1)[1].split("\n## ", 1)[0]
        for kind in re.findall(r"^\| ([a-z0-9_-]+) \|", part, re.M):
            if kind != "type":
                known[kind] = ["export", how, known[kind][2] if kind in known else {"none"}]
    for kind, verdict, parts, *_ in rows(docs / "described-types.md", "type"):
        kind = kind.strip("`")
        exported = known[kind][1] if kind in known else "the exported program"
        runs = "kernels" if not parts else exported.replace("kernels", "kernels after `ctxc.export`")
        known[kind] = ["directory", runs, {verdict}]
    families = {}
    for _, kinds, *cells in rows(docs / "families.md", "family"):
        for kind in re.findall(r"`([^`]+)`", kinds):
            families.setdefault(kind, ["directory", "kernels", set()])[2].add(cells[-1])
    known.update(families)
    wrappers = json.loads((repository / "lib/Import/HuggingFace/wrappers.json").read_text(encoding="utf-8"))
    for kind, row in wrappers["wrappers"].items():
        text = row["texts"][0]
        if as_another := known.get(wrappers["texts"].get(text, {}).get("model_type", text)):
            known[kind] = ["text", *as_another[1:]]
    lines = ["| `model_type` | a directory or config is read | runs by | verdict |", "|---|---|---|---|"]
    read = {"directory": "yes", "text": "yes, its text model", "export": "after `ctxc.export`"}
    lines += [f"| `{kind}` | {read[how]} | {runs} | {', '.join(sorted(verdicts))} |" for kind, (how, runs, verdicts) in sorted(known.items())]
    return "\n".join(lines) + "\n"


def main():
    page = Path(sys.argv[1]) / "docs/supported.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    new = before + BEGIN + table(Path(sys.argv[1])) + END + rest.split(END)[1]
    if "--check" not in sys.argv:
        page.write_text(new, encoding="utf-8")
    elif new != text:
        print("docs/supported.md is not what its sources say; run: python3 tools/docs/supported.py .")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
