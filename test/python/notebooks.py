"""Runs the notebooks of a folder, and compares what their cells give with the outputs that are stored in them.

  notebooks.py [--write] FOLDER

All cells are run, in this process, in the notebook's folder; a value at a cell's end is shown as Jupyter shows it: as text, as
HTML where it has some, a figure as SVG. An error that a cell is to show has the tag raises-exception. Numbers with a decimal point
differ between processors in their last digits, and HTML repeats text: only the rest is compared. --write stores the outputs.
"""

import ast
import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path


def shown(value):
    """A value's representations, by MIME type."""
    if hasattr(value, "savefig"):
        file = io.StringIO()
        value.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        return {"text/plain": "<Figure>", "image/svg+xml": file.getvalue()}
    found = {"text/plain": repr(value)}
    html = getattr(value, "_repr_html_", None)
    if html is not None and html() is not None:
        found["text/html"] = html()
    return found


def lines(text):
    return text.splitlines(keepends=True)


def run(source, names, expects_error):
    """The outputs of a cell, as a notebook stores them."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, outputs = io.StringIO(), []
    value = None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "<cell>", "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    except Exception as error:
        if not expects_error:
            raise
        name = f"{type(error).__module__}.{type(error).__name__}"
        outputs.append({"output_type": "error", "ename": name, "evalue": str(error), "traceback": [f"{name}: {error}"]})
    if printed.getvalue():
        outputs.insert(0, {"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None and not source.rstrip().endswith(";"):
        outputs.append({"output_type": "execute_result", "metadata": {}, "execution_count": None,
                        "data": {kind: lines(text) for kind, text in shown(value).items()}})
    return outputs


def compared(outputs):
    """What must be the same on every processor."""
    parts = []
    for each in outputs:
        text = each.get("text") or each.get("data", {}).get("text/plain") or [each.get("evalue", "")]
        parts.append(re.sub(r"-?\d+\.\d+(e[-+]?\d+)?|-?\d+e[-+]?\d+", "#", "".join(text)))
        parts += sorted(each.get("data", {}))
    return "\n".join(re.sub(r"[ -]+", " ", part) for part in parts)


def main():
    write = "--write" in sys.argv
    folder = Path(sys.argv[-1]).resolve()
    os.chdir(folder)
    wrong = 0
    for path in sorted(folder.glob("*.ipynb")):
        notebook, names, count = json.loads(path.read_text()), {"__name__": "__main__"}, 0
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            count += 1
            source = "".join(cell["source"])
            outputs = run(source, names, "raises-exception" in cell["metadata"].get("tags", []))
            for each in outputs:
                if "execution_count" in each:
                    each["execution_count"] = count
            if write:
                cell["execution_count"], cell["outputs"] = count, outputs
            elif compared(outputs) != compared(cell["outputs"]):
                wrong += 1
                print(f"{path.name}, cell {count}:\n{source}\nfound:\n{compared(outputs)}\nstored:\n"
                      f"{compared(cell['outputs'])}\n")
        if write:
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        print(f"{path.name}: {count} cells")
    return 1 if wrong or not list(folder.glob("*.ipynb")) else 0


if __name__ == "__main__":
    sys.exit(main())
