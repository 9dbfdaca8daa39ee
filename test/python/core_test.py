"""The package ctxc without torch: what a person writes, compared with what the command line gives.

  core_test.py CTXC REPOSITORY [TEST…]

Every night (CTXC_KERNEL_OPT=3) more patches are made in a row, and of all checkpoints.
"""

import os
import sys
import unittest
import warnings

from core_calls import Calls
from core_case import ROOT
from core_results import Results
from core_words import Words

__all__ = ["Calls", "Results", "Words"]

if __name__ == "__main__":
    os.chdir(ROOT)
    warnings.simplefilter("error")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
