"""ctxc.hf on live modules of transformers.

  live_test.py GOLDENS [TEST…]

For each checkpoint the module itself is the judge: its run of all tokens, its run of the last token with the patch, and
without. With CTXC_KERNEL_OPT=3, as every night, of all checkpoints; else of some that cover every mechanism.
"""

import contextlib
import io
import os
import pickle
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "judge"))

import adapters
import ctxc
import ctxc.hf
import gguf_models
import judge
import torch
import transformers
from ctxc import _live_patch

GOLDENS = Path(sys.argv[1])
TOKENS = [5, 17, 3, 60, 22, 41, 9, 33, 12, 71, 2, 6]
# Post-norms; Conv1D's transposed matrices; positions of OPT and its biases; slopes; attention beside the MLP;
# experts in banks, by name and as mxfp4 stores them; latent attention; an encoder.
SOME = ("gemma3", "gpt2", "gpt2-bare", "opt", "bloom", "falcon", "gpt-oss", "mixtral", "qwen3-moe-fused", "deepseek-v3",
        "bert", "cohere", "llama")


def names():
    every = sorted(folder.name for folder in GOLDENS.iterdir() if (folder / "golden.safetensors").exists())
    return every if os.environ.get("CTXC_KERNEL_OPT") == "3" else [name for name in every if name in SOME]


def bits(module):
    return {name: (tensor.data_ptr(), tensor.detach().clone()) for name, tensor in module.state_dict(keep_vars=True).items()}


class Live(unittest.TestCase):
    def same(self, module, before):
        for name, (address, tensor) in before.items():
            now = module.state_dict(keep_vars=True)[name]
            self.assertEqual(now.data_ptr(), address, name)
            self.assertTrue(torch.equal(now, tensor), name)

    @torch.no_grad()
    def test_heads(self):
        """What heads carry, by the module itself: with the head's own input of the full run in the place of its own, the matrix
        gives what it lacks less the head's part."""
        for name in ("llama", "gemma3", "gpt2", "mixtral"):
            with self.subTest(name=name):
                module = judge.load_checkpoint(GOLDENS / name).eval()
                shares = ctxc.hf.heads(module, TOKENS, keep="none")
                first, linear = next((n, m) for n, m in module.named_modules() if n == sorted(shares)[0])
                seen = []
                handle = linear.register_forward_pre_hook(lambda _, args: seen.append(args[0][0, -1].clone()))
                module(torch.tensor([TOKENS]))
                module(torch.tensor([TOKENS[-1:]]))  # the first layer reads the token itself in both runs
                handle.remove()
                count = module.config.num_attention_heads
                width = len(seen[0]) // count
                whole = linear(seen[0]) - linear(seen[1])
                for head in range(count):
                    mixed = seen[1].clone()
                    mixed[head * width:(head + 1) * width] = seen[0][head * width:(head + 1) * width]
                    part = linear(mixed) - linear(seen[1])
                    self.assertAlmostEqual(float(part @ whole / (whole @ whole)), shares[first][head], places=4)
                self.assertTrue(all(abs(each.sum() - 1) < 1e-6 for each in shares.values()))

    @torch.no_grad()
    def test_growing(self):
        """One patch grows with the text that the module writes: each token is what the module says behind the context, and in the
        end the same patch gives the whole text again."""
        for name in ("llama", "gemma3", "gpt2", "mixtral", "phi", "gpt-oss", "deepseek-v3"):
            for dtype, keep in ((torch.float32, "none"), (torch.float32, [0]), (torch.bfloat16, [0])):
                with self.subTest(name=name, dtype=dtype, keep=keep):
                    module = judge.load_checkpoint(GOLDENS / name).eval().to(dtype)
                    before, text = bits(module), []
                    for token, patch in ctxc.hf.generate(module, None, TOKENS, tokens=8, keep=keep, joint=True):
                        text.append(token)
                    self.same(module, before)
                    self.assertEqual(patch.text, [TOKENS[-1], *text[:-1]])
                    self.assertEqual(patch.prefix, [] if keep == "none" else TOKENS[:1])
                    full = module(torch.tensor([TOKENS + text[:-1]])).logits[0, -8:].float()
                    own = torch.tensor([patch.prefix + patch.text])
                    plain = module(own).logits[0, -8:].float()
                    with patch:
                        found = module(own).logits[0, -8:].float()
                        with self.assertRaisesRegex(ctxc.Mismatch, "patched already"), patch:
                            pass
                    control = float((plain - full).abs().max())
                    self.assertGreater(control, 1)
                    self.assertLess(float((found - full).abs().max()), control * (1e-3 if dtype == torch.float32 else 0.2))
                    if dtype == torch.float32:
                        self.assertEqual(text, full.argmax(-1).tolist())
                    self.assertEqual(patch.rank, 8)

    @torch.no_grad()
    def test_growing_refused(self):
        module = judge.load_checkpoint(GOLDENS / "llama").eval()
        with self.assertRaisesRegex(ctxc.BadInput, "exact for at most as many tokens"):
            list(ctxc.hf.generate(module, None, TOKENS, tokens=1000, joint=True, keep="none"))
        with self.assertRaisesRegex(ctxc.BadInput, "factored=False"):
            list(ctxc.hf.generate(module, None, TOKENS, joint=True, factored=False))
        with self.assertRaisesRegex(ctxc.Mismatch, "dropout|drops"):
            dropping = judge.load_checkpoint(GOLDENS / "gpt2").train()
            for each in dropping.modules():
                if isinstance(each, torch.nn.Dropout):
                    each.p = 0.1
            list(ctxc.hf.generate(dropping, None, TOKENS, joint=True, self_check=False))

    @torch.no_grad()
    def test_compared(self):
        """A module that computes something else than its configuration says is refused before its first context."""
        def doubled(_, given, made):
            return made * 2
        for name in ("llama", "gpt2", "mixtral"):
            module = judge.load_checkpoint(GOLDENS / name).eval()
            last = [each for each in module.modules() if isinstance(each, (torch.nn.Linear, transformers.pytorch_utils.Conv1D))][-2]
            hook = last.register_forward_hook(doubled)
            with self.subTest(name), self.assertRaisesRegex(ctxc.Mismatch, "was not read rightly: of 7 tokens a logit differs"):
                ctxc.Context(ctxc.from_module(module), TOKENS)
            with self.subTest(name):
                ctxc.Context(ctxc.from_module(module, self_check=False), TOKENS)
                hook.remove()
                ctxc.Context(ctxc.from_module(module), TOKENS)
                ctxc.Context(ctxc.from_module(module.bfloat16()), TOKENS)
                self.assertFalse(module.training)

    def test_every_family(self):
        for name in names():
            with self.subTest(name):
                module = judge.load_checkpoint(GOLDENS / name).eval()
                before = bits(module)
                model = ctxc.hf.from_module(module)
                self.assertEqual(model.copied, [])
                patch = ctxc.Context(model, TOKENS).patch()
                full = module(torch.tensor([TOKENS])).logits[0, -1]
                patched = ctxc.hf.patched_logits(module, patch)
                control = module(torch.tensor([TOKENS[-1:]])).logits[0, -1]
                error = (patched - full).abs().max().item()
                self.assertLessEqual(error, 1e-3)
                self.assertGreater((control - full).abs().max().item(), 100 * error)
                beside = ctxc.hf.patched_logits(module, patch, factored=True)
                self.assertLessEqual((beside - full).abs().max().item(), 1e-3)
                self.same(module, before)
                self.assertFalse(model.is_stale)

    @torch.no_grad()
    def test_kept_tokens(self):
        module = judge.load_checkpoint(GOLDENS / "llama").eval()
        patch = ctxc.Context(ctxc.hf.from_module(module), TOKENS, keep=[0, 1, 2]).patch()
        full = module(torch.tensor([TOKENS])).logits[0, -1]
        self.assertLessEqual((ctxc.hf.patched_logits(module, patch) - full).abs().max().item(), 1e-3)

    @torch.no_grad()
    def test_a_patch_of_the_files_fits_the_module(self):
        patch = ctxc.Context(ctxc.load(GOLDENS / "gpt2-bare"), TOKENS).patch()
        module = judge.load_checkpoint(GOLDENS / "gpt2-bare").eval()
        full = module(torch.tensor([TOKENS])).logits[0, -1]
        self.assertLessEqual((ctxc.hf.patched_logits(module, patch) - full).abs().max().item(), 1e-3)

    def test_an_exception_undoes_it(self):
        module = judge.load_checkpoint(GOLDENS / "llama").eval()
        before = bits(module)
        patch = ctxc.Context(ctxc.hf.from_module(module), TOKENS).patch()
        with self.assertRaisesRegex(RuntimeError, "inside"), ctxc.hf.patched(module, patch):
            self.assertFalse(torch.equal(module.state_dict()["model.layers.0.mlp.down_proj.weight"],
                                         before["model.layers.0.mlp.down_proj.weight"][1]))
            raise RuntimeError("inside")
        self.same(module, before)
        self.assertEqual(len(module._forward_pre_hooks), 0)

    @torch.no_grad()
    def test_other_tokens_are_refused(self):
        module = judge.load_checkpoint(GOLDENS / "llama").eval()
        patch = ctxc.Context(ctxc.hf.from_module(module), TOKENS).patch()
        with ctxc.hf.patched(module, patch):
            with self.assertRaisesRegex(ctxc.Mismatch, r"expected \[\[6\]\]: the patch is exact for this token at position 11"):
                module(torch.tensor([[7]]))
        own = torch.tensor([TOKENS[-1:]])
        with ctxc.hf.patched(module, patch):
            at_its_place = module(own).logits
            with self.assertRaisesRegex(ctxc.Mismatch, r"found positions \[\[3\]\], expected \[\[11\]\]"):
                module(own, position_ids=torch.tensor([[3]]))
        with ctxc.hf.patched(module, patch, anyway=True):
            module(torch.tensor([[7]]))
            self.assertTrue(torch.equal(module(own).logits, at_its_place))
            module(own, position_ids=torch.tensor([[3]]))
        stored = pickle.loads(pickle.dumps(patch))  # which no longer knows its module
        with self.assertRaisesRegex(ctxc.Mismatch, "no such parameter|has shape"):
            with ctxc.hf.patched(judge.load_checkpoint(GOLDENS / "gpt2"), stored):
                pass

    @torch.no_grad()
    def test_a_changed_module_is_stale(self):
        module = judge.load_checkpoint(GOLDENS / "llama").eval()
        model = ctxc.hf.from_module(module)
        context = ctxc.Context(model, TOKENS)
        module.model.layers[0].mlp.up_proj.weight.mul_(2)
        self.assertTrue(model.is_stale)
        for work in (context.patch, lambda: ctxc.Context(model, TOKENS), lambda: ctxc.verify(model, TOKENS)):
            with self.assertRaisesRegex(ctxc.Mismatch, "written to since"):
                work()
        model = ctxc.from_module(module)
        module.model.layers[1].mlp.up_proj.weight = torch.nn.Parameter(module.model.layers[1].mlp.up_proj.weight.clone())
        self.assertTrue(model.is_stale)

    @torch.no_grad()
    def test_a_patch_of_another_module_is_refused(self):
        module, same, other = (judge.load_checkpoint(GOLDENS / "llama").eval() for _ in range(3))
        other.model.layers[0].mlp.up_proj.weight.mul_(2)
        patch = ctxc.Context(ctxc.from_module(module), TOKENS).patch()
        with ctxc.hf.patched(same, patch):
            pass
        for each in (patch, patch * 2.0, patch + patch):
            with self.assertRaisesRegex(ctxc.Mismatch, "of another module, with other weights"):
                with ctxc.hf.patched(other, each):
                    pass
        with ctxc.hf.patched(other, patch, anyway=True):
            pass
        other.model.layers[0].mlp.up_proj.weight.mul_(0.5)
        with ctxc.hf.patched(other, patch):
            pass

    @torch.no_grad()
    def test_what_is_copied_is_said(self):
        module = judge.load_checkpoint(GOLDENS / "llama").eval()
        weight = module.model.layers[0].mlp.up_proj.weight
        weight.data = weight.data.T.contiguous().T
        with self.assertLogs("ctxc", "INFO") as said:
            model = ctxc.from_module(module)
        self.assertEqual(model.copied, ["model.layers.0.mlp.up_proj.weight"])
        self.assertIn("copied 1 of", said.output[0])
        patch = ctxc.Context(model, TOKENS).patch()
        full = module(torch.tensor([TOKENS])).logits[0, -1]
        self.assertLessEqual((ctxc.hf.patched_logits(module, patch) - full).abs().max().item(), 1e-3)

    @torch.no_grad()
    def test_a_gguf_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            gguf_models.write_model(path, "llama", 1)
            model = ctxc.load(path)
            self.assertTrue(ctxc.verify(model, TOKENS, generate=3).verified)
            patch = ctxc.Context(model, TOKENS).patch()
            patch.save(Path(folder) / "patch.safetensors")
            self.assertTrue(ctxc.verify(model, patch=ctxc.Patch.load(Path(folder) / "patch.safetensors")).verified)

    @torch.no_grad()
    def test_generate_takes_a_text(self):
        folder = GOLDENS.parents[1] / "examples/models/gemma3-kjv-1m"
        module = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        ids = tokenizer("And David said unto Saul")["input_ids"]
        made = list(ctxc.hf.generate(module, tokenizer, "And David said unto Saul", tokens=3))
        whole = module.generate(torch.tensor([ids]), max_new_tokens=3, do_sample=False)[0].tolist()
        self.assertEqual(ids + [token for token, _ in made], whole)

    def test_the_page_runs(self):
        """What docs/python.md says about live modules."""
        folder = GOLDENS.parents[1] / "examples/models/gemma3-kjv-1m"
        names = {"hf_model": transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval(),
                 "tokenizer": transformers.AutoTokenizer.from_pretrained(folder)}
        page = (GOLDENS.parents[1] / "docs/python.md").read_text()
        section = page.split("## Live models of transformers")[1].split("Meanwhile, hooks")[0]
        blocks = section.split("```")[1::2]
        self.assertTrue(blocks)
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            for block in blocks:
                exec(block, names)
        ids = names["tokenizer"]("And David said unto Saul")["input_ids"]
        full = names["hf_model"](torch.tensor([ids])).logits[0, -1]
        self.assertLess((names["logits"][0, -1] - full).abs().max().item(), 1e-3)
        self.assertGreater(len(written.getvalue()), 20)

    @torch.no_grad()
    def test_sixteen_bits(self):
        for dtype, allowed in ((torch.bfloat16, 0.1), (torch.float16, 0.02)):
            module = judge.load_checkpoint(GOLDENS / "llama").to(dtype).eval()
            patch = ctxc.Context(ctxc.hf.from_module(module), TOKENS).patch()
            full = module(torch.tensor([TOKENS])).logits[0, -1].float()
            control = module(torch.tensor([TOKENS[-1:]]), position_ids=torch.tensor([[11]])).logits[0, -1].float()
            for factored in (False, True):
                with self.subTest(dtype=dtype, factored=factored):
                    error = (ctxc.hf.patched_logits(module, patch, factored=factored).float() - full).abs().max().item()
                    self.assertLessEqual(error, allowed * (control - full).abs().max().item())

    def test_torch_takes_the_arrays_as_they_are(self):
        patch = ctxc.Context(ctxc.load(GOLDENS / "llama"), TOKENS).patch()
        u = patch["model.layers.0.mlp.down_proj.weight"].u
        self.assertEqual(torch.from_dlpack(u).data_ptr(), u.ctypes.data)

    @torch.no_grad()
    def test_generate_is_greedy(self):
        module = judge.load_checkpoint(GOLDENS / "gemma3").eval()
        found = [token for token, patch in ctxc.hf.generate(module, None, TOKENS, tokens=6)]
        ids = list(TOKENS)
        for _ in range(6):
            ids.append(int(module(torch.tensor([ids])).logits[0, -1].argmax()))
        self.assertEqual(found, ids[len(TOKENS):])

    def test_adapters_are_judged_by_peft(self):
        for name, options in [("llama", {}), ("gpt2", {"parameters": ["mlp.c_fc", "mlp.c_proj"]})]:
            with self.subTest(name), tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                model = ctxc.load(GOLDENS / name, **options)
                patch = ctxc.Context(model, TOKENS).patch()
                patch.to_peft(folder / "made")
                error, control = adapters.peft_logits(GOLDENS / name, folder / "made")
                self.assertLessEqual(error, 1e-3)
                self.assertGreater(control, 100 * error)
                patch.save(folder / "patch.safetensors")
                again = ctxc.Patch.load(folder / "patch.safetensors")
                with self.assertRaisesRegex(ctxc.BadInput, "give the model"):
                    again.to_peft(folder / "again")
                again.to_peft(folder / "again", model=model)
                made, again = (judge.load_file(folder / each / "adapter_model.safetensors") for each in ("made", "again"))
                self.assertTrue(all(torch.equal(made[key], again[key]) for key in made.keys() | again.keys()))
                with self.assertRaisesRegex(ctxc.BadInput, "already exists"):
                    patch.to_peft(folder / "made")
                patch.to_gguf_lora(folder / "lora.gguf")
                self.assertEqual(adapters.gguf_problem(GOLDENS / name, folder / "lora.gguf",
                                                       folder / "patch.safetensors"), "")

    @torch.no_grad()
    def test_factored_patches_are_not_rounded_to_the_weights_type(self):
        # The frequencies of its rotation were rounded too, so that it is not quite what its configuration says.
        exact = judge.load_checkpoint(GOLDENS / "llama").to(torch.bfloat16).float().eval()
        patch = ctxc.Context(ctxc.hf.from_module(exact, self_check=False), TOKENS).patch()
        module = judge.load_checkpoint(GOLDENS / "llama").to(torch.bfloat16).eval()
        weight = module.model.layers[0].mlp.down_proj.weight
        with ctxc.hf.patched(module, patch, factored=True):
            self.assertTrue(torch.equal(weight, exact.model.layers[0].mlp.down_proj.weight.to(torch.bfloat16)))
            self.assertEqual(len(module.model.layers[0].mlp.down_proj._forward_hooks), 1)
        self.assertEqual(len(module.model.layers[0].mlp.down_proj._forward_hooks), 0)
        z = torch.randn(1, 1, weight.shape[1])
        change = patch["model.layers.0.mlp.down_proj.weight"]
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        with torch.no_grad():
            layer.weight.copy_(weight.float())
        layer.register_forward_hook(_live_patch.beside(layer, change))
        self.assertLess((layer(z) - z @ (weight.double() + torch.tensor(change.dense())).float().T).abs().max(), 1e-4)

    @torch.no_grad()
    def test_bfloat16_by_pointer(self):
        module = judge.load_checkpoint(GOLDENS / "llama").to(torch.bfloat16).eval()
        model = ctxc.hf.from_module(module)
        self.assertEqual(model.copied, [])
        self.assertTrue(ctxc.verify(model, TOKENS).verified)


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
