#!/usr/bin/env python3
"""Writes a new activation, update rule, option or op wherever docs/changes.md says that one is written, as a twin of one
that is there: it compiles, and does what the other does. Then write what is its own.

  tools/new.py KIND NAME --like OTHER [--root FOLDER]

KIND: activation, update, option (of a field that is true or false) or op. Names are as users write them: `tools/new.py op
hard-sigmoid --like softcap` makes xf.hard_sigmoid and HardSigmoidOp.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

SECTIONS = {"activation": "An activation", "update": "An update rule", "option": "An option", "op": "An op"}


class Name:
    def __init__(self, text):
        words = re.split(r"[-_ ]", text)
        self.snake, self.kebab, self.spaced = "_".join(words), "-".join(words), " ".join(words)
        self.camel = "".join(word.capitalize() for word in words)
        self.field = self.camel[0].lower() + self.camel[1:]
        self.forms = [self.snake, self.kebab, self.spaced, self.camel, self.field]


def files_of(root, kind):
    """What the kind's section of docs/changes.md names; for an op, all code in the same folders."""
    page = (root / "docs/changes.md").read_text(encoding="utf-8")
    section = page.split(f"## {SECTIONS[kind]}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\|(.*?)\|", section, re.M)
    named = [root / path for cell in cells for path in re.findall(r"`([\w/.]+)`", cell) if (root / path).is_file()]
    if kind == "op":  # what is read as the op is its own
        folders = [file.parent for file in named if not {"Graph", "test"} & set(file.parts[len(root.parts):])]
        named = [file for file in named if "test" in file.parts[len(root.parts):]]
        named += [file for folder in folders for file in sorted(folder.glob("*")) if file.suffix in (".td", ".cpp", ".py")]
    return list(dict.fromkeys(named))


def rows(text):
    """(start, end) of each row of a .def file."""
    for row in re.finditer(r"^CTXC_\w+\(", text, re.M):
        depth = 0
        for found in re.compile(r'"(?:[^"\\]|\\.)*"|[()]').finditer(text, row.start()):
            depth += {"(": 1, ")": -1}.get(found[0], 0)
            if found[0] == ")" and not depth:
                yield row.start(), found.end()
                break


def table_with_twin(text, other, new):
    """The twin is the last row of its macro: places of rows are numbers elsewhere."""
    names = dict(zip(other.forms[::-1], new.forms[::-1]))  # of one word, the first form
    for start, end in rows(text):
        macro, first, rest = re.match(r"(\w+\()(\w+)(.*)", text[start:end], re.S).groups()
        if first not in names:
            continue
        if not re.match(r", \w+, -?[\d.]+, ", rest):  # no formula, which has names of functions
            rest = re.sub(r'(?<=[ .])("?)([\w -]+)\1(?=,)', lambda at: at[1] + names.get(at[2], at[2]) + at[1], rest)
        last = max(to for at, to in rows(text) if text.startswith(macro, at))
        return f"{text[:last]}\n{macro}{names[first]}{rest}{text[last:]}"
    return text


def tablegen_with_twin(text, other, new):
    def of_enum(found):
        cases = list(re.finditer(r"(I32Enum\w*Case)<\"(\w+)\", (\d+)>", found[0]))
        if other.snake not in [case[2] for case in cases]:
            return found[0]
        twin = rf',\1\n  {cases[-1][1]}<"{new.snake}", {int(cases[-1][3]) + 1}>'
        return found[0][:cases[-1].end()] + re.sub(r"( *//.*)?", twin, found[0][cases[-1].end():], count=1)

    text = re.sub(r"I32Enum(?:Attr)?<[^\[]*\[.*?\n?\]>", of_enum, text, flags=re.S)
    block = re.search(rf"^def XF_{other.camel}Op : .*?^}}\n", text, re.M | re.S)
    if block:
        twin = re.sub(rf"(?<=[\"`.]){other.snake}\b", new.snake, block[0]).replace(f"{other.camel}Op", f"{new.camel}Op")
        text = f"{text[:block.end()]}\n{twin}{text[block.end():]}"
    return page_with_twin(text, other, new)


def page_with_twin(text, other, new):
    """A row in the first table of Markdown that has one of the other's."""
    columns, lines = 0, text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        rule = re.fullmatch(r" *((?:\| *:?-+:? *)+)\|\n", line)
        columns = rule[1].count("|") if rule else columns if line.lstrip().startswith("|") else 0
        row = re.match(rf"( *)\|[^|]*(?<![\w-])(`?){other.snake}\2(?![\w-])[^|]*\|", line)
        if columns and row:
            quote = row[2]
            twin = [f" {quote}{new.snake}{quote} ", f" as {quote}{other.snake}{quote} ", *[" "] * (columns - 2)]
            return "".join(lines[:at + 1]) + f"{row[1]}|{'|'.join(twin)}|\n" + "".join(lines[at + 1:])
    return text


def definitions(text):
    """(start, end) of what begins in the first column of C++, up to where its braces are closed."""
    start, depth, at = None, 0, 0
    for line in text.splitlines(keepends=True):
        bare = re.sub(r'"(?:[^"\\]|\\.)*"|//.*', "", line).rstrip()
        if start is None and bare and bare[0] not in " #}" and not bare.startswith("namespace"):
            start, depth = at, 0
        at += len(line)
        depth += bare.count("{") - bare.count("}")
        if start is not None and not depth and bare.endswith((";", "}", ")")):
            yield start, at
            start = None


def op_with_twin(text, other, new):
    """Definitions of the op have twins, and so have its places in lists of types, its interfaces and its samples."""
    def renamed(part):
        part = re.sub(op, f"{new.camel}Op", part).replace(f"Lower{other.camel}", f"Lower{new.camel}")
        return re.sub(rf'(?<="xf\.){other.snake}\b', new.snake, part)

    op = rf"(?<![A-Za-z]){other.camel}Op\b"
    made, done = [], 0
    for start, end in definitions(text):
        whole = text[start:end]
        if re.search(op, whole.split("{")[0]):
            whole += ("\n" if whole.count("\n") > 1 else "") + renamed(whole)
        else:
            whole = re.sub(rf"((?:\w+::)*){op}(?=[,>])", lambda at: f"{at[0]}, {renamed(at[0])}", whole)
            whole = re.sub(rf'^.*{op}::attachInterface<.*\n|^ *{{"xf\.{other.snake}", .*\n',
                           lambda at: at[0] + renamed(at[0]), whole, flags=re.M)
        made += [text[done:start], whole]
        done = end
    return "".join(made) + text[done:]


def code_with_twin(text, kind, other, new):
    if kind == "op":
        return op_with_twin(text, other, new)
    if kind == "option":
        return re.sub(rf"^(?:  ///.*\n)*  bool {other.field}\b.*\n",
                      lambda at: at[0] + re.sub(rf"\b{other.field}\b", new.field, at[0]), text, flags=re.M)
    # What is asked of the other is asked of both.
    name = new.camel if kind == "update" else new.snake
    return re.sub(rf"^( *case \w+::)(?:{other.camel}|{other.snake}):", rf"\g<1>{name}:\n\g<0>", text, flags=re.M)


def python_with_twin(text, other, new):
    def of_op(found):
        return found[0].rstrip() + "\n\n\n" + re.sub(rf"(?<=[._]){other.snake}\b", new.snake, found[0].rstrip()) + "\n"

    text = re.sub(rf'^@meaning\("xf\.{other.snake}"\)\n(?:.+\n|\n(?= ))+', of_op, text, flags=re.M)
    return re.sub(rf'"{other.snake}": (_\w+)', rf'\g<0>, "{new.snake}": \1', text)


def with_twin(file, kind, other, new):
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".def":
        return text, table_with_twin(text, other, new)
    if file.suffix == ".td":
        return text, tablegen_with_twin(text, other, new)
    if file.suffix == ".md":
        return text, page_with_twin(text, other, new)
    if file.suffix == ".py":
        return text, python_with_twin(text, other, new)
    return text, code_with_twin(text, kind, other, new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=SECTIONS)
    parser.add_argument("name", type=Name)
    parser.add_argument("--like", required=True, type=Name)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
    arguments = parser.parse_args()
    kind, other, new, root = arguments.kind, arguments.like, arguments.name, arguments.root.resolve()
    if kind == "option" and new.kebab.count("-") != other.kebab.count("-"):
        sys.exit(f"found '{new.kebab}' behind {kind}; expected as many words as in '{other.kebab}', whose forms it takes")
    texts = {file: with_twin(file, kind, other, new) for file in files_of(root, kind)}
    lists = [file for file in texts if file.suffix == (".td" if kind == "op" else ".def")]
    mark = rf"XF_{new.camel}Op\b" if kind == "op" else rf"^CTXC_\w+\((?:{new.camel}|{new.snake}),"
    for file in lists:
        if re.search(mark, texts[file][0], re.M):
            sys.exit(f"{file.relative_to(root)}: '{new.kebab}' is there already; name another {kind}")
    changed = [file for file, (before, after) in texts.items() if before != after]
    if not set(lists) & set(changed):
        sys.exit(f"{lists[0].relative_to(root)}: found no {kind} '{other.kebab}'; name one that is there behind --like")
    for file in changed:
        file.write_text(texts[file][1], encoding="utf-8")
        print(file.relative_to(root))
    formatted = [file for file in changed if file.suffix == ".cpp"]
    if formatted and shutil.which("clang-format-22"):
        subprocess.run(["clang-format-22", "-i", *formatted], check=True)
    print(f"{new.kebab} does what {other.kebab} does; write what is its own (docs/changes.md)")


if __name__ == "__main__":
    main()
