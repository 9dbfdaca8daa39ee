"""Checks the pages of a site: links inside of it lead somewhere, and nothing is loaded from the network.

  check_site.py FOLDER
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        for key in ("href", "src", "data", "poster"):
            if found.get(key):
                shows = tag == "a" or tag == "link" and found.get("rel") in ("next", "prev", "canonical", "search", "index")
                (self.links if shows else self.loaded).append(found[key])


def main():
    folder = Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        place = path.relative_to(folder)
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                if link in page.loaded and parts.scheme != "data":
                    wrong.append(f"{place}: loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{place}: {link}: there is no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{place}: {link}: the page has no such place")
    for path in folder.rglob("*.css"):
        for link in re.findall(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)", path.read_text(encoding="utf-8")):
            wrong.append(f"{path.relative_to(folder)}: loads {link}")
    print("\n".join(sorted(set(wrong))) or f"{len(pages)} pages: links lead somewhere, nothing is loaded from the network")
    return bool(wrong) or not pages


if __name__ == "__main__":
    sys.exit(main())
