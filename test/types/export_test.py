"""What ctxc.export makes of code that torch.export does not follow: it computes the same.

  export_test.py PACKAGE"""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings
from pathlib import Path

import torch

PACKAGE = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, PACKAGE)
from ctxc import _experts, _functional, _known, _recurrences, _spelled, export, small_configs  # noqa: E402


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False).logits


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


class Recent(torch.nn.Module):
    """Adds up the last tokens before each, which it looks for in a mask, as an indexer does."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.embed = torch.nn.Embedding(128, 4)

    def forward(self, input_ids, position_ids):
        x = self.embed(input_ids)
        sees = position_ids[:, :, None] >= position_ids[:, None, :]
        rows = []
        for query in range(x.shape[1]):
            seen = torch.nonzero(sees[0, query]).flatten()
            if seen.shape[0] // 2 > 0:  # torch.export does not follow this
                rows.append(x[0].index_select(0, seen[-2:]).sum(0))
            else:
                rows.append(x[0, query])
        return self.linear(torch.stack(rows)[None])


class ByLanguage(torch.nn.Module):
    """An adapter for the sequences of one language, which is that of all or of none."""

    def __init__(self, language):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.embed = torch.nn.Embedding(128, 4)
        self.language = language
        self.is_random = False

    def forward(self, input_ids):
        x = self.embed(input_ids)
        numbers = torch.rand(x.shape[0]) if self.is_random else torch.ones(x.shape[0])
        is_it = self.language * numbers == 0
        y = torch.zeros_like(x)
        y[is_it] = self.linear(x[is_it])
        return x + y


class NormOfHeads(torch.nn.Module):
    """Divides each head by its root mean square, with heads and tokens in one axis, as a gated norm does."""

    def __init__(self, dim=1, adds_up=False):
        super().__init__()
        self.embed = torch.nn.Embedding(128, 12)
        self.scale = torch.nn.Parameter(torch.rand(4))
        self.dim, self.adds_up = dim, adds_up

    def forward(self, input_ids):
        x = self.embed(input_ids)
        rows = x.reshape(-1, 4)
        rows = self.scale * rows * torch.rsqrt((rows * rows).mean(self.dim, keepdim=True) + 1e-6)
        rows = rows * torch.nn.functional.silu(x.view(*x.shape[:2], 3, 4).reshape(-1, 4))
        return rows.sum(0) if self.adds_up else rows.reshape(x.shape)


class Programs(unittest.TestCase):
    def program_of(self, module, names):
        inputs = [torch.zeros(1, 13, dtype=torch.long) for _ in names]
        return export.exported(module.eval(), inputs, names)

    def test_known_masks(self):
        module = Recent()
        program = self.program_of(module, ["input_ids", "position_ids"])
        ids, positions = torch.randint(0, 128, (1, 13)), torch.arange(13)[None]
        found = program.module()(ids, positions)
        self.assertTrue(torch.equal(found, module(ids, positions)))
        self.assertNotIn("forward", vars(module))
        # The last row's indices are no stored numbers: 13 of them would be taken for tokens.
        self.assertNotIn(13, [size for value in program.constants.values() for size in value.shape])

    def test_unknown_masks(self):
        module = Recent()
        with self.assertRaises(Exception):
            self.program_of(module, ["input_ids", "other"])  # no positions, so that nothing is known of them

    def test_masks_of_data(self):
        positions, data = torch.arange(13)[None], torch.randn(1, 13)

        def is_known(change):
            with _known.KnownValues(positions) as values:
                mask = positions > 3
                part = mask[:, 2:]
                self.assertIn(id(part), values.known)
                changed = change(mask)
                del part  # a view of what was written
                return id(changed) in values.known

        def stored(mask):
            mask[0, 1:] = data[0, 1:] > 0
            return mask

        def written(mask):
            mask[:, 1:].copy_(data[:, 1:] > 0)
            return mask

        self.assertTrue(is_known(lambda mask: mask & (positions < 7)))
        for change in (stored, written, lambda mask: mask.__iand__(data > 0), lambda mask: mask.logical_and_(data > 0),
                       lambda mask: torch.rand_like(mask.float()) > 0.5,
                       lambda mask: torch.logical_and(data > 0, data < 1, out=mask)):
            self.assertFalse(is_known(change))

    def ranks_of_means(self, module):
        program = self.program_of(module, ["input_ids"])
        ids = torch.randint(0, 128, (1, 5))
        self.assertTrue(torch.equal(program.module()(ids), module(ids)))
        return [node.meta["val"].dim() for node in program.graph.nodes if str(node.target) == "aten.mean.dim"]

    def test_merged_axes(self):
        self.assertEqual(self.ranks_of_means(NormOfHeads()), [4])
        self.assertEqual(self.ranks_of_means(NormOfHeads(dim=-1)), [4])

    def test_joined_rows(self):
        self.assertEqual(self.ranks_of_means(NormOfHeads(dim=0)), [2])  # over all tokens
        self.assertEqual(self.ranks_of_means(NormOfHeads(adds_up=True)), [2])

    def test_full_masks(self):
        module = ByLanguage(0)
        program = self.program_of(module, ["input_ids"])
        names = [str(node.target) for node in program.graph.nodes]
        self.assertFalse([name for name in names if "index" in name or "assert_scalar" in name])
        ids = torch.randint(0, 128, (1, 5))
        self.assertTrue(torch.equal(program.module()(ids), module(ids)))

    def test_other_masks(self):
        for language, is_random in ((1, False), (0, True)):
            module = ByLanguage(language)
            module.is_random = is_random
            names = [str(node.target) for node in self.program_of(module, ["input_ids"]).graph.nodes]
            self.assertTrue([name for name in names if "index_put" in name])


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
                 "b t h, h k -> b t k": [(1, 5, 2), (2, 3)], "btd->bt": [(1, 5, 4)]}

    def test_einsum(self):
        torch.manual_seed(0)
        for equation, shapes in self.EQUATIONS.items():
            operands = [torch.randn(*shape).double() for shape in shapes]
            expected, found = torch.einsum(equation, *operands), _spelled.einsum(equation, operands)
            self.assertEqual(found.shape, expected.shape, equation)
            self.assertLess((found - expected).abs().max(), 1e-12, equation)
        self.assertIs(_spelled.einsum("ii->i", [torch.ones(2, 2)]), NotImplemented)

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
        calls = self.calls_of(lambda self, x: x / x.norm(dim=-1, keepdim=True) + torch.nn.functional.normalize(x, dim=-1))
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



WRONG = '''import numpy
import torch


class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.inner = kind, torch.nn.Linear(8, 8)

    def gated(self, x):
        if x.sum() > 0:
            return x * 2
        return x

    def forward(self, x):
        if self.kind == "branch":
            return x + self.inner(self.gated(x))
        if self.kind == "size":
            return x + self.inner(x) * torch.ones(int(x.max().item()) + 1).sum()
        if self.kind == "numpy":
            return x + torch.from_numpy(numpy.tanh(x.numpy()))
        return x + torch.nn.functional.linear(x, torch.ones(7, 7))


def branch(): return Block("branch"), torch.randn(1, 6, 8)
def size(): return Block("size"), torch.randn(1, 6, 8)
def by_numpy(): return Block("numpy"), torch.randn(1, 6, 8)
def shapes(): return Block("shapes"), torch.randn(1, 6, 8)
'''


HELPERS = '''def gate(x, y):
    return (x /
            y)


def gated(x): return gate(x, x.sigmoid())
'''
HELPED = '''import torch
from helpers_of_mine import gated
from transformers.models.llama.modeling_llama import LlamaRMSNorm


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(8, 8), LlamaRMSNorm(8)

    def joined(self, x):
        return x + self.linear(x)

    def forward(self, x):
        return gated(self.norm(self.joined(x)))


def build(): return torch.nn.Sequential(Inner()), torch.randn(1, 6, 8)
'''


class Lines(unittest.TestCase):
    """Each op keeps the lines that a person wrote: those of her helpers, within one call of a module, and with her expression."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        Path(cls.folder.name, "helpers_of_mine.py").write_text(HELPERS)
        Path(cls.folder.name, "helped.py").write_text(HELPED)
        module, inputs = export.built_module(f"{cls.folder.name}/helped.py:build")
        program = export.exported(module.eval(), inputs, ["input"])
        cls.traces = {}
        for node in program.graph.nodes:
            if node.op == "call_function":
                cls.traces.setdefault(str(node.target).split(".")[1], cls.frames_of(node.meta["stack_trace"]))

    @staticmethod
    def frames_of(trace):
        """File, line and marked expression of each frame."""
        lines, frames = trace.splitlines(), []
        for line, text, marks in zip(lines, lines[1:], lines[2:]):
            if line.lstrip().startswith("File "):
                file, number = line.split('"')[1], int(line.split(", line ")[1].split(",")[0])
                frames.append((Path(file).name, number, text[marks.index("^"):len(marks)]))
        return frames

    def test_helpers(self):
        self.assertEqual(self.traces["div"], [("helped.py", 15, "gated(self.norm(self.joined(x)))"), ("helpers_of_mine.py", 6, "gate(x, x.sigmoid())"),
                                              ("helpers_of_mine.py", 2, "x /")])
        self.assertEqual(self.traces["add"], [("helped.py", 15, "self.joined(x)"), ("helped.py", 12, "x + self.linear(x)")])

    def test_code_of_packages(self):
        self.assertEqual(self.traces["linear"], [("helped.py", 15, "self.joined(x)"), ("helped.py", 12, "self.linear(x)")])
        self.assertEqual(self.traces["rsqrt"], [("helped.py", 15, "self.norm(self.joined(x))")])

    def test_a_package_alone(self):
        module, inputs, names, _ = export.model_of(small_configs.small_config("llama"))
        program = export.exported(module, inputs, names)
        traces = [node.meta.get("stack_trace") or "" for node in program.graph.nodes if "rsqrt" in str(node.target)]
        self.assertTrue(traces)
        for trace in traces:
            (file, _, expression), = self.frames_of(trace)
            self.assertEqual((file, expression), ("modeling_llama.py", "torch.rsqrt(variance + self.variance_epsilon)"))


class Errors(unittest.TestCase):
    """What cannot be exported is said in a few lines, at the module's own lines, with what to write instead."""

    def said_of(self, function):
        told = subprocess.run([sys.executable, "-m", "ctxc.export", f"wrong_ones:{function}", "-o", "out.pt2"], cwd=self.folder.name,
                              env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, text=True)
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertLessEqual(len(told.stderr.splitlines()), 10, told.stderr)
        return told.stderr

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        (Path(self.folder.name) / "wrong_ones.py").write_text(WRONG)

    def test_lines(self):
        for function, lines in {
            "branch": ["wrong_ones:branch: the module cannot be exported", "wrong_ones.py:17: in forward: return x + self.inner(self.gated(x))",
                       "wrong_ones.py:11: in gated: if x.sum() > 0:", "expected torch.where"],
            "size": ["wrong_ones.py:19: in forward: return x + self.inner(x) * torch.ones(", "expected a constant, a size of a tensor"],
            "by_numpy": ["wrong_ones.py:21: in forward", "leave torch for NumPy", "expected torch's own function"],
            "shapes": ["the module fails on its example inputs", "wrong_ones.py:22: in forward", "shapes cannot be multiplied"],
        }.items():
            said = self.said_of(function)
            for line in lines:
                self.assertIn(line, said, function)

    def test_what_fails_before_there_is_a_module(self):
        write = Path(self.folder.name, "wrong_ones.py").write_text
        write("def build():\n    return helper()\n")
        self.assertRegex(self.said_of("build"), r"^ctxc.export: wrong_ones:build: build\(\) fails\n  wrong_ones.py:2: in build: return helper\(\)\n")
        write("def build(:\n    pass\n")
        self.assertRegex(self.said_of("build"), r"^ctxc.export: wrong_ones:build: the file cannot be imported\n  wrong_ones.py:1: def build\(:\n")

    def test_one_line(self):
        write = Path(self.folder.name, "wrong_ones.py").write_text
        write("def other(): pass\ndef number(): return 3\n")
        for function, line in {"nothing": "wrong_ones has no function 'nothing'; expected one of: other, number",
                               "number": "number() gives a int; expected a torch.nn.Module, or a module and its example inputs"}.items():
            self.assertEqual(self.said_of(function), f"ctxc.export: wrong_ones:{function}: {line}\n")
        write("import torch\n")
        bare = subprocess.run([sys.executable, "-S", "-m", "ctxc.export", "wrong_ones:build", "-o", "out.pt2"], cwd=self.folder.name,
                              env={"PYTHONPATH": PACKAGE}, capture_output=True, text=True)
        self.assertEqual(bare.stderr, f"ctxc.export: torch is not installed for {sys.executable}; expected a Python with torch: pip install torch\n")

    def test_a_module_that_is_not_there(self):
        for source in ("no_such_file:build", "no_such_package.file:build"):
            with self.assertRaisesRegex(SystemExit, f"{source}: there is no module '{source.split(':')[0].split('.')[0]}'"):
                export.built_module(source)

    def test_what_the_module_prints(self):
        class Prints(torch.nn.Module):
            def forward(self, x):
                print("mine")
                return x * 2
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            export.exported(Prints(), [torch.randn(1, 4, 8)], ["x"])
        self.assertIn("mine", written.getvalue())


class WhatIsMissing(unittest.TestCase):
    """Without its compiled part, or what that needs, the package says what to install where something is asked of it."""

    def said_of(self, code, folder):
        told = subprocess.run([sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)
        return (told.stdout + told.stderr).strip().splitlines()[-1]

    def test_not_compiled(self):
        for code in ("import ctxc; ctxc.check", "from ctxc import check"):
            self.assertRegex(self.said_of(code, PACKAGE), "^ImportError: ctxc.check: the package is not compiled here: .* PYTHONPATH=build/python$")
        self.assertEqual(self.said_of("import ctxc; print(hasattr(ctxc, 'no_such'))", PACKAGE), "False")

    def test_without_the_backend(self):
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "ctxc")
            made.mkdir()
            (made / "__init__.py").write_text(Path(PACKAGE, "ctxc/__init__.py").read_text())
            (made / "_core.py").write_text("raise ImportError('the nanobind backend module is not installed')")
            self.assertEqual(self.said_of("import ctxc; ctxc.load", folder), f"ImportError: ctxc.load: nanobind-backend is not installed for "
                             f"{sys.executable}: pip install 'nanobind-backend>=1.0,<2' 'numpy>=1.26'")


if __name__ == "__main__":
    unittest.main()
