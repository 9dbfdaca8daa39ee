"""Makes the first position of a GPT-2 far longer than the others, so that attention rests there."""
import array
import json
import sys
from pathlib import Path

source, folder = map(Path, sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)
(folder / "config.json").write_bytes((source / "config.json").read_bytes())
data = bytearray((source / "model.safetensors").read_bytes())
start = 8 + int.from_bytes(data[:8], "little")
positions = json.loads(data[8:start])["transformer.wpe.weight"]
begin = start + positions["data_offsets"][0]
end = begin + 4 * positions["shape"][1]
data[begin:end] = array.array("f", [200 * x for x in array.array("f", bytes(data[begin:end]))]).tobytes()
(folder / "model.safetensors").write_bytes(data)
