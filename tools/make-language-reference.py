#!/usr/bin/env python3
"""Writes docs/language.md from the dialects' TableGen files, through mlir-tblgen's documentation.

  make-language-reference.py [--tblgen mlir-tblgen] [--llvm-include DIR] [--check]

The output of mlir-tblgen is shortened: one table for the operands, attributes and results of an op, the
syntax without TableGen's quotes, and of the traits only ctxc's own interfaces. With --check nothing is written,
and a page that differs is an error. The build target `language-reference` writes the page.
"""

import argparse
import difflib
import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/language.md"

HEAD = """\
<!-- Written by tools/make-language-reference.py from dialects/*/*.td; edit those, then build the
     target language-reference. -->

# Language reference

The ops, types and attributes that the text of a model consists of. In the syntax lines `%x` stands for an operand, `X`
for an attribute, and `[…]` for parts that may be left out. The verifier checks the constraints C1, C2, …. The last line of
an op says how it takes part in the analyses:

- *assignable*: a patch of its parameter can bring its output to any target;
- *solvable*: an output chain goes through it, at least by some of its operands;
- *facts*: it says where its result can be zero, and which values it can take;
- *reads the context*: its result depends on the tokens before.

A block is written step by step in [a new architecture](new-architecture.md).

"""

# What an op's interfaces tell a reader.
SPEAKS = {
    "AssignableOpInterface": "assignable",
    "ContextualOpInterface": "reads the context",
    "SolvableOpInterface": "solvable",
    "FactsOpInterface": "facts",
    "Commutative": "commutative",
}

INTERFACES = """\
# Interfaces

How an op explains itself to the analyses and the backends. An op of another dialect joins by
implementing them: [adding an op](new-op.md).

"""


def run_tblgen(args, *options):
    command = [args.tblgen, f"-I{args.llvm_include}", f"-I{ROOT}", f"-I{ROOT / 'include'}", *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def syntax(text, kinds):
    """An assembly format as a user would type it, without quotes, and with `(… $x^)?` as `[…]`."""
    text = re.sub(r"operation ::=\s*", "", " ".join(text.split()))
    text = text.replace("attr-dict-with-keyword", "").replace("attr-dict", "")
    text = re.sub(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)\?", lambda m: "⟦" + m[1].strip() + "⟧", text)
    for name in (name for name, kind in kinds.items() if kind == "unit attribute"):
        text = text.replace(f"`{name}` ${name}^", f"`{name}`")
    text = text.replace("^", "").replace("`", "")
    text = re.sub(r"functional-type\(([^,]+), ([^)]+)\)", r"(type(\1)) -> type(\2)", text)

    def named(found):
        name = found[1]
        if name in ("sym_name", "block"):
            return "@" + name.removeprefix("sym_").upper()
        return name.upper() if kinds.get(name) == "attribute" else "%" + name

    text = re.sub(r"\$(\w+)", named, " ".join(text.split()))
    text = re.sub(r" ([,)\]])", r"\1", re.sub(r"([(\[]) ", r"\1", text))
    text = re.sub(r"(%\w+) \[", r"\1[", re.sub(r"(@\w+|NAME) \(", r"\1(", text))
    return text.replace("⟦", "[").replace("⟧", "]")


def cells(line):
    """The name and description in a row of one of mlir-tblgen's tables."""
    html = re.fullmatch(r"<tr><td><code>(.*?)</code></td><td>(.*?)</td><td>(.*)</td></tr>", line)
    if html:
        return html[1], html[3].strip()
    row = [cell.strip() for cell in line.strip("|").split("|")]
    return row[0].strip("`"), row[-1]


def tables(text):
    """One table for the operands, attributes and results of an op."""
    rows = []

    def take(found):
        kind = found[1].lower().rstrip("s")
        for line in found[2].splitlines():
            if line.startswith("<tr><td>") or (line.startswith("| `")):
                name, description = cells(line)
                rows.append(f"| {kind} `{name}` | {description} |")
        return ""

    text = re.sub(r"^#### (Attributes|Operands|Results):\n((?:\n|[|<].*\n)*)", take, text, flags=re.M)
    # Functions of the builtin kind have attributes that the text never shows.
    shown = [r for r in rows if not re.search(r"`(sym_visibility|arg_attrs|res_attrs)`", r)]
    order = {"operand": 0, "attribute": 1, "result": 2}
    shown.sort(key=lambda row: order[row.split()[1]])
    return text.rstrip() + ("\n\n| | |\n|---|---|\n" + "\n".join(shown) if shown else "") + "\n\n"


def interfaces_line(text):
    named = re.findall(r"`([\w ()<>,]+)`", " ".join(re.findall(r"^(?:Traits|Interfaces): .*$", text,
                                                              flags=re.M)))
    said = [word for name, word in SPEAKS.items() if name in named]
    text = re.sub(r"^(?:Traits|Interfaces|Effects): .*\n\n?", "", text, flags=re.M)
    return text, (", ".join(said).capitalize() + "." if said else "")


def kinds_of(text):
    """A name's kind: operand, attribute, unit attribute or result."""
    kinds = {}
    for kind, rows in re.findall(r"^#### (Attribute|Operand|Result)s:\n((?:\n|[|<].*\n)*)", text,
                                 flags=re.M):
        for line in rows.splitlines():
            if line.startswith("<tr><td>") or line.startswith("| `"):
                name, description = cells(line)
                kinds[name] = description if description == "unit attribute" else kind.lower()
    return kinds


def operation(text):
    """One op: heading, summary, syntax, description, operands and results, interfaces."""
    text, said = interfaces_line(text)
    kinds = kinds_of(text)
    text = re.sub(r"^### (`\S+`) \(.*\)$", r"### \1", text, flags=re.M)
    text = re.sub(r"^Syntax:\n\n```\n(.*?)\n```\n",
                  lambda m: "```mlir\n" + syntax(m[1], kinds) + "\n```\n", text, flags=re.M | re.S)
    text = re.sub(r"^_(.+)_$", r"\1.", text, count=1, flags=re.M)
    text = tables(text)
    return text + (said + "\n\n" if said else "")


def dialect(text):
    text = re.sub(r"<!--.*?-->\n*|^\[TOC\]\n*", "", text, flags=re.M)
    head, _, rest = text.partition("## Operations\n")
    ops, _, others = rest.partition("\n## ")
    parts = re.split(r"^(?=### )", ops, flags=re.M)[1:]
    names = [re.search(r"`(\S+?)`", part)[1] for part in parts]
    index = textwrap.fill(", ".join(f"[`{name}`](#{name.replace('.', '')})" for name in names), 100,
                          break_long_words=False, break_on_hyphens=False)
    others = re.sub(r"^#### Parameters:\n(?:\n|\|.*\n)*", "", "\n## " + others, flags=re.M)
    others = re.sub(r"^#### Cases:\n\n((?:\|.*\n)+)",
                    lambda m: ", ".join(f"`{case}`" for case in
                                        re.findall(r"^\| \w+ \| `\d+` \| (.*) \|$", m[1], flags=re.M))
                    + "\n", others, flags=re.M)
    others = re.sub(r"^_(.+)_$", r"\1.", others, flags=re.M) + "\n"
    return (head.replace("# '", "# The ").replace("' Dialect", " dialect").rstrip() + "\n\n"
            + "## Operations\n\n" + index + "\n\n" + "".join(map(operation, parts)) + others)


def method(found):
    """One method of an interface: its declaration and its description."""
    declaration = re.sub(r"::(?:llvm|mlir|ctxc)::", "", found[1])
    text = found[2].replace("NOTE: This method *must* be implemented by the user.", "")
    return f"```c++\n{declaration}\n```\n\n{' '.join(text.split())}\n\n"


def interface(text):
    text = re.sub(r"<!--.*?-->\n*|^# .*\n+|^### Methods:\n+", "", text, flags=re.M)
    text = re.sub(r"^## (\w+) \(.*\)$", r"## `\1`", text, flags=re.M)
    return re.sub(r"^#### `\w+`\n\n```c\+\+\n(.*?)\n```\n\n(.*?)(?=^#|\Z)", method, text,
                  flags=re.M | re.S)


def page(args):
    dialects = ROOT / "dialects"
    text = HEAD
    for name, file in (("xf", "XF/XFOps.td"), ("graph", "Graph/GraphOps.td"), ("patch", "Patch/PatchOps.td")):
        text += dialect(run_tblgen(args, "-gen-dialect-doc", f"-dialect={name}", dialects / file))
    text += "\n" + INTERFACES
    for file in (dialects / "XF/XFInterfaces.td", *sorted(dialects.glob("Patch/*Interfaces.td")),
                 ROOT / "include/ctxc/Reference/ReferenceInterface.td",
                 ROOT / "include/ctxc/Gradient/GradientInterface.td",
                 ROOT / "include/ctxc/Lowering/LoweringInterface.td"):
        text += interface(run_tblgen(args, "-gen-op-interface-docs", file))
    # The page has one title; the dialects and the interfaces are its chapters.
    title, _, rest = text.partition("# Language reference\n")
    rest = re.sub(r"^(#+ )", r"#\1", rest, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", title + "# Language reference\n" + rest).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tblgen", default="/usr/lib/llvm-22/bin/mlir-tblgen")
    parser.add_argument("--llvm-include", default="/usr/lib/llvm-22/include")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    text = page(args)
    if not args.check:
        PAGE.write_text(text)
        return 0
    old = PAGE.read_text() if PAGE.exists() else ""
    if old == text:
        return 0
    print(f"{PAGE}: is stale; build the target language-reference and commit the page")
    print("\n".join(difflib.unified_diff(old.splitlines(), text.splitlines(), "committed", "generated",
                                         lineterm="", n=1)))
    return 1


if __name__ == "__main__":
    sys.exit(main())
