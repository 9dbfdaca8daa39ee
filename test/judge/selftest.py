#!/usr/bin/env python3
"""Tests the judge itself: correct patches made in plain torch pass, damaged ones fail.

  selftest.py [GOLDENS]     the tiny checkpoints, by default test/goldens

The patches here are the simplest exact ones: the outer matrix absorbs everything; if a norm follows it, the matrix
and the norm's scale do ("balanced"); in a mixture, the outer matrix of each selected expert does. They are made
from the judge's own reduced run, which is itself compared with transformers' masks: leaving tokens out has the same
effect as hiding them as padding.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

import judge
import torch
import transformers
from safetensors.torch import load_file, save_file

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
FAMILIES = ("llama", "llama3-rope", "llama-bias", "falcon", "gemma3", "gemma3-mixed", "gemma2",
            "gpt2", "gpt2-bare", "gptj", "cohere", "cohere-norms", "olmo2", "phi3", "mixtral",
            "mixtral-sharded", "mixtral-fused")
# No kept tokens; contiguous ones; and with gaps wider than the windows of 5 to 9.
KEPT = ([], [0, 1, 2, 3], [1, 4, 9, 17, 21])


@contextlib.contextmanager
def recorded(module):
    """The last position's input and output of `module` in the last run inside the context."""
    record = {}

    def hook(_, inputs, output):
        output = output[0] if isinstance(output, tuple) else output
        record["input"], record["output"] = inputs[0][0, -1], output[0, -1]

    handle = module.register_forward_hook(hook)
    try:
        yield record
    finally:
        handle.remove()


OUTER = {"falcon": "mlp.dense_4h_to_h", "gpt2": "mlp.c_proj", "gptj": "mlp.fc_out"}


def blocks_path(model):
    return "transformer.h" if model.config.model_type in OUTER else "model.layers"


def layers(model):
    """(name of the outer weight, block, outer matrix, post-norm or None) of each layer."""
    outer = OUTER.get(model.config.model_type, "mlp.down_proj")
    base = blocks_path(model)
    return [(f"{base}.{i}.{outer}.weight", block, block.get_submodule(outer),
             getattr(block, "post_feedforward_layernorm", None))
            for i, block in enumerate(model.get_submodule(base))]


def full_targets(model, tokens):
    """T_C of each layer: the block outputs at the last position of the full run."""
    with contextlib.ExitStack() as stack:
        records = [stack.enter_context(recorded(block))
                   for block in model.get_submodule(blocks_path(model))]
        judge.full_run(model, tokens)
        return [record["output"] for record in records]


def expert_patch(model, tokens, kept):
    """The same for Mixtral: the outer matrix of every expert that the reduced run selects absorbs the whole
    difference, since the experts' weights sum to one."""
    tensors, deltas = {}, {}
    for i, target in enumerate(full_targets(model, tokens)):
        selected = {}
        cache = judge.kept_cache(model, tokens, kept)
        with judge.patched(model, deltas) as now:
            block = now.model.layers[i]
            with recorded(block) as whole, recorded(block.mlp) as mixture:
                judge.last_token(now, tokens, kept, cache, selected)
        bank = model.model.layers[i].mlp.experts
        for e in selected[f"model.layers.{i}.mlp.gate"]:
            gate, up = (bank.gate_up_proj[e].detach() @ mixture["input"]).chunk(2)
            h = bank.act_fn(gate) * up
            u, v = (target - whole["output"])[:, None], (h / h.dot(h))[:, None]
            name = f"model.layers.{i}.block_sparse_moe.experts.{e}.w2.weight"
            fused = f"model.layers.{i}.mlp.experts.down_proj"
            if fused in judge.stored_shapes(model.name_or_path):
                name = f"{fused}[{e}]"
                deltas.setdefault(fused, torch.zeros(bank.down_proj.shape))[e] = u @ v.T
            else:
                deltas[name] = u @ v.T
            tensors[name + ".u"], tensors[name + ".v"] = u.contiguous(), v.contiguous()
    return tensors


def exact_patch(model, tokens, kept):
    """The tensors of a patch, layer by layer, each computed from the output of the layers patched before."""
    if model.config.model_type == "mixtral":
        return expert_patch(model, tokens, kept)
    tensors, deltas = {}, {}
    for (name, block, outer, norm), target in zip(layers(model), full_targets(model, tokens)):
        with recorded(block) as whole, recorded(outer) as matrix:
            with recorded(norm if norm is not None else outer) as branch:
                judge.reduced_run(model, tokens, kept, deltas)
        h, wanted = matrix["input"], target - whole["output"]
        if norm is not None:
            # g = m' * n, where |n| is chosen such that m' is smallest; W_down gives the direction
            # n. Where g is zero, so is n, and the scale does not change.
            g, d = branch["output"] + wanted, matrix["output"]
            power = d.square().mean()
            eps = getattr(norm, "eps", None) or norm.variance_epsilon
            rho = power / (power + eps)
            m = norm.weight.data + (1 if "gemma" in model.config.model_type else 0)
            n = torch.sqrt(rho * g.abs() / g.abs().mean()) * torch.where(g * m < 0, -1.0, 1.0)
            scale_name = name.replace("mlp.down_proj", "post_feedforward_layernorm")
            deltas[scale_name] = tensors[scale_name + ".delta"] = torch.where(g == 0, 0, g / n - m)
            wanted = n * torch.sqrt(power + eps) - d
        u, v = wanted[:, None].contiguous(), (h / h.dot(h))[:, None].contiguous()
        if isinstance(outer, transformers.pytorch_utils.Conv1D):  # stored as (in, out)
            u, v = v, u
        tensors[name + ".u"], tensors[name + ".v"] = u, v
        deltas[name] = u @ v.T
    return tensors


def write_patch(path, tensors, tokens, kept, changes=None):
    entries = {"format_version": "1", "model_hash": "selftest", "update": "selftest",
               "dtype": "f32", "tokens": ",".join(map(str, tokens)),
               "position": str(len(tokens) - 1), "kept": ",".join(map(str, kept))}
    save_file(tensors, path, metadata=entries | (changes or {}))


def run_judge(*args):
    """(exit code, parsed lines of standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = judge.main([str(arg) for arg in args])
    return code, [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue()


class JudgeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "patch.safetensors"

    def load(self, family):
        directory = GOLDENS / family
        tokens = load_file(directory / "golden.safetensors")["tokens"].tolist()
        return directory, judge.load_checkpoint(directory), tokens

    def test_full_run_is_the_golden(self):
        for family in FAMILIES:
            directory, model, tokens = self.load(family)
            golden = load_file(directory / "golden.safetensors")["logits"][-1]
            torch.testing.assert_close(judge.full_run(model, tokens), golden, atol=1e-4, rtol=0)

    def test_everything_kept_is_the_full_run(self):
        for family in FAMILIES:
            _, model, tokens = self.load(family)
            everything = judge.reduced_run(model, tokens, list(range(len(tokens) - 1)), {})
            torch.testing.assert_close(everything, judge.full_run(model, tokens), atol=1e-4, rtol=0)

    def test_gaps_are_hidden_tokens(self):
        for family in FAMILIES:
            _, model, tokens = self.load(family)
            for kept in KEPT[1:]:
                shown = torch.zeros(1, len(tokens), dtype=torch.long)
                shown[0, kept + [len(tokens) - 1]] = 1
                with torch.no_grad():
                    hidden = model(torch.tensor([tokens]), attention_mask=shown, use_cache=False,
                                   position_ids=torch.arange(len(tokens))[None]).logits[0, -1]
                reduced = judge.reduced_run(model, tokens, kept, {})
                torch.testing.assert_close(reduced, hidden, atol=1e-4, rtol=0)

    def test_right_patches_pass(self):
        for family in FAMILIES:
            directory, model, tokens = self.load(family)
            for kept in KEPT:
                write_patch(self.file, exact_patch(model, tokens, kept), tokens, kept)
                code, lines, _ = run_judge(directory, self.file)
                print(f"{family:13} kept {kept!s:20} patched {lines[0]['linf_patched']:.1e} "
                      f"control {lines[0]['linf_control']:.1f}")
                self.assertEqual(code, 0, (family, kept, lines))

    def test_wrong_patches_fail(self):
        for family in ("llama", "falcon", "gemma3", "mixtral"):
            directory, model, tokens = self.load(family)
            right = exact_patch(model, tokens, [])
            first = next(iter(right))
            for what, wrong in {
                "none": {},
                "scaled": right | {first: right[first] * 1.01},
                "negated": right | {first: -right[first]},
                "not a number": right | {first: right[first] * float("nan")},
            }.items():
                write_patch(self.file, wrong, tokens, [])
                code, lines, _ = run_judge(directory, self.file)
                self.assertEqual((code, lines[0]["pass"]), (1, False), (family, what, lines))

    def test_a_stored_expert_is_its_slice_of_the_model(self):
        for family in ("mixtral", "mixtral-sharded"):
            _, model, _ = self.load(family)
            name = "model.layers.1.block_sparse_moe.experts.3."
            deltas = {name + "w1.weight": torch.full((22, 33), 0.5),
                      name + "w3.weight": torch.full((22, 33), -0.25),
                      name + "w2.weight": torch.full((33, 22), 2.0)}
            fused = {"gate_up_proj": torch.cat([deltas[name + "w1.weight"],
                                                deltas[name + "w3.weight"]]),
                     "down_proj": deltas[name + "w2.weight"]}
            with judge.patched(model, deltas) as other, torch.no_grad():
                for key, before in model.named_parameters():
                    change = other.get_parameter(key) - before
                    module, _, last = key.rpartition(".")
                    if module == "model.layers.1.mlp.experts":
                        torch.testing.assert_close(change[3], fused[last], atol=1e-6, rtol=0)
                        change[3] = 0
                    self.assertFalse(change.any(), key)

    def test_runs_that_select_different_experts(self):
        directory, model, tokens = self.load("mixtral")
        write_patch(self.file, exact_patch(model, tokens, []), tokens, [])
        code, lines, _ = run_judge(directory, self.file, "--routed-apart")
        # Only the outer matrices are patched, which is right although the patched run selects other
        # experts.
        self.assertEqual((code, lines[0]["mixtures"]), (0, 2), lines)
        self.assertGreater(lines[0]["routed_apart_patched"], 0)
        self.assertGreater(lines[0]["routed_apart_control"], 0)
        directory, model, tokens = self.load("llama")
        write_patch(self.file, exact_patch(model, tokens, []), tokens, [])
        self.assertEqual(run_judge(directory, self.file, "--routed-apart")[0], 1)

    def test_patch_of_another_context_fails(self):
        directory, model, tokens = self.load("llama")
        patch = exact_patch(model, tokens, [])
        write_patch(self.file, patch, [tokens[0] ^ 1] + tokens[1:], [])
        self.assertEqual(run_judge(directory, self.file)[0], 1)
        write_patch(self.file, patch, tokens, [1])
        self.assertEqual(run_judge(directory, self.file)[0], 1)

    def test_control_must_differ(self):
        directory, model, tokens = self.load("llama")
        write_patch(self.file, {}, tokens[:1], [])
        code, lines, _ = run_judge(directory, self.file)
        self.assertEqual((code, lines[0]["linf_patched"]), (1, 0.0))

    def test_bad_files(self):
        directory, model, tokens = self.load("llama")
        right = exact_patch(model, tokens, [])
        first, second = list(right)[:2]
        half = {key: value for key, value in right.items() if key != second}
        cases = [
            ({"model.layers.9.mlp.down_proj.weight.delta": torch.zeros(2)}, {}, "names no parameter"),
            ({first[:-2]: torch.zeros(2)}, {}, "names no parameter"),
            (half, {}, "beside it"),
            ({first: right[second], second: right[first]}, {}, "expected [54, 62]"),
            (right | {first[:-1] + "delta": torch.zeros(54, 62)}, {}, "patched twice"),
            (right, {"position": "3"}, "position"),
            (right, {"tokens": "1,x"}, "comma-separated"),
            (right, {"tokens": ",".join(["97"] * len(tokens))}, "vocabulary"),
            (right, {"kept": "5,2"}, "ascending"),
            (right, {"kept": "23"}, "before the last"),
        ]
        for tensors, changes, message in cases:
            write_patch(self.file, tensors, tokens, [], changes)
            code, _, error = run_judge(directory, self.file)
            self.assertEqual(code, 2, (changes, error))
            self.assertIn(message, error)
        self.file.write_bytes(b"not safetensors")
        self.assertEqual(run_judge(directory, self.file)[0], 2)

    def test_bad_slices(self):
        directory, model, tokens = self.load("mixtral-fused")
        bank = "model.layers.0.mlp.experts.down_proj"
        for name, shape, message in [
            (bank + "[5]", (33, 22), "names no parameter"),
            (bank + "[x]", (33, 22), "names no parameter"),
            ("model.norm.weight[1]", (), "names no parameter"),
            (bank + "[4]", (22, 33), "expected [33, 22]"),
            (bank, (33, 22), "expected [5, 33, 22]"),
        ]:
            write_patch(self.file, {name + ".delta": torch.zeros(shape)}, tokens, [])
            code, _, error = run_judge(directory, self.file)
            self.assertEqual(code, 2, error)
            self.assertIn(message, error)

    def test_batch(self):
        directory, model, tokens = self.load("llama")
        wrong = self.file.with_name("wrong.safetensors")
        write_patch(self.file, exact_patch(model, tokens, []), tokens, [])
        write_patch(wrong, {}, tokens, [])
        batch = self.file.with_name("batch.json")
        batch.write_text(json.dumps([str(self.file), str(wrong), str(self.file)]))
        code, lines, _ = run_judge(directory, "--batch", batch)
        # The third patch shows that a patch leaves the weights unchanged.
        self.assertEqual((code, [line["pass"] for line in lines]), (1, [True, False, True]))
        self.assertEqual(lines[0]["linf_patched"], lines[2]["linf_patched"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("goldens", nargs="?", type=Path, default=GOLDENS, metavar="GOLDENS")
    args, rest = parser.parse_known_args()
    GOLDENS = args.goldens
    torch.set_num_threads(1)
    unittest.main(argv=[sys.argv[0]] + rest)
