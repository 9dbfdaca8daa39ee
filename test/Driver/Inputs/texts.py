"""texts.py COUNT: so many texts of token ids, as JSON lines."""
import json
import sys

for i in range(int(sys.argv[1])):
    tokens = [(7 * k * k + 37 * k + 11 * i + 5) % 89 for k in range(9)]
    print(json.dumps({"prompt": tokens[:3], "answer": tokens[3:]}))
