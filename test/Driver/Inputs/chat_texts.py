"""What stands in the texts of an adapter that `ctxc distil --chat` wrote, by the tiny tokenizer's vocabulary."""
import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])
tokenizer = json.loads((folder.parent / "model" / "tokenizer.json").read_text())
names = {id: piece for piece, id in tokenizer["model"]["vocab"].items()}
names |= {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
spell = lambda ids: "".join(names[id] for id in ids)
end = next(id for id, name in names.items() if name == "<|end|>")
card = json.loads((folder / "card.json").read_text())
print("in front:", spell(card["prefix"]))
texts = [json.loads(line) for name in ("texts", "held-out") for line in (folder / f"{name}.jsonl").read_text().splitlines()]
begins = {spell(text["prompt"][:5]) for text in texts}
assert len(begins) == 1, begins
print("turns", *sorted({text.get("turn", 1) for text in texts}))
whole = [text["answer"] for text in texts if len(text["answer"]) < 16]
assert whole and all(answer[-1] == end and end not in answer[:-1] for answer in whole), whole
print("answers that are not cut end with <|end|>")
