"""The library names no flag of a command line, since a program in C++ or Python sets options by other names. It looks
at every string literal of lib, include and dialects. The command line finds the words of the messages by a table, and
appends its flags (tools/CommandLine/Flags.cpp): each of these words must be in a message.

    flags.py SOURCE
"""
import pathlib
import re
import sys

# Files that have flags, and why.
ALLOWED = {
    "lib/Experiments/PatchJudge.cpp": "a word of the command line of a program that judges patches",
    "lib/Lowering/GPU/AMD/LinkCodeObject.cpp": "the words of lld's command line",
    "lib/Report/Rules.cpp": "the command that writes the rules' pages",
}

# A comment, a raw string, a string, or a character.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'', re.S)
# Neither within a word, nor a property of CSS, as in `style="--v:`, `var(--ink)` or `--ink: #000`.
FLAG = re.compile(r'(?<![\w"-])(?<!var\()--[a-z][\w-]*+(?!:\s?[#\d])')
# An entry of the command line's table.
WORDS = re.compile(r'\{"([^"]+)", "[^"]*--[^"]*"\}')


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
    complaints, used, messages = [], set(), []
    for path in files(source):
        name = path.relative_to(source)
        for line, text in literals(path.read_text(encoding="utf-8")):
            messages.append(text)
            for flag in FLAG.findall(text):
                allowed = [pattern for pattern in ALLOWED if name.match(pattern)]
                used.update(allowed)
                if not allowed:
                    complaints.append(f"{name}:{line}: {flag} is a flag; name the option in words")
    complaints += [f"{pattern} has no flag any more" for pattern in ALLOWED if pattern not in used]
    table = (source / "tools/CommandLine/Flags.cpp").read_text(encoding="utf-8")
    phrases = WORDS.findall(table)
    complaints += [f"'{words}' is in no message of the library" for words in phrases
                   if not any(words in message for message in messages)]
    if not phrases:
        complaints.append("tools/CommandLine/Flags.cpp has no table of words")
    print(*complaints, f"{len(complaints)} complaints", sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
