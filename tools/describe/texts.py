"""The text of a raised program in parts that programs of other sizes share: ops with names by rule, numbers apart from words."""
from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = r"%[\w.$\-]+"
TOKEN = re.compile(r'"[^"]*"|dense<[^>]*>|tensor<[^>]*>|' + NAME + r"|@[\w.]+|-?\d+\.\d+(?:[eE][+-]?\d+)?|[A-Za-z_][\w.]*|-?\d+|\s+|.")
RUN = re.compile(r"(" + NAME + r"|tensor<[^>]*>)(?:, \1){2,}(?![\w.:])")  # of one operand or type
NUMBER = re.compile(r"-?\d+(?:\.\d+(?:[eE][+-]?\d+)?)?$")


@dataclass
class Layer:
    block: str  # its text
    line: str   # the call, with $i for its index, %in and %out


@dataclass
class Program:
    layers: list[Layer]
    before: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    entry: str = ""  # what the first layer reads


class Unsupported(Exception):
    """A program that no description says."""


class OtherOps(Unsupported):
    """Programs of different sizes have different ops."""


class NoForm(Unsupported):
    """A program whose form no description has, whatever its sizes and words are."""


def names_by_rule(lines: list[str]) -> list[str]:
    """The lines of a block or model, whose values are named after their ops and parameters."""
    taken: dict[str, int] = {}
    named: dict[str, str] = {}

    def fresh(base: str) -> str:
        base = re.sub(r"^(?=\d)", "at_", re.sub(r"\W", "_", base))  # a name of digits alone is one that MLIR counts
        count = taken[base] = taken.get(base, -1) + 1
        return f"%{base}_{count}" if count else f"%{base}"
    result = []
    for line in lines:
        if line.lstrip().startswith("xf.block"):
            head, arguments, rest = re.match(r"(.*?\()(.*?)(\) -> .*)", line).groups()
            for name in re.findall(NAME + "(?=:)", arguments):
                named[name] = fresh("x")
            line = head + re.sub(NAME, lambda m: named[m.group()], arguments) + rest
        else:
            made = re.match(r"(\s*)(" + NAME + r")(:\d+)? = (?:xf|graph)\.(\w+)(.*)$", line)
            stored = made and made.group(4) == "param" and re.search(r'"([^"]*)"', line).group(1)
            line = re.sub(NAME + r"(?!\S*:?\d* = )", lambda m: named.get(m.group(), m.group()), line)
            if made:
                parts = stored.split(".") if stored else [made.group(4)]
                kind = parts.pop() if stored and len(parts) > 1 and parts[-1] in ("weight", "bias") else ""
                named[made.group(2)] = fresh(parts[-1] + ("_bias" if kind == "bias" else "") if stored else made.group(4))
                line = line.replace(made.group(2) + (made.group(3) or "") + " =", named[made.group(2)] + (made.group(3) or "") + " =", 1)
        result.append(operands_by_name(line))
    return result


def settings_by_rule(line: str) -> str:
    """The call of a layer, whose settings may be named after their sizes: in an order that no size changes."""
    found = re.match(r"(.* settings \{)(.*)(\}.*)$", line)
    if not found:
        return line
    settings = re.split(r", (?=\w+ = )", found[2])
    return found[1] + ", ".join(sorted(settings, key=lambda setting: re.sub(r"\d", "", setting.split(" ")[0]))) + found[3]


def operands_by_name(line: str) -> str:
    """What a part reads that nothing computes, in an order that no size changes: it is known to be read, and no more."""
    found = re.match(r'(.* = xf\.contextual "[^"]*"\()(.*)(\).* : \()(.*)(\) -> .*)$', line)
    if not found:
        return line
    operands = sorted(zip(found[2].split(", "), found[4].split(", "), strict=True))
    return found[1] + ", ".join(name for name, _ in operands) + found[3] + ", ".join(kind for _, kind in operands) + found[5]


def without_bodies(text: str) -> str:
    """The program without the functions of the parts that xf has no op for: what these read and give is left."""
    text = re.sub(r"^  graph\.function .*?^  }\n", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"graph\.body = @\w+, | \{graph\.body = @\w+\}", "", text)


def lacks_numbers(text: str) -> bool:
    """Whether a part of the program is known by what it reads alone."""
    return "xf.contextual" in text or "graph.opaque" in text


def read(text: str) -> Program:
    """The parts of what `ctxc import` printed."""
    units: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("  xf."):
            units.append([line])
        elif line.startswith("    ") or line == "  }":
            units[-1].append(line)
    blocks, model = {}, None
    for unit in units:
        if unit[0].startswith("  xf.model"):
            head = re.match(r"xf\.model @\w+ (positions \d+ )?\{$", unit[0].strip())
            if not head:
                raise NoForm(f"the model's head is {unit[0].strip()}")
            limit = [f"    {head[1].strip()}"] if head[1] else []  # a line of its own, in front of all others
            model = limit + unit[1:-1]
            continue
        name = re.match(r"  xf\.block @([\w.]+)\(", unit[0]).group(1)
        unit[0] = unit[0].replace("@" + name, "@BLOCK", 1)
        blocks[name] = "\n".join(line[2:] for line in names_by_rule(unit))
    calls = [index for index, line in enumerate(model) if " = xf.layer @" in line]
    if calls != list(range(calls[0], calls[-1] + 1)):
        raise NoForm("ops stand between its layers")
    lines, layers, chain = [], [], None
    for number, index in enumerate(calls):
        form = re.match(r"\s*(" + NAME + r") = xf\.layer @([\w.]+)\((" + NAME + r')\) at "([^"]*)"(.*)$', model[index])
        if not form:
            raise NoForm("a layer reads or gives several values")
        result, block, operand, prefix, rest = form.groups()
        if chain and operand != chain or f".{number}." not in "." + prefix:
            raise NoForm("its layers are no chain, or not counted from 0")
        chain = result
        at = ("." + prefix).rsplit(f".{number}.", 1)
        rest = settings_by_rule(rest)
        layers.append((blocks[block], f'xf.layer @BLOCK(%in) at "{at[0][1:] + "." if at[0] else ""}$i.{at[1]}"{rest}'))
        lines.append((operand, result))
    ends = names_by_rule(model[:calls[0]] + [f"    {lines[-1][1]} = xf.layer({lines[0][0]})"] + model[calls[-1] + 1:])
    place = next(index for index, line in enumerate(ends) if "= xf.layer(" in line)
    result, entry = re.match(r"\s*(" + NAME + r") = xf\.layer\((" + NAME + r")\)", ends[place]).groups()
    behind = [re.sub(re.escape(result) + r"(?![\w])", "%last", line)[4:] for line in ends[place + 1:]]
    return Program([Layer(block, line) for block, line in layers], [line[4:] for line in ends[:place]], behind, entry)


@dataclass
class Place:
    """A number, list or word of a line that may differ between programs."""
    kind: str  # int, float, list, word, run
    value: object


def with_runs(line: str) -> list[str | Place]:
    """The same, where what stands several times in a row is a place: how often, and what."""
    result: list[str | Place] = []
    end = 0
    for run in RUN.finditer(line):
        result += [*pieces(line[end:run.start()]), Place("run", (1 + run[0].count(", "), run[1]))]
        end = run.end()
    return result + pieces(line[end:])


def pieces(line: str) -> list[str | Place]:
    """The line as fixed texts and places."""
    result: list[str | Place] = []

    def add(piece: str | Place) -> None:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        else:
            result.append(piece)
    tokens = TOKEN.findall(line)
    for index, token in enumerate(tokens):
        if re.match(r'"?[a-z]+_\d+(x\d+)*"?$', token):  # a setting that is named after its sizes
            for part in re.findall(r"\d+|\D+", token):
                add(Place("int", int(part)) if part.isdigit() else part)
        elif token.startswith("dense<"):
            inner = token[6:-1]
            if "[" in inner:
                add(Place("list", [float(v) for v in inner.strip("[]").split(",")]))
            else:  # one number for all entries
                add("dense<")
                add(Place("float", float(inner)))
                add(">")
        elif token.startswith("tensor<"):
            add("tensor<")
            for part in token[7:-1].split("x"):
                if part.isdigit():
                    add(Place("int", int(part)))
                    add("x")
                else:
                    add(part)
            add(">")
        elif NUMBER.match(token):
            add(Place("float", float(token)) if "." in token else Place("int", int(token)))
        elif index >= 2 and tokens[index - 2] == "xf.activation":
            add(Place("word", token))
        else:
            add(token)
    return result
