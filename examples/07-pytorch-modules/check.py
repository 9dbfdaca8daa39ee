#!/usr/bin/env python3
"""Exports each module of modules.py and has ctxc check it: check.py [NAME…]"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import ctxc.export
import torch

from modules import MODULES

with tempfile.TemporaryDirectory() as folder:
    for name in sys.argv[1:] or MODULES:
        made = MODULES[name]()
        module, inputs = made if isinstance(made, tuple) else (made, torch.zeros(1, 13, dtype=torch.long))
        path = Path(folder) / f"{name}.ctxc"
        ctxc.export.export(module, [inputs] if isinstance(inputs, torch.Tensor) else inputs, path)
        run = subprocess.run(["ctxc", "check", str(path), "--format", "json"], stdout=subprocess.PIPE, text=True)
        group = json.loads(run.stdout)["groups"][0]
        plan = " + ".join(site["parameter"] for side in ("input", "output") for site in group[side])
        print(f"{name:22} {group['verdict']:13} {plan or group['causes'][0]['message']}".rstrip(), flush=True)
