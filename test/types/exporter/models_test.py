"""Models of transformers that the exporter prepares compute what they computed before.

  models_test.py PACKAGE"""
import unittest
import unittest.mock

import torch
from package import logits_of

from ctxc import _experts, _recurrences, export, small_configs


class Experts(unittest.TestCase):
    def compare(self, model_type, form):
        torch.manual_seed(0)
        model = export.causal_model(small_configs.small_config(model_type), attn_implementation="eager").eval().double()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        ids = torch.randint(3, 100, (1, 7))
        expected = logits_of(model, ids)
        found = [module for module in model.modules() if _experts.form_of(module) is form]
        self.assertTrue(found)
        _experts.compute_by_token(model)
        self.assertLess((logits_of(model, ids) - expected).abs().max(), 1e-12)
        # And not by what it had before.
        for module in found:
            for parameter in module.parameters():
                torch.nn.init.zeros_(parameter)
        self.assertGreater((logits_of(model, ids) - expected).abs().max(), 1e-3)

    def test_one_below_another(self):
        self.compare("dbrx", _experts.one_below_another)

    def test_some_without_weights(self):
        self.compare("longcat_flash", _experts.some_without_weights)


class Recurrences(unittest.TestCase):
    def test_as_one_op(self):
        for model_type in ("mamba", "falcon_mamba", "jamba", "zamba", "mamba2", "bamba", "falcon_h1", "granitemoehybrid",
                           "nemotron_h", "zamba2", "qwen3_next", "olmo_hybrid", "kimi_linear", "bailing_hybrid",
                           "minimax", "rwkv"):
            with self.subTest(model_type):
                torch.manual_seed(0)
                model = export.causal_model(small_configs.small_config(model_type), attn_implementation="eager",
                                            experts_implementation="eager").eval()
                for parameter in model.parameters():
                    torch.nn.init.normal_(parameter, std=0.3)
                ids = torch.randint(3, 100, (1, 7))
                expected = logits_of(model, ids)
                name = "decaying_mean" if model_type == "rwkv" else "linear_attention"
                op = getattr(_recurrences, name)
                with unittest.mock.patch.object(_recurrences, name, wraps=op) as called, \
                        _recurrences.in_one_op(model):
                    found = logits_of(model, ids)
                self.assertGreater(called.call_count, 0)
                self.assertLess((found - expected).abs().max(), 1e-4 * expected.abs().max())
                self.assertLess((logits_of(model, ids) - expected).abs().max(), 1e-12)


class Positions(unittest.TestCase):
    def compare(self, model_type):
        torch.manual_seed(0)
        config = small_configs.small_config(model_type)
        model = export.causal_model(config, attn_implementation="eager").eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        ids = torch.randint(3, 100, (1, 7))
        expected = logits_of(model, ids)
        module = export.model_of(config, "cpu", model)[0]
        with torch.no_grad():
            self.assertLess((module(ids, torch.arange(7)[None]) - expected).abs().max(), 1e-4)
            self.assertGreater((module(ids, torch.arange(7)[None] + 1) - expected).abs().max(), 1e-3)

    def test_from_behind_padding(self):
        self.compare("roberta")

    def test_from_zero(self):
        self.compare("bert")


class Configs(unittest.TestCase):
    def test_part_of_a_config(self):
        model = export.causal_model(small_configs.small_config("musicgen"), attn_implementation="eager")
        self.assertEqual(type(model.config).__name__, "MusicgenDecoderConfig")


if __name__ == "__main__":
    unittest.main()
