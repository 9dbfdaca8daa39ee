#!/usr/bin/env python3
"""Models of transformers that ctxc.export wrote, against the importers of the same configs: equal verdicts and plans.

  exported.py CTXC PACKAGE GOLDENS FAMILY…

PACKAGE is the folder of the Python package; FAMILY names a folder of GOLDENS. The models have no weights."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

binary, package, goldens = sys.argv[1:4]
sys.path.insert(0, package)
import ctxc.export as exporter  # noqa: E402


def check(model):
    """For each layer, in order: the verdict, and the parameters that its plan patches."""
    run = subprocess.run([binary, "check", str(model), "--format", "json"], stdout=subprocess.PIPE, text=True)
    layers = {}
    for group in json.loads(run.stdout)["groups"]:
        plan = [[site["parameter"] for site in group[side]] for side in ("input", "output")]
        layers.update({layer: (group["verdict"], plan) for layer in group["layers"]})
    return layers


failed = 0
with tempfile.TemporaryDirectory() as folder:
    for family in sys.argv[4:]:
        own = Path(folder) / family
        own.mkdir()
        # The config alone: with weights, experts have the names of their files.
        (own / "config.json").write_text((Path(goldens) / family / "config.json").read_text())
        exporter.export_config(exporter.config_of(str(own)), own / "model.ctxc")
        found, expected = check(own / "model.ctxc"), check(own)
        assert expected, family
        same = found == expected
        failed += not same
        print(family, len(found), "layers", "agree" if same else f"differ:\n  {found}\n  {expected}", flush=True)
sys.exit(failed > 0)
