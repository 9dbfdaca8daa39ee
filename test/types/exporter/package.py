"""The package under test, whose folder is the first argument of each test, and what tests of models share."""
import os
import sys

import torch

PACKAGE = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, PACKAGE)


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False).logits
