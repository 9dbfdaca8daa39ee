"""What people do with live modules that a patch is not exact for, or that is no module, prompt or model: each is an error or
a warning that says what to do, and none a wrong answer.

  misuse_test.py GOLDENS [TEST…]

Modules are small and random, so that none of it takes long.
"""

import contextlib
import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "judge"))

import ctxc
import ctxc.hf
import judge
import numpy as np
import peft
import torch
import transformers

GOLDENS = Path(sys.argv[1])
TOKENS = [5, 17, 3, 60, 22, 41, 9, 33, 12, 71, 2, 6]
OWN = torch.tensor([TOKENS[-1:]])


def llama():
    return judge.load_checkpoint(GOLDENS / "llama").eval()


def patch_of(module, **options):
    return ctxc.Context(ctxc.from_module(module), TOKENS, **options).patch()


def with_sink():
    """Attention rests on the first token, whose position is far longer than others."""
    module = judge.load_checkpoint(GOLDENS / "gpt2").eval()
    with torch.no_grad():
        module.transformer.wpe.weight[0] *= 200
    return module


def bits(module):
    return {name: (tensor.data_ptr(), tensor.detach().clone()) for name, tensor in module.state_dict(keep_vars=True).items()}


@torch.no_grad()
def error_of(module, patch, tokens=TOKENS, **options):
    full = module(torch.tensor([tokens])).logits[0, -1]
    return (ctxc.hf.patched_logits(module, patch, **options) - full).abs().max().item()


class Misuse(unittest.TestCase):
    def same(self, module, before):
        for name, tensor in module.state_dict(keep_vars=True).items():
            self.assertEqual(tensor.data_ptr(), before[name][0], name)
            self.assertTrue(torch.equal(tensor, before[name][1]), name)
        self.assertEqual(sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in module.modules()), 0)

    def refuses(self, kind, pattern):
        return self.assertRaisesRegex(kind, pattern)


class InsidePatched(Misuse):
    def setUp(self):
        self.module = llama()
        self.before = bits(self.module)
        self.patch = patch_of(self.module)

    def test_nested(self):
        other = ctxc.Context(ctxc.from_module(self.module), TOKENS[:-1]).patch()
        for factored in (False, True):
            with ctxc.hf.patched(self.module, self.patch, factored=factored):
                for inside in (self.module, self.module.model):
                    with self.refuses(ctxc.Mismatch, "is patched already"), ctxc.hf.patched(inside, other):
                        pass
                self.module(OWN)
                with ctxc.hf.patched(self.module, other, anyway=True), contextlib.suppress(ctxc.Mismatch):
                    self.module(OWN)
                self.module(OWN)
            self.same(self.module, self.before)
        with ctxc.hf.patched(self.module, self.patch), ctxc.hf.patched(llama(), self.patch):
            pass  # two modules

    @torch.no_grad()
    def test_a_parameter_changed_inside(self):
        layer = self.module.model.layers[0]
        new = torch.nn.Parameter(layer.mlp.up_proj.weight * 2)
        changes = {
            "written, patched": lambda: layer.mlp.down_proj.weight.add_(1),
            "written past the version": lambda: layer.mlp.down_proj.weight.data.add_(1),
            "data": lambda: setattr(layer.mlp.down_proj.weight, "data", torch.zeros_like(layer.mlp.down_proj.weight)),
            "replaced": lambda: setattr(layer.mlp, "up_proj", layer.mlp.up_proj) or setattr(layer.mlp.up_proj, "weight", new),
        }
        for factored in (False, True):
            for name, change in changes.items():
                if factored and "past" in name:
                    continue  # nothing is copied there, whose numbers could be compared
                with self.subTest(name, factored=factored):
                    if factored and name in ("written, patched", "data"):
                        change = {"data": lambda: setattr(layer.mlp.down_proj.weight, "data", layer.mlp.down_proj.weight.clone())}.get(
                            name, change)
                    held = layer.mlp.down_proj.weight.data.clone()
                    address = layer.mlp.down_proj.weight.data
                    with self.refuses(ctxc.Mismatch, "was replaced or written to while the module was patched"):
                        with ctxc.hf.patched(self.module, self.patch, factored=factored):
                            change()
                    if factored:  # the weight itself was written
                        layer.mlp.down_proj.weight.data = address
                        address.copy_(held)
                    self.same(self.module, self.before)
        with self.refuses(ctxc.Mismatch, "down_proj.weight was replaced or written to while the module is patched"):
            with ctxc.hf.patched(self.module, self.patch):
                layer.mlp.down_proj.weight.add_(1)
                self.module(OWN)
        self.same(self.module, self.before)

    def test_an_exception_is_not_hidden(self):
        with self.refuses(RuntimeError, "mine"), ctxc.hf.patched(self.module, self.patch):
            with torch.no_grad():
                self.module.model.layers[0].mlp.down_proj.weight.add_(1)
            raise RuntimeError("mine")
        self.same(self.module, self.before)

    @torch.no_grad()
    def test_dropout_in_training(self):
        for name, where, rate in (("llama", "self_attn.attention_dropout", None), ("gpt2", "p", 0.1)):
            module = judge.load_checkpoint(GOLDENS / name)
            for each in module.modules():
                if isinstance(each, torch.nn.Dropout):
                    each.p = 0.1
                elif hasattr(each, "attention_dropout"):
                    each.attention_dropout = 0.1
            patch = patch_of(module.eval())
            with self.subTest(name), ctxc.hf.patched(module, patch):
                module(OWN)
                module.train()
                with self.refuses(ctxc.Mismatch, where + ".* drops values by chance.* expected module.eval"):
                    module(OWN)
                module.eval()
        with ctxc.hf.patched(self.module.train(), self.patch):
            self.module(OWN)  # nothing is dropped
        self.module.eval()

    @torch.no_grad()
    def test_embeddings(self):
        rows = self.module.get_input_embeddings()
        with ctxc.hf.patched(self.module, self.patch):
            own = self.module(OWN).logits
            self.assertTrue(torch.equal(self.module(inputs_embeds=rows(OWN)).logits, own))
            for wrong, found in ((rows(torch.tensor([[7]])), "of another token"), (rows(torch.tensor([[6, 6]])), "of 2 tokens")):
                with self.refuses(ctxc.Mismatch, f"found inputs_embeds {found}, expected"):
                    self.module(inputs_embeds=wrong)
            with self.refuses(ctxc.Mismatch, "found neither input_ids nor inputs_embeds"):
                self.module()

    @torch.no_grad()
    def test_a_cache_of_other_tokens(self):
        cache = self.module(torch.tensor([[5, 17]]), use_cache=True).past_key_values
        with ctxc.hf.patched(self.module, self.patch):
            with self.refuses(ctxc.Mismatch, "a cache of 2 tokens, expected one of the 0"):
                self.module(OWN, past_key_values=cache)
            with self.refuses(ctxc.Mismatch, "exact for this token"):
                self.module.generate(OWN, max_new_tokens=2, do_sample=False, pad_token_id=0)

    @torch.no_grad()
    def test_kept_tokens_come_with_the_call(self):
        full = self.module(torch.tensor([TOKENS])).logits[0, -1]
        patch = patch_of(self.module, keep=[0, 1])
        with ctxc.hf.patched(self.module, patch):
            for given in ({}, {"attention_mask": torch.ones_like(OWN)}, {"use_cache": False}):
                for _ in range(2):
                    self.assertLess((self.module(OWN, **given).logits[0, -1] - full).abs().max(), 1e-3)
        self.same(self.module, self.before)

    def test_kept_tokens_outside_of_a_window(self):
        module = judge.load_checkpoint(GOLDENS / "gemma3").eval()
        with self.refuses(ctxc.Mismatch, "position 0, which the patch's run keeps, is outside of the window of 7 tokens"):
            ctxc.hf.patched_logits(module, patch_of(module, keep=[0]))
        self.assertLess(error_of(module, patch_of(module, keep=[5, 7])), 1e-3)

    def test_torch_compile(self):
        compiled = torch.compile(self.module, backend="eager")
        with torch.no_grad(), ctxc.hf.patched(compiled, self.patch):
            full = self.module(OWN).logits
            self.assertTrue(torch.equal(compiled(OWN).logits, full))
            with self.refuses(ctxc.Mismatch, "expected"):
                compiled(torch.tensor([[7]]))


class ByDefault(Misuse):
    def test_the_sink_is_kept_and_named(self):
        module = with_sink()
        model = ctxc.from_module(module)
        positions, why = model.kept_by_default(TOKENS)
        self.assertEqual(positions, [0])
        self.assertRegex(why, "no token is in front of every text, and attention rests on a run's first token, whose state after "
                              r"layer \d+ is \d+ times as long")
        context = ctxc.Context(model, TOKENS)
        self.assertEqual((context.kept, context.why_kept), ([0], why))
        self.assertEqual(context.fork().why_kept, why)
        self.assertEqual([ctxc.Context(model, TOKENS, keep=each).kept for each in ((), "none", [1])], [[], [], [1]])
        self.assertEqual(ctxc.verify(model, TOKENS).json["settings"]["kept"], [0])
        self.assertEqual(ctxc.verify(model, TOKENS, keep=()).json["settings"]["kept"], [])
        self.assertEqual(ctxc.inspect(model, TOKENS).json["settings"]["kept"], [0])
        self.assertEqual({each.origin.kept for each in ctxc.positions(model, TOKENS)}, {(0,)})
        self.assertLess(error_of(module, context.patch()), 1e-3)
        with self.refuses(ctxc.BadInput, "keep: found 'all', expected positions, or 'none'"):
            ctxc.Context(model, TOKENS, keep="all")
        self.assertEqual(model.kept_by_default(TOKENS[:2]), ([], ""))  # a patch of nothing

    def test_a_token_in_front_of_every_text(self):
        for found, tokens in (([0], TOKENS), ([], [80, *TOKENS]), ([0], [80, *TOKENS, 80])):
            module = with_sink()
            module.config.bos_token_id = 80
            self.assertEqual(ctxc.from_module(module).kept_by_default(tokens)[0], found)
        self.assertEqual(ctxc.from_module(llama()).kept_by_default(TOKENS), ([], ""))

    def test_conversations(self):
        model = ctxc.from_module(with_sink())
        self.assertEqual(model._core.kept_by_default(TOKENS, [], TOKENS[:3], None)[0], [0, 1, 2])
        self.assertEqual(model._core.kept_by_default(TOKENS, TOKENS[:1], [], None)[0], [])
        self.assertEqual(model._core.kept_by_default(TOKENS, [], TOKENS, None)[0], list(range(10)))


class Modules(Misuse):
    def test_what_is_no_module(self):
        class Pipeline:
            model = llama()
        for what, pattern in (("a/path", "str: is no module.*ctxc.load reads a path"), (Pipeline(), "expected its own: from_module"),
                              (torch.nn.Linear(2, 2), "has no config")):
            with self.refuses(ctxc.BadInput, pattern):
                ctxc.from_module(what)
        with self.refuses(ctxc.BadInput, "expected a path; ctxc.from_module"):
            ctxc.load(llama())
        for work in (ctxc.Context, ctxc.verify, ctxc.inspect, ctxc.positions):
            with self.refuses(ctxc.BadInput, "found a LlamaForCausalLM, expected a model: ctxc.from_module"):
                work(llama(), TOKENS)

    def test_meta_and_offloaded(self):
        settings = llama().config
        with torch.device("meta"):
            module = transformers.LlamaForCausalLM(settings)
        for work in (ctxc.from_module, lambda each: ctxc.hf.patched(each, patch_of(llama())).__enter__()):
            with self.refuses(ctxc.BadInput, "weight is on no device: it is not loaded, or offloaded; expected"):
                work(module)
        offloaded = llama()
        import accelerate
        accelerate.cpu_offload(offloaded.model.layers[1])
        with self.refuses(ctxc.BadInput, r"layers.1.* is on no device"):
            ctxc.from_module(offloaded)

    def test_quantised(self):
        module = llama()
        weight = module.model.layers[0].mlp.up_proj.weight
        module.model.layers[0].mlp.up_proj.weight = torch.nn.Parameter(weight.to(torch.int8), requires_grad=False)
        with self.refuses(ctxc.BadInput, "up_proj.weight is quantised .*int8.* expected a module in float32"):
            ctxc.from_module(module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dynamic = torch.ao.quantization.quantize_dynamic(llama(), {torch.nn.Linear}, dtype=torch.qint8)
        with self.refuses(ctxc.BadInput, "is quantised"):
            ctxc.from_module(dynamic)

    @torch.no_grad()
    def test_loras(self):
        """The adapter as it is: W + BA is what the patch changes."""
        for name, targets in (("llama", ["q_proj", "down_proj", "up_proj"]), ("gpt2", ["c_attn", "c_proj"])):
            for dtype, allowed in ((torch.float32, 1e-3), (torch.bfloat16, 0.6)):
                plain = judge.load_checkpoint(GOLDENS / name).to(dtype).eval()
                bare = plain(torch.tensor([TOKENS])).logits[0, -1]
                settings = peft.LoraConfig(r=2, lora_alpha=4, target_modules=targets, init_lora_weights=False, lora_dropout=0.1)
                torch.manual_seed(1)
                module = peft.get_peft_model(plain, settings).eval()
                before = bits(module)
                for each in (module, module.get_base_model()):
                    with self.subTest(name, dtype=dtype, kind=type(each).__name__):
                        model = ctxc.from_module(each)
                        self.assertTrue(model.copied)
                        patch = ctxc.Context(model, TOKENS).patch()
                        full = each(torch.tensor([TOKENS])).logits[0, -1]
                        self.assertGreater((full - bare).abs().max(), 0.1)
                        for factored in (False, True):
                            self.assertLess(error_of(each, patch, factored=factored), allowed)
                        with ctxc.hf.patched(each, patch), self.refuses(ctxc.Mismatch, "expected"):
                            each(torch.tensor([[7]]))
                        self.same(each, {key.removeprefix("" if each is module else "base_model.model."): value
                                         for key, value in before.items()})
                model = ctxc.from_module(module)
                with module.disable_adapter():
                    self.assertTrue(model.is_stale)
                    self.assertLess(error_of(module, patch_of(module)), allowed)
                self.assertFalse(model.is_stale)
        module.train()
        with ctxc.hf.patched(module, patch_of(module)), self.refuses(ctxc.Mismatch, "drops values by chance"):
            module(OWN)

    def test_adapters_that_are_no_loras(self):
        for settings, pattern in (
                (peft.LoraConfig(r=2, target_modules=["down_proj"], use_dora=True), "is not W . BA; expected a plain LoRA, or module.merge"),
                (peft.LoraConfig(r=2, target_modules=["down_proj"], modules_to_save=["lm_head"]), "two copies of it"),
                (peft.IA3Config(target_modules=["down_proj"], feedforward_modules=["down_proj"]), "is not W . BA"),
                (peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2), "tokens in front of every text")):
            with self.subTest(type(settings).__name__), self.refuses(ctxc.BadInput, pattern):
                ctxc.from_module(peft.get_peft_model(llama(), settings))


class Prompts(Misuse):
    def test_forms(self):
        model = ctxc.from_module(llama())
        encoding = transformers.BatchEncoding({"input_ids": torch.tensor([TOKENS]), "attention_mask": torch.ones(1, len(TOKENS))})
        for prompt in (tuple(TOKENS), np.array(TOKENS), torch.tensor(TOKENS), torch.tensor([TOKENS]), [TOKENS], encoding,
                       {"input_ids": TOKENS}, [torch.tensor(each) for each in TOKENS]):
            self.assertEqual(ctxc.Context(model, prompt).tokens, TOKENS)
            self.assertEqual(next(iter(ctxc.hf.generate(llama(), None, prompt, tokens=1)))[1].origin.tokens, tuple(TOKENS))

    def test_what_is_refused(self):
        model = ctxc.from_module(llama())
        padded = {"input_ids": torch.tensor([TOKENS]), "attention_mask": torch.tensor([[0] + [1] * (len(TOKENS) - 1)])}
        for prompt, pattern in ((torch.tensor([TOKENS, TOKENS]), "a batch of 2 texts, expected one"), (padded, "are padded"),
                                ([1.5, 2], "found .1.5, 2.*expected a text, ids"), (7, "expected a text or ids"),
                                ("And David", "a live module has no tokenizer; expected ids of tokens, or ctxc.from_module"),
                                ([{"role": "user", "content": "Why?"}], "from_module.module, tokenizer=tokenizer"),
                                ([{"role": "user", "content": [{"type": "text"}]}], "messages: expected a list of"),
                                ({"text": "x"}, "found a dict, expected a text")):
            with self.subTest(pattern), self.refuses(ctxc.BadInput, pattern):
                ctxc.Context(model, prompt)

    @torch.no_grad()
    def test_generation_ends(self):
        module = llama()
        made = [token for token, _ in ctxc.hf.generate(module, None, TOKENS, tokens=6)]
        self.assertEqual(len(made), 6)
        for place in (module.generation_config, module.config):
            for ends in (made[2], [made[2], 1000]):
                module.generation_config.eos_token_id = module.config.eos_token_id = None
                place.eos_token_id = ends
                found = [token for token, _ in ctxc.hf.generate(module, None, TOKENS, tokens=6)]
                self.assertEqual(found, made[:made.index(made[2]) + 1])

    def test_tensors(self):
        patch = patch_of(llama())
        for each in patch.values():
            parts = each.tensors()
            self.assertEqual([tuple(part.shape) for part in parts], [part.shape for part in (each.u, each.v, each.delta) if part is not None])
            self.assertTrue(all(part.dtype == torch.float64 for part in parts))
        self.assertEqual(parts[0].data_ptr(), (each.u if each.rank else each.delta).ctypes.data)


class Roundings(Misuse):
    def test_the_type_of_who_replays(self):
        patch = patch_of(llama())
        self.assertLess(patch.replay_error(), patch.replay_error("f16"))
        self.assertLess(patch.replay_error("f16"), patch.replay_error("bf16"))
        self.assertIsNone((patch * 2).replay_error())
        with self.refuses(ctxc.BadInput, "activations: found 'int8'"):
            patch.replay_error("int8")

    def test_a_token_alone_that_is_a_giant(self):
        model = ctxc.from_module(with_sink())
        kept, alone = (ctxc.Context(model, TOKENS, keep=each).patch() for each in (None, ()))
        self.assertLess(kept.replay_error("bf16"), 0.05)
        self.assertGreater(alone.replay_error("bf16"), 0.05)
        module = with_sink().bfloat16()
        with self.assertWarnsRegex(UserWarning, "whose activations are bf16, roundings are predicted to change layer .* by "):
            with ctxc.hf.patched(module, alone, anyway=True):
                pass

    def test_who_is_warned(self):
        module = judge.load_checkpoint(GOLDENS / "llama").bfloat16().eval()
        patch = patch_of(module)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with ctxc.hf.patched(module, patch):
                pass
            self.assertEqual(told, [])
            patch._replay = lambda activations: (0.5, f"in {activations} activations, a giant")
            with ctxc.hf.patched(module, patch):
                pass
            self.assertRegex(str(told[0].message), r"in bf16 activations, a giant; a token in front .*keep=\[0\].* module.float")
            self.assertEqual(told[0].filename, __file__)
            told.clear()
            with ctxc.hf.patched(llama(), patch):
                pass
            self.assertEqual(told, [])


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
