"""Sections of docs/measurements.md, each written by the program that measures it."""

import re


def section_of(text, heading):
    """The section under `heading` ("## …") as it stands in a page; empty where there is none."""
    found = re.search(rf"^{re.escape(heading)}\n.*?(?=^## |\Z)", text, re.M | re.S)
    return found[0] if found else ""


def with_section(text, heading, section):
    """The page with this section in place of its own, or at its end."""
    old = section_of(text, heading)
    if not section:
        return text
    section = section.rstrip("\n") + "\n"
    return text.replace(old, section + ("\n" if not text.endswith(old) else "")) if old else \
        text.rstrip("\n") + "\n\n" + section


def write_section(path, heading, section):
    path.write_text(with_section(path.read_text() if path.exists() else "", heading, section))


def publish(section, heading, path):
    """Prints the section, and writes it into the page at `path`, where there is one."""
    print(section)
    if path:
        write_section(path, heading, section)


def table(head, rows):
    """A Markdown table; all columns except the first hold numbers."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines)
