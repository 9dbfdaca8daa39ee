"""A model of one layer that runs COUNT times: runs.py MODEL.mlir COUNT"""
import re
import sys

text, count = open(sys.argv[1], encoding="utf-8").read(), int(sys.argv[2])
layers = [line for line in text.splitlines() if "xf.layer" in line]
runs = "\n".join(re.sub(r"%x\d+ = xf.layer @core\(%x\d+\)", f"%x{i + 1} = xf.layer @core(%x{i})", layers[0]) for i in range(count))
print(text.replace("\n".join(layers), runs).replace(f"%head * %x{len(layers)}", f"%head * %x{count}"))
