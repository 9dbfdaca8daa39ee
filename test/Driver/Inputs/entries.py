"""Whether DIR's prefix tuning and its prefix_cache.safetensors hold the same COUNT entries: entries.py DIR COUNT"""
import array
import json
import struct
import sys


def tensors(path):
    data = open(path, "rb").read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for name, tensor in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            yield name, (tensor["shape"], array.array("f", data[start + begin:start + end]))


folder, count = sys.argv[1], int(sys.argv[2])
config = json.load(open(folder + "/adapter_config.json"))
assert config["peft_type"] == "PREFIX_TUNING" and config["num_virtual_tokens"] == count, config
heads, layers = config["num_attention_heads"], config["num_layers"]
width = config["token_dim"] // heads
shape, rows = dict(tensors(folder + "/adapter_model.safetensors"))["prompt_embeddings"]
assert shape == [count, 2 * layers * heads * width], shape
cache = dict(tensors(folder + "/prefix_cache.safetensors"))
assert len(cache) == 2 * layers
for layer in range(layers):
    for part, name in enumerate(("keys", "values")):
        shape, numbers = cache[f"layers.{layer}.{name}"]
        assert shape == [heads, count, width], shape
        for entry in range(count):
            for head in range(heads):
                at = ((entry * 2 * layers + 2 * layer + part) * heads + head) * width
                own = (head * count + entry) * width
                assert rows[at:at + width] == numbers[own:own + width], (layer, name, entry, head)
