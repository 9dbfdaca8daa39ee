"""The library names no flag of a command line: a program in C++ or Python sets options of other names, and the
command line appends its own (tools/CommandLine/Flags.cpp). Looks at every string literal of lib, include and dialects.

    flags.py SOURCE
"""
import pathlib
import re
import sys

# Files that have flags, and why.
ALLOWED = {
    "lib/Experiments/PatchJudge.cpp": "a word of the command line of a program that judges patches",
    "lib/Lowering/GPU/AMD/LinkCodeObject.cpp": "the words of lld's command line",
    "lib/Report/Rules*.cpp": "the rules' pages, which quote commands",
}

# A comment, a raw string, a string, or a character.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'', re.S)
# Neither within a word, nor a property of CSS, as in `style="--v:`, `var(--ink)` or `--ink: #000`.
FLAG = re.compile(r'(?<![\w"-])(?<!var\()--[a-z][\w-]*+(?!:\s?[#\d])')


def literals(text):
    """(line number, text) of each string literal; literals that only white space separates are one."""
    found, end = [], None
    for token in TOKEN.finditer(text):
        content = token[2] if token[2] is not None else token[3]
        if content is None:
            continue
        content = re.sub(r'\\(.)', lambda escape: escape[1] if escape[1] == '"' else " ", content)
        if end is not None and not text[end:token.start()].strip():
            found[-1][1] += content
        else:
            found.append([text.count("\n", 0, token.start()) + 1, content])
        end = token.end()
    return found


def files(source):
    for folder in ("lib", "include", "dialects"):
        yield from (path for path in sorted((source / folder).rglob("*")) if path.suffix in (".h", ".cpp", ".td", ".c"))


def main(source):
    source = pathlib.Path(source)
    complaints, used = [], set()
    for path in files(source):
        name = path.relative_to(source)
        for line, text in literals(path.read_text(encoding="utf-8")):
            for flag in FLAG.findall(text):
                allowed = [pattern for pattern in ALLOWED if name.match(pattern)]
                used.update(allowed)
                if not allowed:
                    complaints.append(f"{name}:{line}: {flag} is a flag; name the option in words")
    complaints += [f"{pattern} has no flag any more" for pattern in ALLOWED if pattern not in used]
    print(*complaints, f"{len(complaints)} complaints", sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
