"""Checks that the proof on the page is that of the block on the page, and is accepted.

    page.py CTXC PAGE [--write]
"""
import os
import re
import subprocess
import sys
import tempfile


def rejection(ctxc, folder, page, shown):
    """The lines of a rejection on the page are those of the file that the page names."""
    rules = os.path.join(os.path.dirname(page), "..", "test", "Rules")
    proof = os.path.join(folder, "rejection.json")
    model = os.path.join(rules, "norm-without-scale.mlir")
    subprocess.run([ctxc, "check", model, "--proof", proof], check=False, capture_output=True)
    with open(proof, encoding="utf-8") as file:
        written = " ".join(file.read().split())
    if " ".join(shown.split()) in written:
        return 0
    print(f"{page}: shows another rejection than the one that is written for {model}")
    return 1


def main(ctxc, page, *options):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    block = re.search(r"```mlir\n(.*?)```", text, re.S).group(1)
    shown = re.search(r"```json\n(\{.*?\n)```", text, re.S)
    with tempfile.TemporaryDirectory() as folder:
        model, proof = os.path.join(folder, "block.mlir"), os.path.join(folder, "proof.json")
        with open(model, "w", encoding="utf-8") as file:
            file.write(block)
        subprocess.run([ctxc, "check", model, "--proof", proof], check=True, capture_output=True)
        judged = subprocess.run([ctxc, "check-proof", model, proof], check=False)
        with open(proof, encoding="utf-8") as file:
            written = file.read()
        rejected = rejection(ctxc, folder, page, re.findall(r"```json\n(.*?)```", text, re.S)[-1])
    if "--write" in options:
        new = "```json\n" + written + "```"
        text = text.replace(shown.group(0) if shown else "PROOF", new, 1)
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    if not shown or shown.group(1) != written:
        print(f"{page}: shows another proof than the one that is written; run page.py with --write")
        return 1
    return judged.returncode or rejected


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
