"""Functions of JAX: what ctxc says of them, and its patches in JAX itself.

  jax_test.py CTXC FOLDER [TEST…]

Every program of programs.py, later_programs.py and published_programs.py is exported, and compared with JAX in the first run of the file (the
self-check). Its patch of the last token is put back into the tree of parameters, and JAX then reads that token alone. Where PyTorch is
installed, the same functions in PyTorch have the same verdicts.
"""

import inspect
import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

try:
    import jax
except ImportError:
    print("skipped: jax is not installed")
    sys.exit(77)

import numpy as np

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("types", "judge")]
import card_numbers
import ctxc
import ctxc.jax
from ctxc._places import places_of, tensors_of
from ctxc.jax._export import positions_taken
import later_programs
import programs
import published_programs
import refused_programs
from variant import rewrite

try:
    import torch
    import torch_twins
    from ctxc import export
except ImportError:
    torch_twins = None

CTXC, FOLDER = sys.argv[1], Path(sys.argv[2])
IDS = np.array([[5, 17, 3, 60, 22, 41, 9, 33]])
POSITIONS = np.arange(IDS.shape[1])[None]
# The verdict is undecided with the paper's sites, and has a plan with all.
UNDECIDED = {"ngpt", "hyper_connections", "mamba2_ssd"}
# These are run in the form of the exported program; all others by kernels.
AS_PROGRAMS = {"t5_bias", "long_convolution", "far_shift", "equinox_differential", "hyper_connections", "mamba2_ssd", "min_gru"}
# These are exported for one number of tokens.
FIXED = {"equinox_stacked": 13}
# What roundings to bfloat16 leave of a logit.
ROUNDED = {"half_precision": 0.1, "bfloat16_weights": 0.25}
# What keeps a program from being changed for good.
NOT_DISTILLED = {"t5_bias": "because of: aten.clamp.default", "long_convolution": "because of: aten.matmul.default",
                 "far_shift": "because of: aten.mul.Tensor", "half_precision": "found weights in bf16, expected f32"}
LAYERS = {"llama_scanned": "scopes", "linen_gpt": "scopes", "gemma": "scopes", "skips_in_scopes": "scopes", "nnx_scanned": "scopes",
          "linen_scanned": "scopes", "haiku_gpt": "values", "skips_unnamed": "values", "folded_net": "values", "linen_flat": "values", "last_norm_without_scale": "nothing", "vision_block": "nothing", "bare": "nothing",
          "scaled": "nothing", "equinox_stacked": "scopes", "linen_shared_experts": "scopes", "linen_retnet": "values",
          "nnx_speedrun": "nothing", "haiku_primer": "scopes", "haiku_gtrxl": "values", "bfloat16_weights": "scopes", "lora": "values"}
LIBRARIES = {"linen": "flax", "gemma": "flax", "nnx": "flax", "equinox": "equinox", "haiku": "haiku"}


def command(*words):
    return subprocess.run([CTXC, *map(str, words)], capture_output=True, text=True)


def tokens_of(ids):
    return ",".join(map(str, ids.reshape(-1)))


class Programs(unittest.TestCase):
    def made(self, build):
        needed = next((library for name, library in LIBRARIES.items() if build.__name__.startswith(name)), "jax")
        try:
            __import__(needed)
        except ImportError:
            self.skipTest(f"{needed} is not installed")
        f, params, *example = build()
        path = FOLDER / f"{build.__name__}.ctxc"
        exported = ctxc.jax.export(f, params, example[0] if example else IDS, path)
        self.assertEqual(exported.layers, LAYERS.get(build.__name__, "parameters"))
        self.assertEqual(exported.tokens, FIXED.get(build.__name__))
        return f, params, path

    def expect_patch(self, build):
        f, params, path = self.made(build)
        checked = command("check", path)
        sites = ("--sites", "all") if build.__name__ in UNDECIDED else ()
        self.assertEqual(checked.returncode, 1 if sites else 0, checked.stdout + checked.stderr)
        self.assertNotIn("not compared", checked.stdout + checked.stderr)
        self.assertNotIn("rejected", checked.stdout)
        read = command("import", path).stdout
        self.assertEqual("graph.body" in read, build.__name__ in AS_PROGRAMS)
        verified = command("verify", path, "--tokens", tokens_of(IDS), *sites)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        patch = FOLDER / f"{build.__name__}.safetensors"
        made = command("patch", path, "--tokens", tokens_of(IDS), *sites, "-o", patch, "--force")
        self.assertEqual(made.returncode, 0, made.stderr)
        if build is later_programs.table_of_positions:
            return  # of one token alone it would read position 0
        inputs = [IDS, POSITIONS] if positions_taken(f, params, IDS) else [IDS]
        f, last = jax.jit(f), [each[:, -1:] for each in inputs]
        wanted = f(params, *inputs)[0, -1].astype(np.float32)
        with_patch = f(ctxc.jax.apply_patch(params, patch, path), *last)[0, -1].astype(np.float32)
        without = f(params, *last)[0, -1].astype(np.float32)
        exact = ROUNDED.get(build.__name__, 2e-5)
        self.assertLess(np.abs(with_patch - wanted).max(), exact)
        self.assertGreater(np.abs(without - wanted).max(), 10 * exact)

    def test_a_norm_without_a_scale_is_rejected_at_its_line(self):
        _, _, path = self.made(later_programs.bare)
        checked = command("check", path)
        self.assertEqual(checked.returncode, 1)
        self.assertRegex(checked.stderr, r"programs\.py:\d+:1: error: .*\[bounded-output\]\nreturn x \* jax\.lax\.rsqrt")

    def test_blocks_of_activations(self):
        for build in (later_programs.scaled, later_programs.vision_block):
            _, _, path = self.made(build)
            self.assertIn("controllable", command("check", path).stdout)

    def test_check_jax_is_the_command_lines(self):
        f, params = programs.gpt2_plain()
        path = FOLDER / "again.ctxc"
        ctxc.jax.export(f, params, IDS, path)
        report = ctxc.check_jax(f, params, IDS)
        self.assertEqual(str(report).strip(), command("check", path).stdout.strip())
        self.assertTrue(report.patchable)

    def test_a_patch_of_python_is_applied(self):
        f, params, path = self.made(programs.llama_scanned)
        patch = ctxc.Context(ctxc.load(path), IDS[0].tolist()).patch()
        new = ctxc.jax.apply_patch(params, patch, path)
        wanted = jax.jit(f)(params, IDS, POSITIONS)[0, -1]
        self.assertLess(np.abs(jax.jit(f)(new, IDS[:, -1:], POSITIONS[:, -1:])[0, -1] - wanted).max(), 2e-5)
        self.assertIs(new["embed"], params["embed"])
        self.assertEqual(new["layers"]["q"].dtype, params["layers"]["q"].dtype)

    def test_stacked_layers_are_one_verdict(self):
        _, _, path = self.made(programs.llama_scanned)
        text = command("check", path).stdout
        self.assertRegex(text, r"layers 0-1, block '\w+': controllable")
        self.assertIn("down", text)

    def test_numbers_that_are_not_jaxs_are_found(self):
        """The comparison with JAX notices a file that says something else than the function."""
        _, _, path = self.made(programs.gpt2_plain)
        wrong = FOLDER / "wrong.ctxc"
        def change(program, _):
            gelu = next(call for call in program["calls"] if call["op"] == "aten.gelu.default")
            gelu["op"], gelu["arguments"] = "aten.silu.default", {"self": gelu["arguments"]["self"]}
        rewrite(path, wrong, change)
        checked = command("check", wrong)
        self.assertEqual(checked.returncode, 2)
        self.assertIn("was not read rightly", checked.stderr)

    def test_shapes_alone_have_the_verdict_of_numbers(self):
        for build in (programs.gpt2_plain, programs.llama_scanned):
            f, params, path = self.made(build)
            shapes = jax.eval_shape(lambda params=params: params)
            alone = FOLDER / f"{build.__name__}_shapes.ctxc"
            ctxc.jax.export(f, shapes, IDS, alone)
            checked = command("check", alone)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))  # compared with JAX's numbers for random parameters
            self.assertEqual(checked.stdout, command("check", path).stdout)
            refused = command("verify", alone, "--tokens", tokens_of(IDS))
            self.assertEqual(refused.returncode, 2)
            self.assertIn("has no weights", refused.stderr)
        with self.assertRaisesRegex(ctxc.jax.Unsupported, "a tree of arrays, or of shapes alone"):
            ctxc.jax.export(f, {**params, "embed": shapes["embed"]}, IDS, alone)

    def test_weights_of_checkpoints_are_those_of_the_tree(self):
        f, params, path = self.made(programs.llama_scanned)
        alone, folder = FOLDER / "without.ctxc", FOLDER / "weights"
        ctxc.jax.export(f, jax.eval_shape(lambda: params), IDS, alone)
        other = jax.tree.map(lambda x: x * 0.9, params)
        wanted = np.asarray(jax.jit(f)(other, IDS, POSITIONS))[0, -1]
        for source in self.checkpoints(other):
            with self.subTest(source.name):
                done = subprocess.run([sys.executable, "-m", "ctxc.jax.weights", source, alone, "-o", folder], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                logits = FOLDER / "other.safetensors"
                verified = command("verify", alone, "--tokens", tokens_of(IDS), "--weights", folder, "--logits", logits, "--force")
                self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
                found = tensors_of(logits)["full"][0]
                self.assertLess(np.abs(found - wanted).max(), 2e-5)
        del other["layers"]["down"]
        with self.assertRaisesRegex(ValueError, "its parameter layers/down is no leaf of the weights"):
            ctxc.jax.save_weights(other, alone, folder)
        done = subprocess.run([sys.executable, "-m", "ctxc.jax.weights", "nowhere", alone, "-o", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ctxc.jax.weights: nowhere: no such file or directory; expected", done.stderr)

    def checkpoints(self, params):
        """The tree as Flax and Orbax write it."""
        try:
            import orbax.checkpoint as orbax
            from flax import serialization
        except ImportError:
            self.skipTest("flax is not installed")
        packed, folder = FOLDER / "tree.msgpack", FOLDER / "orbax"
        packed.write_bytes(serialization.to_bytes({"params": params}))
        orbax.PyTreeCheckpointer().save(folder.absolute(), params, force=True)
        return packed, folder

    def test_one_layer_for_several_has_one_change(self):
        """One change of a matrix serves all runs of the layer, as many ranks as there are."""
        f, params = later_programs.one_layer_for_several()
        path = FOLDER / "one_layer.ctxc"
        ctxc.jax.export(f, params, IDS, path)
        checked = command("check", path)
        self.assertEqual(checked.returncode, 0)
        self.assertIn(f"rank {later_programs.LAYERS}", checked.stdout)
        verified = command("verify", path, "--joint", "--tokens", "5,17,3,11,2", "--generate", "3", "--keep", "none")
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def test_what_an_adapter_of_a_program_cannot_be(self):
        _, _, path = self.made(programs.gpt2_plain)
        for words, said in ((["--entries", "4"], "has no cache in which keys and values of a context could stand"),
                            (["--gguf"], "--gguf: "), (["--keep-share", "0.5", "--keep-cache"], "--keep-cache: "),
                            (["--keep-share", "0.5", "--prefix-cache"], "--prefix-cache: ")):
            refused = command("distil", path, "-o", FOLDER / "no-adapter", "--context-tokens", "5,6,7", *words)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(said, refused.stderr)
        refused = command("apply", path, FOLDER / "no-adapter", "-o", FOLDER / "no-model")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("apply_patch", refused.stderr)

    def test_a_scan_over_tokens_has_their_number(self):
        f, params = later_programs.scan_over_tokens()
        path = FOLDER / "scan.ctxc"
        exported = ctxc.jax.export(f, params, IDS, path)
        self.assertEqual(exported.tokens, 13)
        checked = command("check", path)
        self.assertNotIn("rejected", checked.stdout)
        verified = command("verify", path, "--tokens", tokens_of(IDS), *(() if checked.returncode == 0 else ("--sites", "all")))
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def test_parameters_are_places_in_the_tree(self):
        f, params, path = self.made(programs.mixture_dense)
        _, parts = places_of(path)
        self.assertEqual(parts["layers.1.w2.2"]["of"], "layers/1/w2")
        self.assertEqual(parts["layers.1.w2.2"]["offset"], 2 * params["layers"][1]["w2"][0].size)
        other = {**params, "layers": params["layers"][:1]}
        with self.assertRaisesRegex(ValueError, "has no leaf layers/1/"):
            patch = FOLDER / "patch.safetensors"
            command("patch", path, "--tokens", tokens_of(IDS), "--sites", "all", "-o", patch, "--force")
            ctxc.jax.apply_patch(other, patch, path)


class Adapters(unittest.TestCase):
    """A context as a lasting change of the parameters: what the card says is computed again by JAX with the changes."""

    def files(self, folder):
        draw = np.random.default_rng(3)
        lines = [{"prompt": draw.integers(programs.WORDS, size=3).tolist(), "answer": draw.integers(programs.WORDS, size=9).tolist()}
                 for _ in range(40)]
        for name, some in (("text", lines[:32]), ("held", lines[32:])):
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in some))
        return lines[32:]

    def expect_adapter(self, build):
        f, params, path = Programs.made(self, build)
        folder, context = FOLDER / f"{build.__name__}_adapter", IDS[0].tolist()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        lines = self.files(folder)
        about = "--context-tokens", ",".join(map(str, context))
        made = command("distil", path, *about, "--text", folder / "text.jsonl", "--held-out", folder / "held.jsonl", "--rank", 4,
                       "--anyway", "-o", folder / "adapter")
        if build.__name__ in NOT_DISTILLED:
            self.assertEqual(made.returncode, 2)
            self.assertIn(NOT_DISTILLED[build.__name__], made.stderr)
            return
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        again = command("evaluate", path, folder / "adapter", *about, "--text", folder / "held.jsonl", "--json", folder / "card.json")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        runs = {"full": (params, context), "without": (params, []), "adapted": (ctxc.jax.apply_patch(params, folder / "adapter", path), [])}
        f, inputs = jax.jit(f), len(inspect.signature(f).parameters) - 1

        def logits_of(name, line):
            changed, front = runs[name]
            ids = np.array([front + line["prompt"] + line["answer"]])
            return f(changed, *[ids, np.arange(ids.size)[None]][:inputs])[0, -len(line["answer"]) - 1:-1]
        expected = card_numbers.numbers(logits_of, lines)
        for card in (folder / "card.json", folder / "adapter" / "card.json"):
            errors = card_numbers.differences(json.loads(card.read_text()), expected)
            self.assertLess(max(errors.values()), 1e-4, errors)
        self.assertGreater(abs(expected["perplexity.adapted"] / expected["perplexity.without"] - 1), 1e-3)

    def test_one_change_for_a_whole_text(self):
        for build in (programs.gpt2_plain, later_programs.nnx_scanned):
            f, params, path = Programs.made(self, build)
            text, adapter, tokens = FOLDER / "joint.jsonl", FOLDER / f"{build.__name__}_joint", [7, 90, 14, 2]
            text.write_text(json.dumps({"prompt": [], "answer": tokens}))
            shutil.rmtree(adapter, ignore_errors=True)
            made = command("patch", path, "--joint", "--keep", "none", "--context-tokens", tokens_of(IDS), "--text", text, "-o", adapter)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            ids, places = np.concatenate([IDS, [tokens]], 1), np.arange(IDS.size + len(tokens))[None]
            wanted = jax.jit(f)(params, ids, places)[0, -len(tokens):]
            found, without = (jax.jit(f)(each, ids[:, -len(tokens):], places[:, :len(tokens)])[0] for each in
                              (ctxc.jax.apply_patch(params, adapter, path), params))
            self.assertLess(np.abs(found - wanted).max(), 2e-4)
            self.assertGreater(np.abs(without - wanted).max(), 0.1)


class Twins(unittest.TestCase):
    """The same functions in PyTorch, as modules without a module for a layer."""

    def verdict(self, path):
        """By layers, without the names of blocks and parameters: the verdict, the rules, and whether kernels run all."""
        text = command("check", path).stdout
        rules = sorted(re.findall(r"(?:rank 1|vector)\s+(\S.*)", text))
        return re.findall(r"layers? ([\d-]+).*: (\w[\w-]*)", text), rules, "graph.body" in command("import", path).stdout

    def expect_twin(self, build):
        f, params = build()
        ours, theirs = (FOLDER / f"{build.__name__}_{side}.ctxc" for side in ("jax", "torch"))
        ctxc.jax.export(f, params, IDS, ours)
        module = torch_twins.Twin(build).eval()
        ids = torch.arange(1, 14)[None]
        export.export(module, [ids, torch.arange(13)[None]], theirs)
        with torch.no_grad():
            made = module(torch.from_numpy(IDS), torch.from_numpy(POSITIONS)).numpy()
        self.assertLess(np.abs(made - jax.jit(f)(params, IDS, POSITIONS)).max(), 2e-5)
        wanted, found = self.verdict(ours), self.verdict(theirs)
        if build in torch_twins.OTHER_SITES:
            found, wanted = (({each for _, each in verdict[0]}, bool(verdict[1])) for verdict in (found, wanted))
        self.assertEqual(found, wanted)
        if wanted[1]:
            verified = command("verify", theirs, "--tokens", tokens_of(IDS))
            self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)


class Refusals(unittest.TestCase):
    def test_by_primitive_and_line(self):
        lines = Path(refused_programs.__file__).read_text().splitlines()
        for middle, words in refused_programs.REFUSED:
            with self.subTest(middle.__name__), self.assertRaises(ctxc.jax.Unsupported) as refusal:
                ctxc.jax.export(refused_programs.program(middle), refused_programs.PARAMS, IDS, FOLDER / "refused.ctxc")
            said = str(refusal.exception)
            self.assertIn(words, said)
            first = inspect.getsourcelines(middle)[1]
            place = next(i for i in range(first, len(lines) + 1) if lines[i - 1].endswith("# here"))
            self.assertIn(f"refused_programs.py:{place}", said)
        with self.assertRaises(ctxc.BadInput):
            ctxc.check_jax(refused_programs.program(refused_programs.chosen), refused_programs.PARAMS, IDS)
        self.assertFalse((FOLDER / "refused.ctxc").exists())

    def test_a_convolution_by_frequencies(self):
        f, params = published_programs.hyena()
        with self.assertRaisesRegex(ctxc.jax.Unsupported, r"published_programs\.py:\d+: primitive 'fft' reads all tokens.* jnp\.where\(i >= j"):
            ctxc.jax.export(f, params, IDS, FOLDER / "refused.ctxc")

    def test_an_index_that_may_be_negative_counts_from_the_end(self):
        params = {"embed": programs.Draw()(96, 32), "table": programs.Draw(1)(7, 32), "layers": [later_programs.attention_block(programs.Draw(2))]}

        def f(params, ids, positions):
            x = params["embed"][ids] + params["table"][positions % 7 - 3]
            return later_programs.plain_layer(params["layers"][0], x, positions) @ params["embed"].T
        path = FOLDER / "wrapped.ctxc"
        ctxc.jax.export(f, params, IDS, path)
        checked = command("verify", path, "--tokens", tokens_of(IDS))
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_the_command_line(self):
        done = subprocess.run([sys.executable, "-m", "ctxc.jax", "programs:nothing", "-o", FOLDER / "x.ctxc"], capture_output=True, text=True,
                              cwd=Path(__file__).parent)
        self.assertEqual((done.returncode, done.stderr), (1, "ctxc.jax: programs:nothing: module 'programs' has no attribute 'nothing'\n"))
        done = subprocess.run([sys.executable, "-m", "ctxc.jax", "programs:t5_bias", "-o", FOLDER / "x.ctxc"], capture_output=True, text=True,
                              cwd=Path(__file__).parent)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"x\.ctxc: \d+ ops\n")


def adopt(build):
    setattr(Programs, f"test_{build.__name__}", lambda self: self.expect_patch(build))
    setattr(Adapters, f"test_{build.__name__}", lambda self: self.expect_adapter(build))


for each in torch_twins.WITH_TWINS if torch_twins else []:
    setattr(Twins, f"test_{each.__name__}", lambda self, each=each: self.expect_twin(each))

for each in [*programs.PROGRAMS, *later_programs.PROGRAMS]:
    if each not in (later_programs.bare, later_programs.scaled, later_programs.vision_block):
        adopt(each)

for each in published_programs.PROGRAMS:
    if each is not published_programs.hyena:
        setattr(Programs, f"test_{each.__name__}", lambda self, each=each: self.expect_patch(each))

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
