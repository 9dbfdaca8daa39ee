#!/usr/bin/env python3
"""Draws small experiments and checks the results: figures as SVG and PNG, and pages that are well formed
and refer to no other file or address.

  plots_test.py CTXC SOURCE [EXPERIMENT…]

Without names, all of them.
"""

import html.parser
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

VOID = {"meta", "link", "br", "img", "hr", "input"}
RUNS = [  # experiment, required figures, options
    ("generation", ["summary", "metrics", "prompt-1", "prompt-2"], ["--generate", "3"]),
    ("norms", ["layers-f32", "tokens", "shares"], ["--generate", "2"]),
    ("start-layer", ["fidelity", "norms"], ["--generate", "1"]),
    ("scaling", ["summary", "norms", "metrics"], ["--generate", "1"]),
    ("portability", ["predicted", "norm"], ["--generate", "1"]),
    ("soft-context", ["rows-f32"], []),
    ("trace", ["path", "tokens", "losses"], []),
    ("specificity", ["elsewhere", "stale"], ["--generate", "3"]),
    ("distil", ["methods", "tokens", "ranks", "front"],
     ["--fit-tokens", "40,80", "--ranks", "2", "--passes", "1", "--keep-cache", "15"]),
]
COMMON = ["--dtypes", "f32", "--updates", "least,naive"]


class Page(html.parser.HTMLParser):
    """Collects a page's text, ids and references; its tags must be closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.references, self.text, self.headings = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "xlink:href", "src", "srcset", "data"):
                self.references.append(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def check_page(path, head):
    source = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(source)
    page.close()
    assert not page.open, page.open
    assert len(page.ids) == len(set(page.ids)), "an id is there twice"
    inside = {"#" + name for name in page.ids}
    for reference in page.references:
        assert reference in inside or reference.startswith("data:image/png"), reference
    assert not re.search(r"@import|<script|<link|url\((?!#)", source)
    text = "".join(page.text)
    prompts = [prompt["text"] for prompt in head["settings"]["prompts"]]
    for wanted in (head["command"], head["settings"]["hash"], head["machine"]["processor"], *prompts[:1]):
        assert wanted in text, wanted
    return page.headings


def check_figure(directory, name, headings):
    root = ElementTree.parse(directory / f"{name}.svg").getroot()
    texts = [t for t in ("".join(e.itertext()).strip() for e in root.iter()
                         if e.tag.endswith("}text")) if t]
    assert any(t in headings for t in texts), f"{name}.svg lacks the title that the page gives it: {texts}"
    assert len(texts) > 5, f"{name}.svg: has hardly any text: {texts}"
    # Math markup that was not typeset.
    assert not [t for t in texts if "mathdefault" in t], texts
    assert (directory / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
    return texts


def contexts_of(folder):
    """Two small contexts for the experiment that has inputs of its own."""
    file = folder / "contexts.jsonl"
    (folder / "prompts.txt").write_text("And they\nThen\nThe king\nAnd she\nSo\n")
    lines = []
    for name, text in (("joshua", "And Joshua the son of Nun sent two men to spy out the land. "),
                       ("da_vid", "And David said unto Saul, Let no man fail because of him. ")):
        (folder / f"{name}.txt").write_text(text)
        lines.append(json.dumps({"context": f"{name}.txt", "prompts": "prompts.txt"}))
    file.write_text("\n".join(lines))
    return file


def inputs_of(name, prompts):
    """The options of an experiment that give its inputs."""
    if name == "distil":
        folder = prompts.parent / "contexts"
        folder.mkdir()
        return ["--contexts", contexts_of(folder)]
    return ["--prompts", prompts, *COMMON]


def main():
    ctxc, source, *names = sys.argv[1:]
    runs = [run for run in RUNS if not names or run[0] in names]
    model = f"{source}/examples/models/gemma3-kjv-1m"
    with tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder, "prompts.txt")
        # Text that could break a page or a plot.
        prompts.write_text('And <b>Joshua</b> & the "son" of $Nun$ sent\nAnd they came 中文 unto\n')
        directories = []
        for name, _, options in runs:
            directory = Path(folder, name)
            directories.append(directory)
            done = subprocess.run(
                [ctxc, "experiment", name, model, *inputs_of(name, prompts), *options, "-o", directory],
                capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        script = f"{source}/tools/plot_experiment.py"
        done = subprocess.run([sys.executable, script, *directories], capture_output=True,
                              text=True)
        if "needs matplotlib" in done.stderr:
            print("skipped: this Python has no matplotlib; tools/setup.sh --judges installs it")
            return 77
        assert done.returncode == 0 and not done.stderr, done.stderr
        for (name, figures, _), directory in zip(runs, directories):
            first = (directory / "records.jsonl").read_text().splitlines()[0]
            headings = check_page(directory / "index.html", json.loads(first))
            texts = {t for figure in figures for t in check_figure(directory, figure, headings)}
            named = ("adapter", "joshua") if name == "distil" else ("least", "naive")
            assert all(any(t.startswith(u) for t in texts) for u in named), f"{name}: {texts}"
        # The same records give the same files, whatever existed before.
        first = directories[0] / f"{runs[0][1][0]}.svg"
        before = first.read_bytes()
        inputs = ["--contexts", prompts.parent / "contexts" / "contexts.jsonl"] \
            if runs[0][0] == "distil" else inputs_of(runs[0][0], prompts)
        subprocess.run([ctxc, "experiment", runs[0][0], model, *inputs, *runs[0][2], "-o",
                        directories[0], "--python", sys.executable], check=True, capture_output=True)
        assert first.read_bytes() == before

        # A page that somebody else wrote is replaced by --force alone.
        page = directories[0] / "index.html"
        page.write_text("<p>mine</p>")
        done = subprocess.run([sys.executable, script, directories[0]], capture_output=True,
                              text=True)
        assert done.returncode == 2 and "is not known to be written by ctxc" in done.stderr
        assert page.read_text() == "<p>mine</p>"
        subprocess.run([sys.executable, script, "--force", directories[0]], check=True,
                       capture_output=True)
        assert page.read_text().startswith("<!DOCTYPE html>")
        assert not list(directories[0].glob("*.tmp-*"))

        bad = Path(folder, "bad")
        bad.mkdir()
        for text, message in (("", "is not a file of an experiment's records"),
                              ('{"a": 1}\nx\n{}\n', "line 2"),
                              (None, "No such file")):
            if text is None:
                (bad / "records.jsonl").unlink()
            else:
                (bad / "records.jsonl").write_text(text)
            done = subprocess.run([sys.executable, script, bad], capture_output=True, text=True)
            assert done.returncode == 2 and message in done.stderr, done.stderr
            assert "Traceback" not in done.stderr
    print("plots and pages are as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
