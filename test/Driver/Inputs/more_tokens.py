"""Writes a tokenizer.json beside a model, with as many tokens as the model has."""
import json
import sys
from pathlib import Path

source, folder = sys.argv[1:]
tokenizer = json.loads(Path(source).read_text())
known = len(tokenizer["model"]["vocab"].keys() | {token["content"] for token in tokenizer["added_tokens"]})
wanted = json.loads((Path(folder) / "config.json").read_text())["vocab_size"]
for number in range(known, wanted):
    tokenizer["added_tokens"].append(tokenizer["added_tokens"][-1] | {"id": number, "content": f"more{number}"})
(Path(folder) / "tokenizer.json").write_text(json.dumps(tokenizer))
