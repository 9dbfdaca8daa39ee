"""A whole model in NumPy, through its kernels: Algorithm 1 for the last token of a prompt.

  with_numpy.py KERNELS.so MODEL 'PROMPT'

The context runs through the ordinary kernels. The dual kernels then take the last token through all
layers, its full and its reduced run side by side, and give every layer's patch; the applied kernels
run the token again with nothing but the patch.
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np
from ctxc_kernels import DTYPES, INEXACT, Kernels, Step

STORED = {"BF16": "bf16", "F16": "f16", "F32": "f32", "I64": "i64"}


def safetensors(path):
    """An array for each tensor, where it lies in the file."""
    memory = np.memmap(path, np.uint8, "r")
    (length,) = struct.unpack("<Q", memory[:8])
    tensors = {}
    for name, entry in json.loads(bytes(memory[8:8 + length])).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = memory[begin:end].view(DTYPES[STORED[entry["dtype"]]]).reshape(
                entry["shape"])
    return tensors


class Model:
    def __init__(self, kernels, tensors):
        self.steps = [Step(kernels, step, tensors.__getitem__)
                      for step in kernels.manifest["steps"]]

    def run(self, tokens, first, patches=None):
        """The logits of tokens at positions from `first` on, and each layer's state; with patches, of
        each layer's patched form. Nothing is visible before them."""
        x, states = None, []
        positions = np.arange(first, first + len(tokens), dtype=np.int32)
        for step in self.steps:
            phase = "applied" if patches and step.layer is not None else "plain"
            arrays = {"tokens": np.array(tokens, np.int32), "slots": positions, "input_0": x}
            for name, _, shape in step.states(phase):
                arrays[name] = np.zeros([len(tokens), *shape], np.float32)
            if phase == "applied":
                # A patch is of one token: its rows are one.
                arrays |= {name: part[0] for name, part in patches[step.layer].items()}
            _, arrays = step(phase, positions, (len(tokens), 0), arrays)
            states.append([arrays[name] for name, _, _ in step.states(phase)])
            x = arrays["output_0"]
        return x, states

    def dual(self, token, position, states):
        """The full and the reduced run of one token: their logits, the patches, and whether every
        condition holds. `states` are of all tokens before it."""
        at, context = np.array([position], np.int32), position
        head = {"tokens": np.array([token], np.int32)}
        embedded = self.steps[0]("plain", at, (0, 0), head)[1]["output_0"]
        full, reduced, patches, exact = embedded, embedded, {}, True
        for step, before in zip(self.steps[1:-1], states[1:-1]):
            arrays = head | {"input_0": full, "input_1": reduced, "slots_reduced": at,
                             "slots": np.arange(context + 1, dtype=np.int32)}
            earlier = iter(before)
            for name, stream, shape in step.states("dual"):
                own = np.zeros([1, *shape], np.float32)
                arrays[name] = own if stream else np.concatenate([next(earlier), own])
            status, arrays = step("dual", at, (context + 1, 1), arrays)
            exact &= status != INEXACT
            full, reduced = arrays["output_0"], arrays["output_1"]
            patches[step.layer] = {name: arrays[name] for name in step.patch("dual")}
        logits = [self.steps[-1]("plain", at, (0, 0), head | {"input_0": x})[1]["output_0"][0]
                  for x in (full, reduced)]
        return logits, patches, exact


def main():
    import sentencepiece
    library, folder, prompt = sys.argv[1:]
    model = Model(Kernels(library, threads=2), safetensors(Path(folder) / "model.safetensors"))
    words = sentencepiece.SentencePieceProcessor(str(Path(folder) / "tokenizer.model"))
    *context, token = [words.bos_id()] + words.encode(prompt)
    position = len(context)

    _, states = model.run(context, 0)
    (full, reduced), patches, exact = model.dual(token, position, states)
    patched, _ = model.run([token], position, patches)
    unpatched, _ = model.run([token], position)

    def line(what, logits):
        logits = logits.reshape(-1, logits.shape[-1])[-1]
        print(f"{what:38}{words.id_to_piece(int(logits.argmax())):10}"
              f"{np.abs(logits - full).max():.3g}")

    print(f"{'':38}{'next':10}L∞")
    line(f"full run, context of {position} tokens", full)
    line("reduced run beside it", reduced)
    line("with the patch alone, no context", patched)
    line("without the patch, no context", unpatched)
    parts = [part for layer in patches.values() for part in layer.values()]
    print(f"{len(patches)} layers, {len(parts)} arrays, "
          f"{sum(part.size for part in parts)} numbers; "
          f"{'every condition holds' if exact else 'a condition fails'}")


if __name__ == "__main__":
    main()
