"""enlarge.py FILE.safetensors BYTES: adds a tensor that importers do not read, of so many bytes, which take no room on the disk."""
import json
import os
import struct
import sys

path, extra = sys.argv[1], int(sys.argv[2])
with open(path, "rb") as file:
    length = struct.unpack("<Q", file.read(8))[0]
    header, data = json.loads(file.read(length)), file.read()
header["model.rotary_emb.inv_freq"] = {"dtype": "F32", "shape": [extra // 4], "data_offsets": [len(data), len(data) + extra]}
text = json.dumps(header).encode()
with open(path, "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
    os.truncate(file.fileno(), file.tell() + extra)
