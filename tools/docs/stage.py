"""Copies what the site is made of: every page and notebook, and the files that pages link to, to FOLDER/pages; the Python
package, for its reference, to FOLDER/python.

  stage.py REPOSITORY FOLDER

Paths stay as they are, so that links do. The menu follows docs/README.md.
"""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")


def main():
    root, stage = Path(sys.argv[1]), Path(sys.argv[2]) / "pages"
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md", "*.ipynb"],
                            cwd=root, capture_output=True, text=True, check=True).stdout
    pages = sorted(Path(name) for name in listed.split("\0") if name and not name.startswith("test/"))
    for page in pages:
        copy(root, stage, page)
    front = stage / "README.md"
    front.write_text(front.read_text() + menu(root, pages))
    package = shutil.copytree(root / "python/ctxc", Path(sys.argv[2]) / "python/ctxc") / "__init__.py"
    # Sphinx sees only imports that nothing encloses.
    package.write_text(re.sub(r"^try:\n((?:    .*\n)+)except [^\n]+\n(?:(?:    .*)?\n)+",
                              lambda found: textwrap.dedent(found[1]), package.read_text(), flags=re.M))
    model = package.parent / "_model.py"
    model.write_text(model.read_text().replace("OPTIONS\n", options(root), 1))


def options(root):
    """The list that `load` has instead of the word where the package runs: a row's last two texts, and the names that it gives."""
    table = (root / "include/ctxc/Session/Options.def").read_text()
    lines = []
    for row in re.findall(r"^CTXC_(?:OTHER_)?OPTION\((.*?)\)$", table, re.M | re.S):
        texts = re.findall(r'"((?:[^"\\]|\\.)*)"', row)
        name, meaning = texts[-2], texts[-1].rstrip(":").replace(chr(92) + chr(34), chr(34))
        if name:
            lines.append(f"    - `{name}`: {meaning}\n")
    return "\n" + "".join(lines)


def copy(root, stage, page):
    """The page, with links to folders as links to their pages; and the files that it links to."""

    def target(match):
        link, anchor = match[1], match[2] or ""
        if re.match(r"[a-z]+:", link):
            return match[0]
        file = (root / page.parent / link).resolve()
        if not file.is_relative_to(root.resolve()) or not file.exists():
            return match[0]
        if file.is_dir():
            link, file = link.rstrip("/") + "/README.md", file / "README.md"
            if not file.is_file():
                contents(root, stage, file.parent)
                return link + anchor
        if file.suffix not in (".md", ".ipynb"):
            place = stage / file.relative_to(root.resolve())
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        return link + anchor

    place = stage / page
    place.parent.mkdir(parents=True, exist_ok=True)
    text = (root / page).read_text()
    for link in re.findall(r'<img src="([^"]+)"', text):
        (stage / page.parent / link).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / page.parent / link, stage / page.parent / link)
    place.write_text(LINK.sub(target, text))


def contents(root, stage, folder):
    """A page that names the files of a folder without one."""
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "."], cwd=folder, capture_output=True, text=True,
                           check=True).stdout.splitlines()
    place = stage / folder.relative_to(root.resolve())
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, place / name)
    (place / "README.md").write_text(f"---\norphan: true\n---\n# {folder.name}\n\n" + "".join(f"- [{name}]({name})\n" for name in names))


def menu(root, pages):
    """Headings of docs/README.md with the pages that they name; the rest comes last."""
    parts, seen = [], {Path("README.md")}
    for heading, body in re.findall(r"\*\*(.+?)\*\*\n(.*?)(?=\n\*\*|\Z)", (root / "docs/README.md").read_text(), re.S):
        names = []
        for link, _ in LINK.findall(body):
            page = Path(*(root / "docs" / link).resolve().relative_to(root.resolve()).parts)
            if page in pages and page not in seen:
                names.append(page)
                seen.add(page)
        if "Python" in body and Path("docs/python.md") in names:
            names.insert(names.index(Path("docs/python.md")) + 1, Path("autoapi/ctxc/index"))
        parts.append((heading, names))
    rules = [page for page in pages if page.parent == Path("docs/rules") and page not in seen]
    parts.append(("Examples", [page for page in pages if page.parts[0] == "examples"]))
    parts.append(("Rules", rules))
    seen |= {page for _, names in parts for page in names}
    parts.append(("The project", [page for page in pages if page not in seen]))
    return "".join(f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n"
                   + "\n".join(str(name.with_suffix("")) for name in names) + "\n```\n" for heading, names in parts)


if __name__ == "__main__":
    main()
