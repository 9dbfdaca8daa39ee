"""Several mutants in one text: an environment variable says which of them runs.

To compile a file anew takes longer than to run most tests. Where a mutant replaces an expression, or
leaves out a statement, the text can hold both; a mutant that does neither is compiled by itself.
"""
import re

VARIABLE = "CTXC_MUTANT"


def function_for(file):
    """The function of the text of `file` that says whether a mutant runs."""
    return "isMutant_" + re.sub(r"\W", "_", file)


def head_for(file):
    return (
        "#include <cstdlib>\n"
        f"static bool {function_for(file)}(int number) {{\n"
        f'  static const char *given = std::getenv("{VARIABLE}");\n'
        "  static const int running = given ? std::atoi(given) : -1;\n"
        "  return number == running;\n"
        "}\n"
    )


def is_balanced(text):
    return all(text.count(a) == text.count(b) for a, b in ("()", "{}", "[]"))


def split_common(search, replace):
    """search = before + a + after, replace = before + b + after, where a and b begin and end as an
    expression or a statement may."""
    same = next((i for i, (x, y) in enumerate(zip(search, replace)) if x != y), min(len(search), len(replace)))
    begins = [0] + [m.end() for m in re.finditer(r"return |= |if \(|;\n", search[:same])]
    before = max(begins)
    a, b = search[before:], replace[before:]
    common = next((i for i, (x, y) in enumerate(zip(a[::-1], b[::-1])) if x != y), min(len(a), len(b)))
    for end in re.finditer(r";|\)| \|\|| &&|\n| \{|$", a):
        after = len(a) - end.start()
        x, y = a[: len(a) - after], b[: len(b) - after]
        if after <= common and is_balanced(x) and is_balanced(y):
            return search[:before], x, y, a[len(a) - after :]
    return search[:before], a, b, ""


def switched(text, mutant, number):
    """`text` with a switch for the mutant; None where its change is of another form, or `text` has
    no longer just one place for it."""
    if text.count(mutant.search) != 1:
        return None
    at = text.index(mutant.search)
    before, a, b, after = split_common(mutant.search, mutant.replace)
    left, right = text[:at] + before, after + text[at + len(mutant.search) :]
    runs = f"{function_for(mutant.file)}({number})"
    kept, other = a.strip(), b.strip().lstrip(";").strip()
    begins_statement = not left[left.rfind("\n") + 1 :].strip()
    if not other and begins_statement and (kept.endswith(";") or right.startswith(";")):
        return f"{left}if (!{runs}) {{ {a if kept.endswith(';') else a + ';'} }}{right.removeprefix(';')}"
    if not other or begins_statement and not re.match(r"[(\w.]+\(", kept):
        return None
    if ";" in kept or not kept[0].isalnum() and kept[0] not in "(!&*\"" or kept[-1] in ",|":
        return None
    if re.search(r"[=!]= $", left) or re.match(r"(Operation \*|std::string )", kept):
        return None
    return f"{left}({runs} ? ({other}) : ({kept})){right}"
