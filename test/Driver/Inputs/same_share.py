"""same_share.py A B: whether two cards say the same of the same text."""
import json
import sys

a, b = (json.load(open(path)) for path in sys.argv[1:])
for name in ("share_recovered", "share_interval_95", "all", "most_dependent", "perplexity"):
    assert a[name] == b[name], (name, a[name], b[name])
