#!/usr/bin/env python3
"""Checks that what the pages that are checked in link to, or name as a file, is there.

  links.py [ROOT]

A link's file must be checked in too, or be a folder of such files, and a link's #anchor must be a
heading of the page that it leads to, spelled as GitHub and GitLab spell anchors. Images, links of HTML
(href, src) and reference definitions count as links; what stands in code does not. Addresses of the
network are not asked for.

A code span that begins with a folder of the root, such as `lib/Planning` or `test/Rules/*.mlir`, names
a file or folder too. A part in capitals (`lib/ROOM`) or a … stands for anything, as * does.
"""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.M | re.S)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s+(\S+)|"
                  r"\b(?:href|src)=\"([^\"]+)\"", re.M)
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.M)


def blanked(found):
    """As many lines as before, so that line numbers stay."""
    return "\n" * found[0].count("\n")


def prose(text):
    return CODE.sub(blanked, COMMENT.sub(blanked, FENCE.sub(blanked, text)))


def links(text):
    """(line number, target) of each link."""
    text = prose(text)
    for found in LINK.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, next(filter(None, found.groups()))


def anchors(text):
    """What headings are called in addresses."""
    known = set()
    for heading in HEADING.findall(FENCE.sub(blanked, text)):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        name, count = slug, 0
        while name in known:
            count += 1
            name = f"{slug}-{count}"
        known.add(name)
    return known


def named_files(text, roots):
    """(line number, path) of each code span that names a file or folder."""
    text = COMMENT.sub(blanked, FENCE.sub(blanked, text))
    for found in re.finditer(r"`([\w.-]+/[\w./*…-]*)`", text):
        if found[1].split("/")[0] in roots:
            yield text.count("\n", 0, found.start()) + 1, found[1]


def resolved(page, path):
    """The path from the root that `path` means on `page`; None where it leaves the root."""
    parts = []
    for part in (PurePosixPath(page).parent / path).parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def dead_links(root, files):
    """A message for each link of a page among `files`, which is what is checked in."""
    files = set(files)
    folders = {str(folder) for file in files for folder in PurePosixPath(file).parents}
    pages = {file: (root / file).read_text() for file in files if file.endswith(".md")}
    checked = 0
    for page, text in sorted(pages.items()):
        for number, target in links(text):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            checked += 1
            path, _, anchor = unquote(target).partition("#")
            place = resolved(page, path) if path else page
            if place is None or place not in files and (place or ".") not in folders:
                yield f"{page}:{number}: {target}: no such file is checked in"
            elif anchor and place in pages and anchor not in anchors(pages[place]):
                yield f"{page}:{number}: {target}: {place} has no heading of this name"
        for number, path in named_files(text, {file.split("/")[0] for file in files if "/" in file}):
            pattern = re.sub(r"…|\b[A-Z]{2,}\b", "*", path.rstrip("/"))
            if not fnmatch.filter(files, pattern) and not fnmatch.filter(folders, pattern):
                yield f"{page}:{number}: `{path}`: no such file is checked in"
    if not checked:
        yield f"{root}: has no page with a relative link"


def checked_in(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    return [file for file in listed.split("\0") if file and (root / file).is_file()]


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(dead_links(root, checked_in(root)))
    for message in found:
        print(message)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
