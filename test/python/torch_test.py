"""ctxc.torch, the plan carried out in PyTorch, on live modules of transformers.

  torch_test.py GOLDENS

The kernels judge it in float32, and the reference in float64. With CTXC_KERNEL_OPT=3, as every night, every checkpoint
is run; else some that cover every mechanism.
"""

import os
import re
import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "judge"), str(Path(__file__).parents[2] / "examples/07-pytorch-modules")]

import ctxc
import ctxc.hf
import ctxc.torch
import judge
import modules
import numpy as np
import torch
import transformers

GOLDENS = Path(sys.argv[1])
TOKENS = [5, 17, 3, 60, 22, 41, 9, 33, 12, 71, 2, 6]
SOME = ("gemma3", "gpt2", "gpt2-bare", "opt", "bloom", "falcon", "gpt-oss", "mixtral", "qwen3-moe-fused", "deepseek-v3",
        "bert", "cohere", "llama")
UPDATES = re.findall(r'"(\w+)"', dict(ctxc._core.load_options())["update"])
POST_NORMS = ("gemma2", "gemma3", "olmo2")


def names():
    every = sorted(folder.name for folder in GOLDENS.iterdir() if (folder / "golden.safetensors").exists())
    return every if os.environ.get("CTXC_KERNEL_OPT") == "3" else [name for name in every if name in SOME]


def module_of(name):
    return judge.load_checkpoint(GOLDENS / name).eval()


def apart(found, expected):
    """The largest ‖difference‖ / ‖expected‖ of a factor. A vector may absorb nothing but the roundings of the ops
    before it, which are not the same: up to 1e-6 for each entry do not count."""
    largest = 0.0
    for name, each in expected.items():
        for part in ("u", "v", "delta"):
            a, b = getattr(found[name], part), getattr(each, part)
            if b is None:
                continue
            rounding = 1e-6 * b.size ** 0.5 if part == "delta" else 0.0
            largest = max(largest, (np.linalg.norm(a - b) - rounding) / max(np.linalg.norm(b), 1e-30))
    return largest


class Torch(unittest.TestCase):
    def test_every_family_by_the_kernels(self):
        for name in names():
            with self.subTest(name):
                model = ctxc.hf.from_module(module_of(name))
                ours, theirs = ctxc.torch.Context(model, TOKENS), ctxc.Context(model, TOKENS)
                found, expected = ours.patch(), theirs.patch()
                self.assertEqual(list(found), list(expected))
                self.assertEqual((found.origin, found.full_next), (expected.origin, expected.full_next))
                self.assertLessEqual(apart(found, expected), 1e-4)
                full = ours.logits()
                self.assertLessEqual(np.abs(full.numpy() - theirs.logits()).max(), 1e-4)
                self.assertLessEqual((ours.logits(found) - full).abs().max(), 1e-4)
                self.assertEqual(ours.harmful, 0)
                control = theirs.logits(ctxc.Patch({}, expected.origin))
                self.assertGreater(np.abs(control - full.numpy()).max(), 0.01)

    def test_every_update_by_the_reference(self):
        for name in POST_NORMS:
            for update in UPDATES:
                with self.subTest(name, update=update):
                    model = ctxc.hf.from_module(self.without_small_scales(name), update=update, engine="reference")
                    found = ctxc.torch.Context(model, TOKENS, dtype=torch.float64).patch()
                    self.assertLessEqual(apart(found, ctxc.Context(model, TOKENS).patch()), 1e-7)

    @torch.no_grad()
    def without_small_scales(self, name):
        """Stable and scaled have no exact patch where a scale is zero, as some of the goldens' are."""
        module = module_of(name)
        for key, parameter in module.named_parameters():
            if "norm" in key:
                parameter.abs_().add_(0.5)
        return module

    def test_kept_tokens(self):
        model = ctxc.hf.from_module(module_of("llama"))
        context = ctxc.torch.Context(model, TOKENS, keep=[0, 2, 5])
        patch = context.patch()
        self.assertLessEqual(apart(patch, ctxc.Context(model, TOKENS, keep=[0, 2, 5]).patch()), 1e-4)
        self.assertLessEqual((context.logits(patch) - context.logits()).abs().max(), 1e-4)

    def test_contexts_extend_and_fork(self):
        for name in ("llama", "gemma3"):
            model = ctxc.hf.from_module(module_of(name))
            context = ctxc.torch.Context(model, TOKENS[:6])
            before = context.logits()
            longer = context.fork().extend(TOKENS[6:9]).extend(TOKENS[9])
            self.assertEqual((len(context), longer.tokens), (6, TOKENS[:10]))
            whole = ctxc.torch.Context(model, TOKENS[:10])
            self.assertLessEqual((longer.logits() - whole.logits()).abs().max(), 1e-5)
            self.assertLessEqual(apart(longer.patch(), whole.patch()), 1e-4)
            self.assertTrue(torch.equal(context.logits(), before))

    def test_the_modules_weights_as_they_are_now(self):
        module = module_of("llama")
        model = ctxc.hf.from_module(module)
        context = ctxc.torch.Context(model, TOKENS)
        before = context.logits()
        with ctxc.hf.patched(module, context.patch()):
            self.assertFalse(torch.equal(context.logits(), before))
        self.assertTrue(torch.equal(context.logits(), before))

    def test_bfloat16(self):
        module = module_of("llama").to(torch.bfloat16)
        model = ctxc.hf.from_module(module)
        self.assertLessEqual(apart(ctxc.torch.Context(model, TOKENS).patch(), ctxc.Context(model, TOKENS).patch()), 1e-4)

    def test_errors_say_what_to_do(self):
        model = ctxc.hf.from_module(module_of("llama"))
        context = ctxc.torch.Context(model, TOKENS)
        encoder = ctxc.hf.from_module(module_of("bert"))
        for wrong, text in [
                (lambda: ctxc.torch.Context(model, [1]), "expected at least two"),
                (lambda: ctxc.torch.Context(model, TOKENS, keep=[11]), "expected ascending positions"),
                (lambda: ctxc.torch.Context(encoder, TOKENS, keep=[1]), "bidirectional"),
                (lambda: ctxc.torch.Context(encoder, TOKENS).extend(3), "expected a new one"),
                (lambda: context.logits(ctxc.torch.Context(encoder, TOKENS).patch()), "another model"),
        ]:
            with self.assertRaisesRegex(ctxc.Error, text):
                wrong()

    def test_an_op_without_a_meaning_is_named(self):
        model = ctxc.hf.from_module(module_of("llama"))
        silu = ctxc.torch._evaluation.MEANINGS.pop("xf.activation")
        try:
            with self.assertRaisesRegex(ctxc.BadInput, "'xf.activation': .* expected a meaning"):
                ctxc.torch.Context(model, TOKENS)
            ctxc.torch.meaning("xf.activation")(silu)
            ctxc.torch.Context(model, TOKENS)
        finally:
            ctxc.torch._evaluation.MEANINGS["xf.activation"] = silu

    def test_docstrings_are_true(self):
        import doctest

        module = module_of("llama")
        model = ctxc.hf.from_module(module)
        patch = ctxc.Context(model, TOKENS).patch()
        globs = {"ctxc": ctxc, "torch": torch, "hf_model": module, "ids": TOKENS, "model": model, "patch": patch,
                 "context": ctxc.torch.Context(model, TOKENS)}
        for each in (ctxc.hf, ctxc.torch, ctxc.torch._evaluation):
            with self.subTest(each.__name__):
                found = doctest.testmod(each, extraglobs=globs, optionflags=doctest.ELLIPSIS)
                self.assertEqual((found.failed, found.attempted > 1), (0, True))


class Ops(unittest.TestCase):
    """Ops that no family of transformers has."""

    def result(self, name, value, shape, **attributes):
        class Run:
            count, values = len(value), {0: value}
            rows = values.get
            set = values.__setitem__

        ctxc.torch._evaluation.MEANINGS[name](ctxc.torch.Op(name, [0], [1], attributes, [shape]), Run)
        self.assertEqual(tuple(Run.values[1].shape[1:]), shape)
        return Run.values[1]

    def test_entries_in_another_order(self):
        x = torch.arange(48.0).reshape(2, 2, 3, 4)
        y = self.result("xf.transpose", x, (4, 2, 3), order=[2, 0, 1])
        self.assertTrue(all(y[t, k, i, j] == x[t, i, j, k]
                            for t in range(2) for i in range(2) for j in range(3) for k in range(4)))
        y = self.result("xf.permute", x, (2, 3, 4), parts=[1, 1], order=[1, 0])
        self.assertTrue(torch.equal(y, x.flip(1)))
        y = self.result("xf.permute", x, (2, 3, 4), parts=[1, 3], order=[1, 0], along=2)
        self.assertTrue(torch.equal(y, x.roll(-1, 3)))


class Shuffled(modules.GptBlock):
    """Groups of the MLP's output exchange their entries."""

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        y = self.mlp(self.ln_2(x))
        return x + y.unflatten(-1, (4, 8)).transpose(-1, -2).flatten(-2)


class Check(unittest.TestCase):
    """ctxc.check of a module, which it exports itself."""

    def test_a_model_that_takes_ids(self):
        report = ctxc.check(modules.MODULES["nanogpt"]())
        self.assertTrue(report.patchable)
        self.assertEqual([(each["verdict"], each["layers"]) for each in report.verdicts], [("controllable", [0, 1])])
        self.assertEqual([each["parameter"] for side in ("input", "output") for each in report.plans[0][side]],
                         ["mlp.fc.weight", "mlp.proj.bias"])

    def test_a_channel_shuffle(self):
        report = ctxc.check(Shuffled(), torch.zeros(1, 13, modules.WIDTH))
        self.assertEqual([each["verdict"] for each in report.verdicts], ["controllable"])

    def test_a_rejection_stands_at_the_line_of_the_module(self):
        report = ctxc.check(*modules.MODULES["normed-branch"]())
        self.assertFalse(report.patchable)
        cause, = report.verdicts[0]["causes"]
        file, line, _ = cause["location"].rsplit(":", 2)
        self.assertEqual((cause["rule"], Path(file).name), ("bounded-output", "modules.py"))
        self.assertIn("self.last", Path(file).read_text().splitlines()[int(line) - 1])

    def test_tokens_under_another_name(self):
        class Layer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

            def forward(self, x):
                x = x + x.cumsum(1)
                return x + self.down(self.up(x).relu())

        class Small(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.wte, self.layers = torch.nn.Embedding(11, 8), torch.nn.ModuleList([Layer(), Layer()])
                self.head = torch.nn.Linear(8, 11)

            def forward(self, idx, targets=None):
                x = self.wte(idx)
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)

        self.assertTrue(ctxc.check(Small()).patchable)

    def test_inputs_that_it_cannot_take(self):
        linear = torch.nn.Linear(3, 4)
        with self.assertRaisesRegex(ctxc.BadInput, "takes input; expected tokens alone and an embedding .*, or a module and its"):
            ctxc.check(linear)
        with self.assertRaisesRegex(ctxc.BadInput, r"has the shape \(2, 4, 3\); expected \(1, tokens, …\)"):
            ctxc.check(linear, torch.zeros(2, 4, 3))
        with self.assertRaisesRegex(TypeError, "found str"):
            ctxc.check("model.ctxc", torch.zeros(1, 9, 3))


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    unittest.main(argv=sys.argv[:1])
