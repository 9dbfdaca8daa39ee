"""A PyTorch model whose patches were written with hooks takes them from kernels instead.

  with_torch.py KERNELS.so DIRECTORY

Both ways see the same model and the same cache. The kernels read its weights where PyTorch holds them.
"""
import statistics
import sys
import time

import torch
from ctxc_kernels import GOOD, Kernels, Step
from transformers import AutoModelForCausalLM


class ByHooks:
    """Algorithm 1 as one writes it with hooks: a run with the context that records, and a run without
    it that forms each layer's patch and goes on with it."""

    def __init__(self, model):
        self.model, self.layers = model, model.model.layers

    def __call__(self, cache, token, position):
        self.wanted, self.patches = {}, {}
        full = self.run(token, position, cache, self.recording())
        reduced = self.run(token, position, None, self.patching())
        return full, reduced, self.patches

    def run(self, token, position, cache, handles):
        logits = self.model(torch.tensor([[token]]), position_ids=torch.tensor([[position]]),
                            past_key_values=cache).logits[0, -1]
        for handle in handles:
            handle.remove()
        return logits

    def recording(self):
        def keep(key):
            def hook(module, args, out):
                self.wanted[key] = out[0, -1]
            return hook
        handles = []
        for i, layer in enumerate(self.layers):
            handles.append(layer.register_forward_hook(keep((i, "out"))))
            for name in ("gate_proj", "up_proj"):
                handles.append(getattr(layer.mlp, name).register_forward_hook(keep((i, name))))
        return handles

    def patching(self):
        handles = []
        for i, layer in enumerate(self.layers):
            def residual(module, args, i=i):
                self.residual = args[0][0, -1]
            handles.append(layer.post_attention_layernorm.register_forward_pre_hook(residual))
            for name in ("gate_proj", "up_proj", "down_proj"):
                def patch(module, args, out, i=i, name=name):
                    z, y = args[0][0, -1], out[0, -1]
                    target = (self.wanted[i, "out"] - self.residual if name == "down_proj"
                              else self.wanted[i, name])
                    u, v = target - y, z / z.dot(z)
                    self.patches[i, name] = u, v
                    return out + u * v.dot(z)
                handles.append(getattr(layer.mlp, name).register_forward_hook(patch))
        return handles


class ByKernels:
    """The same through the dual kernels: both runs in one pass over the weights."""

    def __init__(self, model, library):
        self.model = model
        kernels = Kernels(library, threads=torch.get_num_threads())
        weights = model.state_dict()
        self.layers = [Step(kernels, step, weights.__getitem__)
                       for step in kernels.manifest["steps"] if "layer" in step]

    def __call__(self, cache, token, position):
        at = torch.tensor([position], dtype=torch.int32)
        slots = torch.arange(position + 1, dtype=torch.int32)
        full = reduced = self.model.model.embed_tokens(torch.tensor([token]))
        patches = {}
        for step, kept in zip(self.layers, cache.layers):
            out = {"output_0": torch.empty_like(full), "output_1": torch.empty_like(full)}
            states = {}
            before = iter((kept.keys, kept.values))
            for name, stream, shape in step.states("dual"):
                states[name] = torch.empty(1 if stream else position + 1, *shape)
                if not stream:  # PyTorch's cache is (1, heads, tokens, size)
                    states[name][:position] = next(before)[0, :, :position].transpose(0, 1)
            status, arrays = step("dual", at, (position + 1, 1), states | out | {
                "input_0": full, "input_1": reduced, "slots": slots, "slots_reduced": at})
            assert status == GOOD
            full, reduced = out.values()
            for name in ("gate_proj", "up_proj", "down_proj"):
                patches[step.layer, name] = [torch.from_numpy(arrays[f"mlp_{name}_weight_{part}"][0])
                                             for part in "uv"]
        logits = self.model.lm_head(self.model.model.norm(torch.cat([full, reduced])))
        return *logits, patches


@torch.no_grad()
def main():
    library, folder = sys.argv[1:]
    torch.set_num_threads(2)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    context, token = [7, 150, 31, 999, 4, 8, 61, 402, 77, 310, 5, 12], 88
    ways = {"hooks": ByHooks(model), "kernels": ByKernels(model, library)}
    results, seconds = {}, {name: [] for name in ways}
    for _ in range(11):
        for name, way in ways.items():
            cache = model(torch.tensor([context])).past_key_values
            start = time.perf_counter()
            results[name] = way(cache, token, len(context))
            seconds[name].append(time.perf_counter() - start)

    for name, (full, reduced, _) in results.items():
        print(f"{name:8} next token {int(full.argmax())} with the context, {int(reduced.argmax())} "
              f"patched without it; L∞ {(full - reduced).abs().max():.2g}; "
              f"{statistics.median(seconds[name]):.4f} s")
    theirs, ours = results["hooks"][2], results["kernels"][2]
    assert theirs.keys() == ours.keys()
    apart = max((a - b).abs().max().item() / a.abs().max().item()
                for key in ours for a, b in zip(theirs[key], ours[key]))
    print(f"{2 * len(ours)} factors, {apart:.2g} apart, of their largest entry")
    plain = model(torch.tensor([[token]])).logits[0, -1]
    print(f"unpatched without the context: next token {int(plain.argmax())}, "
          f"L∞ {(plain - results['hooks'][0]).abs().max():.2f}")


if __name__ == "__main__":
    main()
