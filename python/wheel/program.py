#!python
"""ctxc, ctxc-opt or ctxc-lsp-server, whichever of them this file is installed as."""
import importlib.util
import os
import sys
from importlib.machinery import PathFinder

# The compiled module alone: `import ctxc` takes numpy, and longer than many a command.
[folder] = importlib.util.find_spec("ctxc").submodule_search_locations
spec = PathFinder.find_spec("ctxc._core", [folder])
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
os.environ.setdefault("CTXC_PYTHON", sys.executable)  # what `ctxc check --transformers` exports with: the Python that has ctxc
sys.exit(core.run_program([os.path.basename(__file__), *sys.argv[1:]], os.path.join(folder, "_programs")))
