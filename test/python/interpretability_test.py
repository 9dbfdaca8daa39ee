"""Patches of a live module beside TransformerLens and nnsight: their hooks see the patched values.

  interpretability_test.py MODEL

MODEL is a Hugging Face directory whose layers have a mlp.down_proj. A tool that is not installed is skipped by name.
"""

import sys
import tempfile
import unittest

import ctxc
import ctxc.hf
import torch
import transformers

MODEL = sys.argv[1]
TOKENS = [2, 5, 17, 3, 60, 22, 41, 9]
LAYER = 3


def module():
    return transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation="eager").eval()


def position():
    return torch.tensor([[len(TOKENS) - 1]])


class Tools(unittest.TestCase):
    def judge(self, seen, of):
        """What a tool saw of a layer, and of the logits: in the full run, with the patch, and without."""
        (full, logits), (patched, patched_logits), (alone, control) = (seen[name] for name in ("full", "patched", "control"))
        self.assertLess((patched - full).abs().max(), 1e-4, of)
        self.assertGreater((alone - full).abs().max(), 100 * (patched - full).abs().max(), of)
        self.assertLess((patched_logits - logits).abs().max(), 1e-3, of)
        self.assertGreater((control - logits).abs().max(), 100 * (patched_logits - logits).abs().max(), of)

    @torch.no_grad()
    def test_nnsight(self):
        try:
            import nnsight
        except ImportError:
            self.skipTest("nnsight is not installed")
        hf_model = module()
        patch = ctxc.Context(ctxc.hf.from_module(hf_model), TOKENS).patch()
        traced = nnsight.NNsight(hf_model)

        def values(ids, **given):
            with traced.trace(torch.tensor([ids]), **given):
                hidden = traced.model.layers[LAYER].mlp.act_fn.output.save()
                logits = traced.lm_head.output.save()
            return hidden[0, -1], logits[0, -1]

        seen = {"full": values(TOKENS), "control": values(TOKENS[-1:])}
        with ctxc.hf.patched(hf_model, patch):
            seen["patched"] = values(TOKENS[-1:], position_ids=position())
        self.judge(seen, "nnsight")

        # A part of a patch as a steering vector: what the patch of an outer matrix writes, added by an intervention.
        change = patch[f"model.layers.{LAYER}.mlp.down_proj.weight"]
        direction = torch.tensor(change.u[:, 0] / (change.u ** 2).sum() ** 0.5).float()
        with traced.trace(torch.tensor([TOKENS[-1:]])):
            traced.model.layers[LAYER].mlp.output[:] += 3 * direction
            steered = traced.model.layers[LAYER].mlp.output.save()
        plain = hf_model.model.layers[LAYER].mlp
        got = []
        handle = plain.register_forward_hook(lambda _, given, result: got.append(result))
        hf_model(torch.tensor([TOKENS[-1:]]))
        handle.remove()
        self.assertLess((steered - got[0] - 3 * direction).abs().max(), 1e-4)

    @torch.no_grad()
    def test_transformer_lens(self):
        try:
            from transformer_lens.model_bridge import TransformerBridge
        except ImportError:
            self.skipTest("transformer-lens is not installed")
        hf_model = module()
        # Before the bridge puts its own modules around those of hf_model, and a bias of zeros beside its head.
        patch = ctxc.Context(ctxc.hf.from_module(hf_model), TOKENS).patch()
        with tempfile.TemporaryDirectory() as folder:
            tokenizer = self.tokenizer(folder)
            bridge = TransformerBridge.boot_transformers(MODEL, hf_model=hf_model, tokenizer=tokenizer, device="cpu",
                                                         dtype=torch.float32)
        name = f"blocks.{LAYER}.mlp.out.hook_in"

        def values(ids, **given):
            logits, cache = bridge.run_with_cache(torch.tensor([ids]), **given)
            return cache[name][0, -1], logits[0, -1]

        seen = {"full": values(TOKENS), "control": values(TOKENS[-1:])}
        for factored in (False, True):
            with ctxc.hf.patched(hf_model, patch, factored=factored):
                seen["patched"] = values(TOKENS[-1:], position_ids=position())
            self.judge(seen, "TransformerLens")

        # A patch's factor as a steering vector.
        change = patch[f"model.layers.{LAYER}.mlp.down_proj.weight"]
        direction = torch.tensor(change.u[:, 0] / (change.u ** 2).sum() ** 0.5).float()
        out = f"blocks.{LAYER}.mlp.hook_out"
        _, before = bridge.run_with_cache(torch.tensor([TOKENS[-1:]]))
        steered = bridge.run_with_hooks(torch.tensor([TOKENS[-1:]]),
                                        fwd_hooks=[(out, lambda value, hook: value + 3 * direction)])
        self.assertGreater((steered[0, -1] - seen["control"][1]).abs().max(), 1e-3)
        self.assertIn(out, before)

    def tokenizer(self, folder):
        """TransformerLens wants one; the test has ids."""
        import tokenizers

        words = tokenizers.models.WordLevel({"a": 0, "<eos>": 1, "<bos>": 2}, unk_token="a")
        made = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), bos_token="<bos>",
                                                    eos_token="<eos>", pad_token="<eos>")
        made.save_pretrained(folder)
        return transformers.AutoTokenizer.from_pretrained(folder)


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    unittest.main(argv=sys.argv[:1])
