#!/usr/bin/env python3
"""browser.py CTXC CHROMIUM SOURCE [--keep DIR]: the pages of `ctxc inspect`, `check` and `distil` in a real browser.

Those of inspect are of the shipped model, of a tokenizer with hostile pieces, of an encoder and of a model
without a head; those of check, of the shipped model, of experts and of a block that is rejected;
those of distil, of the shipped model and of hostile pieces. There must be no error on the console, no request except for the file itself, the JSON's numbers on hover
and on keyboard focus, pictures without the script, a contrast of at least 4.5 in light and dark mode, nothing
that overflows a width of 1200, 768 or 390 pixels, and no label of a picture that is too small to read there. --keep leaves
pages and screenshots in DIR.
"""

import argparse
import base64
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from devtools import Browser

PROMPT = """And Joshua the son of Nun sent two men to spy out the land, even Jericho.
Then answered"""

HOSTILE = ["</script><script>window.hurt=1</script>", "<img src=x onerror=window.hurt=1>",
           "\" onfocus=window.hurt=1 x=\"", "'><svg onload=window.hurt=1>", "{{script}}", "&lt;b&gt;",
           "\u202egnihton", "\u2066x", "\u0000", "\ud7ff\u0301", "https://example.com/x",
           "</title></style>", "<!--", "]]>", "x" * 500, "\n\n"]

# The contrast ratio of each text to its background, by WCAG 2; for a gradient, to both of its ends.
CONTRAST = """(() => {
  const numbers = (color) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, bottom) => [0, 1, 2].map(i => top[i] * top[3] + bottom[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + .05) / (Math.min(x, y) + .05); };
  const behind = (element) => {
    let chain = [];
    for (let e = element; e; e = e.parentElement) chain.unshift(e);
    let grounds = [[255, 255, 255, 1]];
    for (const e of chain) {
      const style = getComputedStyle(e), plain = numbers(style.backgroundColor);
      grounds = grounds.map(g => over(plain, g));
      const stops = style.backgroundImage.match(/(rgba?|color)\\([^()]*\\)/g) || [];
      if (stops.length) grounds = grounds.flatMap(g => stops.map(s => over(numbers(s), g)));
    }
    return grounds;
  };
  let worst = {ratio: 99};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    if (!/[\\p{L}\\p{N}]/u.test(walker.currentNode.data) || !element.getClientRects().length) continue;
    if (element.closest("script, style, title, #tip, .skip")) continue;
    const ink = element instanceof SVGElement ? style.fill : style.color;
    for (const ground of behind(element)) {
      const found = ratio(over(numbers(ink), ground), ground);
      if (found < worst.ratio) worst = {ratio: found, text: walker.currentNode.data.slice(0, 40), ink, ground};
    }
  }
  return worst;
})()"""


# The size on the screen of the smallest letters in a picture.
SMALLEST_LABEL = """Math.min(...[...document.querySelectorAll('svg text')]
  .filter(text => text.getClientRects().length)
  .map(text => parseFloat(getComputedStyle(text).fontSize) * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b)))"""

# Whether the frame around the subject's column is inside the box that the picture scrolls in.
SUBJECT_SHOWN = """[...document.querySelectorAll('svg .column')].filter(frame => frame.getClientRects().length)
  .every(frame => {
    const [inner, outer] = [frame, frame.closest('.scroll')].map(e => e.getBoundingClientRect());
    return inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
  })"""


def ctxc(program, *words):
    subprocess.run([str(word) for word in (program, "inspect", *words)], check=True,
                   stdout=subprocess.DEVNULL)


def check_page(program, page, model, code=0):
    done = subprocess.run([str(word) for word in (program, "check", model, "--html", page)],
                          capture_output=True)
    assert done.returncode == code, done.stderr


def distil(program, page, model, *words):
    with tempfile.TemporaryDirectory() as folder:
        words = (program, "distil", model, *words, "--html", "--anyway", "--rank", 2, "-o", Path(folder) / "made")
        subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(Path(folder) / "made" / "card.html", page)


def make_cards(program, source, folder, hostile):
    (folder / "context.txt").write_text("In the beginning God created the heaven and the earth. ")
    (folder / "texts.txt").write_text("And the word\nof the Lord came\n---\nThus saith the Lord God\n")
    distil(program, folder / "card-shipped.html", source / "examples/models/gemma3-kjv-1m", "--context",
           folder / "context.txt", "--text", folder / "texts.txt", "--held-out", folder / "texts.txt")
    size = len(HOSTILE)
    texts = [{"prompt": [(i + k) % size for k in range(6)], "answer": [(3 * i + k) % size for k in range(6)]}
             for i in range(12)]
    (folder / "hostile.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    distil(program, folder / "card-hostile.html", hostile, "--context-tokens", ",".join(map(str, range(size))),
           "--text", folder / "hostile.jsonl", "--held-out", folder / "hostile.jsonl", "--curve")


def make_pages(program, source, folder):
    """The pages, and the JSON of the first page."""
    ctxc(program, source / "examples/models/gemma3-kjv-1m", "--prompt", PROMPT, "--generate", "3",
         "--json", folder / "shipped.json", "--html", folder / "shipped.html")
    hostile = folder / "hostile"
    shutil.copytree(source / "test/goldens/llama", hostile)
    size = json.loads((hostile / "config.json").read_text())["vocab_size"]
    pieces = HOSTILE + [f"piece {i}" for i in range(len(HOSTILE), size)]
    (hostile / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "vocab": {piece: i for i, piece in enumerate(pieces)},
                  "merges": []}}))
    ids = ",".join(map(str, range(len(HOSTILE))))
    for subject in (1, len(HOSTILE) - 1):
        ctxc(program, hostile, "--tokens", ids, "--token", subject, "--top", 40, "--backend",
             "reference", "--html", folder / f"hostile-{subject}.html")
    ctxc(program, source / "test/goldens/bert", "--tokens", "5,17,3,8", "--backend", "reference",
         "--html", folder / "encoder.html")
    ctxc(program, source / "test/Driver/Inputs/headless.mlir", "--weights", "random:1", "--tokens",
         "1,2,3", "--backend", "reference", "--html", folder / "headless.html")
    ctxc(program, source / "examples/models/gemma3-kjv-1m", "--joint", "--prompt", PROMPT, "--generate", "40",
         "--html", folder / "joint-shipped.html")
    make_cards(program, source, folder, hostile)
    check_page(program, folder / "check-shipped.html", source / "examples/models/gemma3-kjv-1m")
    check_page(program, folder / "check-experts.html", source / "test/goldens/deepseek-v3")
    rejected = folder / "rejected.mlir"
    rejected.write_text(subprocess.run([str(program), "explain", "bounded-output", "--example", "fails"],
                                       check=True, capture_output=True, text=True).stdout)
    check_page(program, folder / "check-rejected.html", rejected, 1)
    return json.loads((folder / "shipped.json").read_text())


def check_quiet(browser, page):
    """There was no error, and the page was the only request."""
    assert not browser.problems, f"{page}: {browser.problems}"
    assert set(browser.requests) == {page.resolve().as_uri()}, f"{page}: {browser.requests}"
    browser.requests.clear()


def check_named(browser, page):
    """Every picture has a name, and so has every part of a picture that can have the focus."""
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    unnamed = [n for n in nodes if n.get("role", {}).get("value") in ("image", "img", "radio", "region")
               and not n.get("name", {}).get("value")]
    assert not unnamed, f"{page}: {unnamed[:3]}"
    pictures = ("list",) if page.stem.startswith("card") else ("image", "img")
    assert any(n.get("role", {}).get("value") in pictures for n in nodes), page
    headings = browser.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(h => h.tagName)")
    assert headings[0] == "H1" and headings.count("H1") == 1, headings


def check_looks(browser, page, folder):
    for scheme in ("light", "dark"):
        browser.prefer(prefers_color_scheme=scheme)
        browser.size(1200, 900)
        worst = browser.evaluate(CONTRAST)
        assert worst["ratio"] >= 4.5, f"{page}, {scheme}: contrast {worst}"
        for width in (1200, 768, 390):
            browser.size(width, 900)
            small = browser.evaluate(SMALLEST_LABEL)
            assert small is None or small >= 9, f"{page}: a label of {small} pixels in a window of {width}"
            browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            subject = browser.evaluate(SUBJECT_SHOWN)
            assert subject, f"{page}: the framed column is out of sight in a window of {width}"
            wide = browser.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{page}: {wide} pixels wide in a window of {width}"
            if folder and width == 390 or page.stem == "shipped":
                shot = base64.b64decode(browser.call(
                    "Page.captureScreenshot", captureBeyondViewport=True)["data"])
                assert shot.startswith(b"\x89PNG") and len(shot) > 20000, f"{page}: nothing to see"
                if folder:
                    (folder / f"{page.stem}-{scheme}-{width}.png").write_bytes(shot)
    browser.size(1200, 900)


def tip(browser):
    return browser.evaluate("document.getElementById('tip').classList.contains('shown') ? "
                            "document.getElementById('tip').textContent : null")


def check_numbers(browser, found):
    """Hover and focus show the JSON's numbers."""
    part = found["subject"]["leftOut"][2]
    x, y = browser.evaluate("(() => { const r = document.querySelectorAll('.prompt .i')[2]"
                            ".getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2];"
                            " })()")
    assert tip(browser) is None
    browser.move_to(x, y)
    shown = tip(browser)
    assert shown and "%.3g %%" % (100 * part["matrixChangeRelative"]) in shown, shown
    assert "%.3g" % part["totalVariation"] in shown, shown
    browser.press("Escape")
    assert tip(browser) is None
    browser.move_to(1, 1)
    browser.size(1200, 400)

    # Tab leads to the heat map, which scrolls into view; then the arrow keys move, where the last
    # layer is the first row.
    for _ in range(40):
        browser.press("Tab")
        if browser.evaluate("!!document.activeElement.closest('svg.of-matrix')"):
            break
    else:
        raise SystemExit("the tab key does not lead to the heat map")
    layers, tokens = found["model"]["layers"], found["tokens"]
    for keys, token, layer in ((), 0, layers - 1), (("ArrowRight", "ArrowDown"), 1, layers - 2), \
                              (("ArrowLeft",), 0, layers - 2), (("ArrowLeft",), 0, layers - 2), \
                              (("End",), len(tokens) - 1, 0):
        for key in keys:
            browser.press(key)
        norm = tokens[token]["layers"][layer]
        said = browser.evaluate("document.activeElement.getAttribute('aria-label')")
        for words in (f"position {tokens[token]['position']}, layer {layer}\n",
                      "norm %.3g," % norm["matrixNorm"], "%.3g %%" % (100 * norm["matrixRelative"])):
            assert words in said, f"{keys}: {said!r} lacks {words!r}"
        browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert tip(browser) == said
        box = browser.evaluate("(r => [r.left, r.top, r.right, r.bottom])"
                               "(document.getElementById('tip').getBoundingClientRect())")
        assert box[0] >= 0 and box[1] >= 0 and box[2] <= 1200 and box[3] <= 400, box


def check_choice(browser):
    """A radio button chooses which of two pictures is shown."""
    seen = "[...document.querySelectorAll('.either')].map(e => [...e.querySelectorAll('[class^=panel]')]" \
           ".map(p => p.getClientRects().length > 0))"
    assert browser.evaluate(seen) == [[True, False], [True, False]]
    browser.evaluate("document.querySelectorAll('.second').forEach(e => e.click())")
    assert browser.evaluate(seen) == [[False, True], [False, True]]


def check_hostile(browser, page):
    assert browser.evaluate("window.hurt") is None, page
    assert browser.evaluate("document.scripts.length") == 1, page
    assert browser.evaluate("document.querySelectorAll('img, svg[onload], [onfocus]').length") == 0
    text = browser.evaluate("document.body.innerText")
    assert "\u202e" not in text and "\u2066" not in text and "\u0000" not in text, page
    titles = browser.evaluate("[...document.querySelectorAll('[data-says]')].map(e => e.dataset.says)"
                              ".join()")
    for piece in HOSTILE[:6]:
        assert piece[:12] in text + titles, f"{page}: {piece} is not shown as it is"


def check_without_script(browser, page, found):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page)
    document = browser.call("DOM.getDocument", depth=-1, pierce=True)["root"]
    names = []
    todo = [document]
    while todo:
        node = todo.pop()
        names.append(node["nodeName"].lower())
        todo += node.get("children", [])
    cells = len(found["tokens"]) * found["model"]["layers"]
    assert names.count("svg") >= 4 and names.count("rect") > cells and names.count("title") > cells
    shot = base64.b64decode(browser.call("Page.captureScreenshot",
                                         captureBeyondViewport=True)["data"])
    assert len(shot) > 20000, "nothing to be seen without the script"
    browser.call("Emulation.setScriptExecutionDisabled", value=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ctxc")
    parser.add_argument("chromium")
    parser.add_argument("source", type=Path)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(exist_ok=True)
        found = make_pages(arguments.ctxc, arguments.source, folder)
        browser = Browser(arguments.chromium)
        try:
            browser.size(1200, 900)
            for page in sorted(folder.glob("*.html")):
                browser.open(page)
                check_named(browser, page)
                if "hostile" in page.stem:
                    check_hostile(browser, page)
                check_looks(browser, page, arguments.keep)
                if page.stem == "shipped":
                    browser.open(page)
                    browser.requests.clear()
                    browser.open(page)
                    check_numbers(browser, found)
                    check_choice(browser)
                check_quiet(browser, page)
            check_without_script(browser, folder / "shipped.html", found)
        finally:
            browser.close()
    print("the page is quiet, can be read, and shows its numbers")


if __name__ == "__main__":
    main()
