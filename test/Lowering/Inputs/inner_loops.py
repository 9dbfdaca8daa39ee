#!/usr/bin/env python3
"""Prints what the inner loops of functions do, from x86-64 or AArch64 assembly on standard input.

  inner_loops.py FUNCTIONS [OPERATION]     FUNCTIONS: a regular expression

One line for each loop of one basic block that has an OPERATION (vfmadd), in order of their sizes.
Loads are operands in memory, those of arithmetic too; spills are loads and stores of the stack.
Prefetches are named where there are some.
"""

import re
import sys


def bodies_of(functions, lines):
    inside, found = False, []
    for line in lines:
        if re.match(rf"{functions}:", line):
            inside = True
        elif line.startswith(".Lfunc_end"):
            inside = False
        if inside:
            found.append(line)
    return found or sys.exit(f"inner_loops.py: no function {functions}")


def loops_in(lines):
    """Each run of instructions from a label to a jump back to it, without a label between; and
    what points to the stack there."""
    label, block, stack = None, [], ["%rsp", "sp"]
    for line in lines:
        text = re.split(r"//|# ", line)[0].strip()
        if text.endswith(":"):
            label, block = text[:-1], []
            if not label.startswith("."):
                stack = ["%rsp", "sp"]
        elif text and not text.startswith("."):
            block.append(text)
            if text.split() == ["movq", "%rsp,", "%rbp"]:
                stack = ["%rsp", "%rbp"]
            if label and re.match(rf"(j\w+|b\.\w+|c?t?bn?z.*,)\s+{re.escape(label)}$", text):
                yield block, stack


def describe(block, stack, operation):
    """Operations, loads, spills, calls, and the registers' kind."""
    operations = [text for text in block if text.startswith(operation)]
    memory = [text for text in block
              if re.search(r"[(\[]", text) and not text.startswith(("lea", "nop", "data16", "prefetch", "prfm"))
              and not re.search(r"v\d+\.\w+\[", text)]
    spills = [text for text in memory
              if any(register in re.split(r"[(\[]", text, maxsplit=1)[1] for register in stack)]
    stores = [text for text in memory if text.endswith(")") or text.startswith("st")]
    ahead = sum(text.startswith(("prefetch", "prfm")) for text in block)
    widths = sorted({width for text in operations for width in re.findall(r"%([xyzt]mm)|(?<=\.)(4s)", text)
                     for width in width if width})
    calls = sum(text.startswith(("call", "bl\t", "blr")) for text in block)
    return (len(operations), f"{len(operations)} {operation} {'/'.join(widths)}, "
            f"{len(memory) - len(stores)} loads, {len(stores)} stores, {len(spills)} spills, "
            f"{calls} calls" + (f", {ahead} prefetches" if ahead else ""))


def main():
    functions, operation = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "vfmadd"
    found = [describe(*loop, operation) for loop in loops_in(bodies_of(functions, sys.stdin))]
    for count, text in sorted(found):
        if count:
            print(text)


main()
