"""Every page of the site (tools/docs.sh) fits a wide and a narrow window, loads nothing from elsewhere, and has no errors.

  site.py CHROMIUM SITE
"""

import sys
import time
from pathlib import Path

from devtools import Browser

COMPLETE = "document.readyState == 'complete' ? document.documentElement.scrollWidth : 0"


def width_of(browser, page):
    browser.open(page)
    deadline = time.time() + 30
    while not (width := browser.evaluate(f"document.documentElement ? {COMPLETE} : 0")) and time.time() < deadline:
        time.sleep(0.02)
    return width


def main(chromium, site):
    pages = sorted(Path(site).rglob("*.html"))
    browser, complaints = Browser(chromium), []
    try:
        for width, height in ((1200, 900), (390, 800)):
            browser.size(width, height)
            for page in pages:
                if not 0 < (found := width_of(browser, page)) <= width:
                    complaints.append(f"{page.relative_to(site)}: {found} pixels wide in a window of {width}")
    finally:
        browser.close()
    complaints += [str(each) for each in browser.problems]
    complaints += [f"asks for {each}" for each in browser.requests if not each.startswith(("file:", "data:"))]
    print(*complaints, f"{len(pages)} pages, {len(complaints)} complaints", sep="\n")
    return 1 if complaints or len(pages) < 20 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
