"""What a program is decomposed into is what torch makes of it, and ops that are spelled out compute the same.

  ops_test.py PACKAGE"""
import unittest
import unittest.mock
import warnings

import torch
import package  # noqa: F401 — before ctxc, which it finds

from ctxc import _functional, _spelled, export, small_configs


class Decompositions(unittest.TestCase):
    """What _functional makes of a program is what torch makes of it, but for names."""

    def program_of(self, model_type):
        module, inputs, _, _ = export.model_of(small_configs.small_config(model_type))
        with torch.no_grad():
            return torch.export.export(module, tuple(inputs), dynamic_shapes=tuple({1: torch.export.Dim.AUTO} for _ in inputs), strict=False)

    def calls_of(self, program):
        names, found = {}, []
        for node in program.graph.nodes:
            value = node.meta.get("val")
            if node.op == "call_function" and _functional.is_scalar(node):
                names[node] = str(value)
                continue
            given = torch.fx.node.map_arg((node.args, dict(node.kwargs)), names.__getitem__)
            about = [str(_functional.said(value, {})), str(node.meta.get("nn_module_stack"))] if node.op == "call_function" else []
            names[node] = node.name if node.op == "placeholder" else str(len(found))
            found.append([str(node.target), str(given), *about])
        return found

    def test_as_torch_does(self):
        for model_type in ("llama", "bloom", "gpt_oss", "falcon_h1"):
            with self.subTest(model_type):
                program = self.program_of(model_type)
                found, expected = _functional.assembled(program), program.run_decompositions({})
                self.assertEqual(self.calls_of(found), self.calls_of(expected))
                self.assertEqual(found.graph_signature.input_specs, expected.graph_signature.input_specs)
                self.assertEqual(found.range_constraints, expected.range_constraints)

    def test_each_op_once(self):
        with unittest.mock.patch.object(_functional, "decomposed", wraps=_functional.decomposed) as called:
            counts = []
            for layers in (2, 6):
                config = small_configs.small_config("llama")
                config.num_hidden_layers = layers
                module, inputs, names, _ = export.model_of(config)
                export.exported(module, inputs, names)
                counts.append(len(called.call_args.args[0].nodes))
        self.assertEqual(counts[0], counts[1])

    def test_left_to_torch(self):
        program = self.program_of("mixtral")
        with self.assertRaises(_functional.Unknown):
            _functional.assembled(program)
        found = _functional.without_ops_in_place(program)
        self.assertFalse([node for node in found.graph.nodes if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable])


class SpelledOut(unittest.TestCase):
    """Ops that say more than one thing are the ops that they stand for, with the same numbers."""

    EQUATIONS = {"btd,df->btf": [(1, 5, 4), (4, 6)], "btd,dhk->bhtk": [(1, 5, 4), (4, 2, 3)], "bhtk,bhsk->bhts": [(1, 2, 5, 3), (1, 2, 7, 3)],
                 "bhts,bhsk->bthk": [(1, 2, 5, 7), (1, 2, 7, 3)], "bthk,hkd->btd": [(1, 5, 2, 3), (2, 3, 4)], "btd,d->bt": [(1, 5, 4), (4,)],
                 "btd,btd->bt": [(1, 5, 4), (1, 5, 4)], "bt,bt->bt": [(1, 5), (1, 5)], "...d,df->...f": [(1, 5, 4), (4, 6)], "btd->dbt": [(1, 5, 4)],
                 "bte,btd,edf->btf": [(1, 5, 3), (1, 5, 4), (3, 4, 6)], "ij,jk": [(2, 3), (3, 4)], "i,i": [(3,), (3,)], "i,j->ij": [(2,), (3,)],
                 "b t h, h k -> b t k": [(1, 5, 2), (2, 3)], "btd,btkdf->btkf": [(1, 5, 4), (1, 5, 2, 4, 3)],
                 "btkdf,btd->btkf": [(1, 5, 2, 4, 3), (1, 5, 4)], "btkd,btk->btd": [(1, 5, 2, 4), (1, 5, 2)], "btk,btkd->dbt": [(1, 5, 2), (1, 5, 2, 4)],
                 "btqd,btkdf->btfkq": [(1, 5, 6, 4), (1, 5, 2, 4, 3)], "bhd,bshd->bhs": [(1, 2, 4), (1, 5, 2, 4)],
                 "btkf,btkfd,btk->btd": [(1, 5, 2, 3), (1, 5, 2, 3, 4), (1, 5, 2)], "btd->bt": [(1, 5, 4)]}

    def test_einsum(self):
        torch.manual_seed(0)
        for equation, shapes in self.EQUATIONS.items():
            operands = [torch.randn(*shape).double() for shape in shapes]
            expected, found = torch.einsum(equation, *operands), _spelled.einsum(equation, operands)
            self.assertEqual(found.shape, expected.shape, equation)
            self.assertLess((found - expected).abs().max(), 1e-12, equation)
        self.assertIs(_spelled.einsum("ii->i", [torch.ones(2, 2)]), NotImplemented)

    def test_repeat_interleave(self):
        x = torch.randn(2, 3, 4)
        for dim in (0, 1, 2, -1, -3):
            self.assertTrue(torch.equal(_spelled.repeat_interleave(x, 3, dim), x.repeat_interleave(3, dim)))
        self.assertIs(_spelled.repeat_interleave(x, 3), NotImplemented)

    def calls_of(self, forward):
        class Made(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(8, 2, 4))

            def forward(self, x):
                return forward(self, x)
        module, x = Made(), torch.randn(1, 13, 8)
        program = export.exported(module.eval(), [x], ["x"])
        self.assertLess((program.module()(x) - module(x)).abs().max(), 1e-5)
        return {str(node.target) for node in program.graph.nodes if node.op == "call_function"}

    def test_programs(self):
        calls = self.calls_of(lambda self, x: torch.einsum("btd,dhk->bhtk", x, self.weight))
        self.assertTrue({"aten.matmul.default", "aten.permute.default"} <= calls and "aten.einsum.default" not in calls, calls)
        calls = self.calls_of(lambda self, x: torch.einsum("btd,dhk->bhtk", x, self.weight).repeat_interleave(2, dim=1))
        self.assertTrue("aten.expand.default" in calls and "aten.repeat_interleave.self_int" not in calls, calls)
        calls = self.calls_of(lambda self, x: x / x.norm(dim=-1, keepdim=True) + torch.nn.functional.normalize(x, p=1.0, dim=-1))
        self.assertTrue("aten.sqrt.default" in calls and "aten.linalg_vector_norm.default" not in calls, calls)

    def test_flex_attention(self):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        def attend(_, x):
            q, k, v = (part[:, None].expand(-1, heads, -1, -1) for part, heads in zip((x, x * 2, x + 1), (4, 2, 2)))
            mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, x.shape[1], x.shape[1], device="cpu")
            return flex_attention(q, k, v, lambda s, b, h, i, j: s - (i - j) * (h + 1) * .1, mask, enable_gqa=True).sum(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, that it is not compiled here
            calls = self.calls_of(attend)
        self.assertIn("aten.softmax.int", calls)


if __name__ == "__main__":
    unittest.main()
