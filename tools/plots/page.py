"""An experiment's files: its figures, and one page that contains everything and needs no other file."""

import html
import importlib
import io
import os
import re

from plots import style
from plots.data import BadInput, Data

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: #1e293b;
  background: #fff; max-width: 76rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { font-size: 1.15rem; margin: 2.4rem 0 0.4rem; }
.lead { color: #475569; margin-top: 0; }
figure { margin: 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #475569; max-width: 60rem; }
table { border-collapse: collapse; font-size: 0.9rem; } .scroll { overflow-x: auto; }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; text-align: left; border-bottom: 1px solid #e2e8f0; }
th { color: #475569; font-weight: 600; vertical-align: bottom; }
td { font-variant-numeric: tabular-nums; }
pre { background: #f1f5f9; padding: 0.7rem 0.9rem; overflow-x: auto; border-radius: 4px; }
"""


# By these words ctxc knows its own files: include/ctxc/Support/OwnFile.h.
MARK = "Written by ctxc"


def put(path, content, force):
    """Writes a file completely or not at all; one that ctxc did not write is replaced by force."""
    if not force and path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            if MARK.encode() not in file.read(4096):
                raise BadInput(f"{path}: is there, and is not known to be written by ctxc; move it "
                               "away, or replace it with --force")
    unfinished = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def escape(value):
    return html.escape(str(value), quote=True)


def module_of(name):
    """The module that draws the experiment."""
    if not re.fullmatch(r"[a-z-]+", name):
        raise BadInput(f"experiment {name!r}: expected a name of lower-case letters and dashes")
    try:
        return importlib.import_module(f"plots.{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        if error.name != f"plots.{name.replace('-', '_')}":
            raise
        raise BadInput(f"experiment {name!r}: has no figures; tools/plots has no "
                       f"{name.replace('-', '_')}.py") from None


def svg_text(figure):
    buffer = io.StringIO()
    figure.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)  # hundredths of a point are invisible
    head, rest = text.split("\n", 1)
    return f"{head}\n<!-- {MARK} experiment. -->\n{rest}"


def save(figure, directory, force):
    """Writes SVG and PNG, with the figure's title; returns the SVG's text without it, for a page that has
    headings."""
    inline = svg_text(figure)
    figure.figure.suptitle(figure.title, x=0.01, ha="left", fontsize=12)
    put(directory / f"{figure.name}.svg", svg_text(figure).encode(), force)
    picture = io.BytesIO()
    figure.figure.savefig(picture, format="png", metadata={"Software": f"{MARK} experiment"})
    put(directory / f"{figure.name}.png", picture.getvalue(), force)
    style.plt.close(figure.figure)
    return inline


def inlined(svg, number, title):
    """An SVG as a part of a page: without XML header, with ids that no other figure has, and with a name."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns:(?!xlink)\w+="[^"]*"', "", svg)
    svg = re.sub(r'(<image\b[^>]*?) id="[^"]*"', r"\1", svg)  # they are not unique, and not used
    svg = re.sub(r'\bid="', f'id="f{number}-', svg)
    svg = re.sub(r'href="#', f'href="#f{number}-', svg)
    svg = re.sub(r"url\(#", f"url(#f{number}-", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def table_html(columns, rows):
    head = "".join(f"<th scope=\"col\">{escape(c)}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>\n"
                   for row in rows)
    return (f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>'
            "</table></div>")


def settings_rows(data):
    head, settings = data.head, data.settings
    machine = head["machine"]
    seconds = sum(r["seconds"] for r in data.runs)
    threads = machine["threads"] or f"{machine['cores']}, one a core"
    yield "model", f"{settings['model']} ({settings['layers']} layers, vocabulary " \
                   f"{settings['vocabulary']})"
    yield "weights", settings["hash"]
    yield "tokens a prompt", settings["generate"]
    yield "types", ", ".join(style.DTYPES.get(d, d) for d in settings["dtypes"])
    yield "updates", ", ".join(settings["updates"])
    for name, value in settings["options"].items():
        yield name, value
    yield "machine", f"{machine['processor']}, {machine['cores']} cores, " \
                     f"{machine['memory'] / 2**30:.0f} GiB; threads: {threads}"
    yield "versions", ", ".join(f"{k} {v}" for k, v in head["versions"].items())
    yield "records", f"{len(data.records)}, in {seconds:.0f} s"


def write(directory, force=False):
    """Draws the experiment in `directory`; returns the path of the page."""
    data = Data(directory)
    name = data.settings["experiment"]
    module = module_of(name)
    parts = []
    for number, figure in enumerate(module.figures(data), 1):
        svg = inlined(save(figure, directory, force), number, f"{figure.title}. {figure.caption}")
        parts.append(f"<h2>{escape(figure.title)}</h2>\n<figure>\n{svg}\n"
                     f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>")
    for table in module.tables(data):
        parts.append(f"<h2>{escape(table.title)}</h2>\n{table_html(table.columns, table.rows)}")
    prompts = "".join(f"<li>{escape(p['text'])}</li>\n" for p in data.settings["prompts"])
    if prompts:
        prompts = f"<h2>Prompts</h2>\n<ol>\n{prompts}</ol>"
    summary = " ".join(data.head["summary"].split())
    page = f"""<!DOCTYPE html>
<!-- {MARK} experiment. -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(name)}: {escape(data.settings['model'])}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(name)}</h1>
<p class="lead">{escape(summary)} ({escape(data.head['paper'])})</p>
<pre>{escape(data.head['command'])}</pre>
{chr(10).join(parts)}
<h2>Settings</h2>
{table_html(["", ""], settings_rows(data))}
{prompts}
</body>
</html>
"""
    path = directory / "index.html"
    put(path, page.encode(), force)
    return path
