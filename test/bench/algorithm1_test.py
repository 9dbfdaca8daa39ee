#!/usr/bin/env python3
"""The Algorithm 1 that ctxc is compared with is exact, leaves the weights unchanged, and detects when it is not
exact."""

import sys
import unittest
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "peers"))
import algorithm1  # noqa: E402
import random_llama  # noqa: E402

SIZES = dict(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, head_dim=12, max_position_embeddings=64)
CONTEXT = 11


def make(family, dtype):
    config, kind = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "gemma3": (transformers.Gemma3TextConfig, transformers.Gemma3ForCausalLM)}[family]
    model = kind(config(**SIZES, tie_word_embeddings=False)).eval()
    random_llama.draw(model)
    return model.to(dtype)


def forms(model):
    return {(materialised, tuned): algorithm1.Algorithm1(model, materialised, tuned)
            for materialised in (False, True) for tuned in (False, True)}


class Algorithm1Test(unittest.TestCase):
    def setUp(self):
        generator = torch.Generator().manual_seed(3)
        self.tokens = torch.randint(0, SIZES["vocab_size"], (1, CONTEXT + 1), generator=generator)
        self.position = torch.tensor([[CONTEXT]])

    def arguments(self, model):
        cache = transformers.DynamicCache(config=model.config)
        with torch.inference_mode():
            model(self.tokens[:, :CONTEXT], past_key_values=cache)
        return self.tokens[:, CONTEXT:], cache, self.position

    def test_is_exact_and_leaves_the_weights(self):
        for family in ("llama", "gemma3"):
            for dtype in (torch.float32, torch.bfloat16):
                model = make(family, dtype)
                before = {name: p.clone() for name, p in model.named_parameters()}
                for form, algorithm in forms(model).items():
                    with self.subTest(family=family, dtype=dtype, form=form):
                        self.assertGreater(algorithm.check(*self.arguments(model))["linf_control"], 0.1)
                        for name, parameter in model.named_parameters():
                            self.assertTrue(torch.equal(parameter, before[name]), name)

    def test_full_run_is_the_model_with_its_context(self):
        model = make("gemma3", torch.float32)
        with torch.inference_mode():
            expected = model(self.tokens).logits[0, -1]
        for form, algorithm in forms(model).items():
            full, patched = algorithm.step(*self.arguments(model))
            self.assertLess((full - expected).abs().max(), 1e-4, form)
            self.assertLess((patched - expected).abs().max(), 1e-3, form)

    def test_a_patch_that_is_not_applied_is_noticed(self):
        model = make("llama", torch.float32)
        algorithm = algorithm1.Algorithm1(model, False, False)
        algorithm.applying = lambda block: iter(())
        with self.assertRaises(algorithm1.NotExact):
            algorithm.check(*self.arguments(model))


if __name__ == "__main__":
    unittest.main()
