"""Conversations as JSON lines: a question with its answer, and messages."""
import json

print(json.dumps({"prompt": "The king", "answer": "A house of the sea"}))
print(json.dumps({"messages": [{"role": "user", "content": "The king"}, {"role": "assistant", "content": "A house"},
                               {"role": "user", "content": "The end"}, {"role": "assistant", "content": "No market"}]}))
