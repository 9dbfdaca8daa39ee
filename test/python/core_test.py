"""The package ctxc without torch: what a person writes, compared with what the command line gives.

  core_test.py CTXC REPOSITORY [TEST…]

Every night (CTXC_KERNEL_OPT=3) more patches are made in a row, and of all checkpoints.
"""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import ctxc
import ctxc.batch
import numpy as np

CTXC, ROOT = sys.argv[1], Path(sys.argv[2])
MODEL = ROOT / "examples/models/gemma3-kjv-1m"
PROMPT = "And David said unto Saul"
NIGHT = os.environ.get("CTXC_KERNEL_OPT") == "3"
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
GOLDENS = sorted(path.parent for path in (ROOT / "test/goldens").glob("*/golden.safetensors"))


def command(*words):
    # A sanitized command has the sanitizers inside.
    return subprocess.run([CTXC, *map(str, words)], capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": ""})


class Core(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = ctxc.load(MODEL)
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def file(self, name):
        return Path(self.folder.name) / name

    def test_patch_is_the_command_lines(self):
        ours, theirs = self.file("ours.safetensors"), self.file("theirs.safetensors")
        ctxc.Context(self.model, PROMPT, keep=[0, 2]).patch().save(ours)
        done = command("patch", MODEL, "--prompt", PROMPT, "--keep", "0,2", "-o", theirs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(ours.read_bytes(), theirs.read_bytes())
        self.assertEqual(command("verify", MODEL, "--patch", ours).returncode, 0)

    def test_patches_of_goldens_are_the_command_lines(self):
        ours, theirs = self.file("golden-ours.safetensors"), self.file("golden-theirs.safetensors")
        self.assertGreater(len(GOLDENS), 30)
        for golden in GOLDENS if NIGHT else [each for each in GOLDENS if each.name in ("bert", "mixtral")]:
            with self.subTest(golden.name):
                done = command("patch", golden, "--tokens", "5,17,3,9", "--force", "-o", theirs)
                self.assertEqual(done.returncode, 0, done.stderr)
                ctxc.Context(ctxc.load(golden), [5, 17, 3, 9]).patch().save(ours)
                self.assertEqual(ours.read_bytes(), theirs.read_bytes())

    def test_verify_is_the_command_lines(self):
        report = self.file("verify.json")
        done = command("verify", MODEL, "--prompt", PROMPT, "--generate", "4", "--json", report)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = []
        found = ctxc.verify(self.model, PROMPT, generate=4, progress=seen.append)
        self.assertEqual(seen, [1, 2, 3, 4])
        self.assertTrue(found.verified)
        self.assertEqual(found.rows, json.loads(report.read_text())["steps"])
        self.assertGreater(found.summary["controlLinf"], 100 * found.summary["linf"])
        self.assertIn("verified: 4 of 4", repr(found))
        self.assertIn("<table>", found._repr_html_())

    def test_check_is_the_command_lines(self):
        report = ctxc.check(str(MODEL))
        self.assertTrue(report.patchable)
        self.assertEqual(str(report), command("check", MODEL).stdout)
        self.assertEqual(report["layers.3"]["verdict"], "controllable")
        self.assertIs(report[0]["layers"], report["layers.5"]["layers"])
        with self.assertRaises(KeyError):
            report[6]

    def test_views_show_the_patch(self):
        patch = ctxc.Context(self.model, PROMPT).patch()
        for each in patch.values():
            for part in (each.u, each.v, each.delta):
                if part is not None:
                    self.assertFalse(part.flags.owndata)
                    self.assertFalse(part.flags.writeable)
        down = patch["model.layers.0.mlp.down_proj.weight"]
        self.assertEqual((down.u.shape[0], down.v.shape[0]), down.shape)
        u = down.u
        del patch, down
        self.assertTrue(np.isfinite(u).all())  # the view keeps its memory

    def test_patches_are_vectors(self):
        a = ctxc.Context(self.model, PROMPT).patch()
        b = ctxc.Context(self.model, "In the beginning God").patch()
        total = a * 2.0 + b
        for name in a:
            np.testing.assert_allclose(total[name].dense(), 2 * a[name].dense() + b[name].dense(), atol=1e-12)
        self.assertEqual(total["model.layers.0.mlp.down_proj.weight"].rank, 2)
        self.assertAlmostEqual((a - a).norm, 0, places=6)
        self.assertAlmostEqual(a.cosine(a * 3.0), 1, places=12)
        self.assertLess(abs(a.cosine(b)), 1)
        file = self.file("sum.safetensors")
        total.save(file)
        np.testing.assert_allclose(ctxc.Patch.load(file)["model.layers.0.mlp.down_proj.weight"].delta,
                                   total["model.layers.0.mlp.down_proj.weight"].dense(), rtol=1e-6, atol=1e-7)
        for other in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a), copy.copy(a)):
            self.assertEqual(other.origin, a.origin)
            self.assertEqual((other - a).norm, 0)

    def test_contexts_extend_and_fork(self):
        context = ctxc.Context(self.model, PROMPT)
        patch = context.patch()
        full = context.logits()
        self.assertLess(np.abs(context.logits(patch) - full).max(), 1e-4)
        self.assertEqual(int(full.argmax()), patch.full_next)
        other = context.fork().extend(patch.full_next)
        self.assertEqual((len(context), len(other)), (6, 7))
        whole = ctxc.Context(self.model, other.tokens)
        np.testing.assert_allclose(other.logits(), whole.logits(), atol=1e-4)

    def test_progress_of_reading(self):
        tokens = [10 + at % 900 for at in range(2500)]
        warnings.simplefilter("ignore")  # more positions than the model was made for
        self.addCleanup(warnings.simplefilter, "error")
        seen, extended, inspected = [], [], []
        context = ctxc.Context(self.model, tokens, progress=seen.append)
        context.extend(tokens, progress=extended.append)
        for each in (seen, extended):
            self.assertEqual(each, sorted(each))
            self.assertGreater(len(each), 2)
        self.assertEqual((seen[0], seen[-1], extended[-1]), (0, len(tokens) - 1, len(tokens)))
        ctxc.inspect(self.model, tokens[:1100], by="sentence", progress=inspected.append)
        self.assertIn(1099, inspected)

        def fails(done):
            raise KeyError(done)

        with self.assertRaises(KeyError):
            ctxc.Context(self.model, tokens, progress=fails)
        self.assertEqual(len(ctxc.Context(self.model, tokens)), len(tokens))  # asks nobody, and works

    def test_positions(self):
        tokens = self.model.tokenize(PROMPT)
        patches = ctxc.positions(self.model, tokens, at=[2, 5])
        self.assertEqual([each.origin.position for each in patches], [2, 5])
        self.assertTrue(ctxc.verify(self.model, patch=patches[0]).verified)

    def test_inspect(self):
        found = ctxc.inspect(self.model, PROMPT)
        page = self.file("page.html")
        found.save(page)
        self.assertTrue(page.read_text().lower().startswith("<!doctype html>"))
        self.assertIn("srcdoc=", found._repr_html_())

    def test_tensors_in_memory(self):
        tensors = stored(MODEL / "model.safetensors")
        config = json.loads((MODEL / "config.json").read_text())
        model = ctxc.from_tensors(config, tensors)
        ids = self.model.tokenize(PROMPT)
        found, expected = ctxc.Context(model, ids).patch(), ctxc.Context(self.model, ids).patch()
        self.assertEqual((found - ctxc.Patch(dict(expected), found.origin)).norm, 0)
        with self.assertRaisesRegex(ctxc.BadInput, "expected float32, float16 or bfloat16"):
            ctxc.from_tensors(config, tensors | {"x": np.zeros(3)})

    def test_errors_say_what_to_do(self):
        for wrong, text in [
                (lambda: ctxc.load("/nowhere"), "/nowhere: no such file"),
                (lambda: ctxc.load(MODEL, update="fast"), "update: found 'fast', expected one of"),
                (lambda: ctxc.Context(self.model, [1]), "at least two"),
                (lambda: ctxc.Context(self.model, [1, 10 ** 9]), "token 1 is 1000000000"),
                (lambda: ctxc.Context(self.model, [1, 2, 3], keep=[2]), "kept|keep"),
                (lambda: ctxc.Patch.load(MODEL / "config.json"), "config.json"),
                (lambda: ctxc.inspect(self.model, PROMPT, by="word"), "expected 'token' or 'sentence'"),
        ]:
            with self.assertRaisesRegex(ctxc.BadInput, text):
                wrong()
        with self.assertRaisesRegex(TypeError, "unknown option 'treads'"):
            ctxc.load(MODEL, treads=2)
        other = ctxc.Context(self.model, PROMPT).patch()
        stranger = ctxc.Patch(dict(other), ctxc._patch.Origin("0" * 64, (1, 2), 1, ()))
        for use in (lambda: other + stranger, lambda: ctxc.verify(self.model, patch=stranger),
                    lambda: ctxc.Context(self.model, PROMPT).logits(stranger)):
            with self.assertRaisesRegex(ctxc.Mismatch, "two models|another model"):
                use()

    def test_a_refusal_has_its_diagnostics(self):
        source = self.file("refused.mlir")
        source.write_text((ROOT / "test/python/Inputs/refused.mlir").read_text())
        self.assertFalse(ctxc.check(source).patchable)
        with self.assertRaises(ctxc.Refused) as raised:
            ctxc.Context(ctxc.load(source, seed=1), [1, 2, 3])
        errors = [each for each in raised.exception.diagnostics if each["severity"] == "error"]
        self.assertTrue(errors)
        self.assertEqual(errors[0]["file"], str(source))
        self.assertGreater(errors[0]["line"], 0)
        self.assertIn(f"[{errors[0]['rule']}]", errors[0]["message"])
        self.assertNotIsInstance(raised.exception, ctxc.Undecided)
        self.assertEqual(pickle.loads(pickle.dumps(raised.exception)).diagnostics, raised.exception.diagnostics)

    def test_what_is_undecided_is_not_refused_for_good(self):
        with self.assertRaisesRegex(ctxc.Undecided, "undecided"):
            ctxc.Context(ctxc.load(ROOT / "test/python/Inputs/undecided.mlir", seed=1), [1, 2, 3])

    def test_a_model_is_used_by_one_thread_at_a_time(self):
        outcomes = []

        def work():
            try:
                outcomes.append(ctxc.verify(self.model, PROMPT, generate=30).verified)
            except ctxc.BadInput as error:
                outcomes.append("thread" in str(error))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(outcomes, [True, True])

    def test_two_models_in_two_threads(self):
        models = [ctxc.load(MODEL), ctxc.load(MODEL)]
        norms = [None, None]

        def work(i):
            norms[i] = ctxc.Context(models[i], PROMPT).patch().norm

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(norms[0], norms[1])
        self.assertIsNotNone(norms[0])

    def test_an_exception_in_progress_ends_the_call(self):
        def stop(done):
            if done == 2:
                raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            ctxc.verify(self.model, PROMPT, generate=1000, progress=stop)
        self.assertTrue(ctxc.verify(self.model, PROMPT).verified)

    def test_an_exception_in_the_last_progress_is_not_lost(self):
        def stop(done):
            raise RuntimeError(f"enough of {done}")

        with self.assertRaisesRegex(RuntimeError, "enough of 1"):
            ctxc.verify(self.model, PROMPT, progress=stop)
        with self.assertRaisesRegex(RuntimeError, "enough of 1"):
            ctxc.batch.run(self.model, [{"tokens": [2, 5, 7]}], self.file("stopped"), progress=stop)
        self.assertEqual(self.model.decode(self.model.tokenize(PROMPT)[1:]), PROMPT)  # and comes once

    def test_a_bar_shows_progress(self):
        import types
        from unittest import mock

        class Bar:
            made = []

            def __init__(self, **about):
                self.about, self.n, self.closed = about, 0, False
                self.made.append(self)

            def update(self, more):
                self.n += more

            def close(self):
                self.closed = True

        fake = types.ModuleType("tqdm.auto")
        fake.tqdm = Bar
        with mock.patch.dict(sys.modules, {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": fake}):
            ctxc.verify(self.model, PROMPT, generate=3, progress=True)
            ctxc.batch.run(self.model, [{"tokens": [2, 5, 7]}, {}], self.file("bar"), progress=True)
        self.assertEqual([(each.about, each.n, each.closed) for each in Bar.made],
                         [({"total": 3, "unit": "token"}, 3, True), ({"total": None, "unit": "line"}, 2, True)])

    def test_what_the_library_says_beside_errors(self):
        tokens = [10 + at % 900 for at in range(600)]
        with self.assertWarnsRegex(UserWarning, "positions"):  # more than the model was made for
            ctxc.Context(ctxc.load(MODEL), tokens)
        context = ctxc.Context(ctxc.load(MODEL), tokens[:500])
        with self.assertWarnsRegex(UserWarning, "positions"):
            context.extend(tokens[500:])

    def test_ctrl_c_ends_a_call(self):
        program = ("import ctxc, sys\n"
                   f"model = ctxc.load({str(MODEL)!r})\n"
                   "def tell(done):\n"
                   "    if done == 1: print('started', flush=True)\n"
                   "try:\n"
                   f"    ctxc.verify(model, {PROMPT!r}, generate=100000, progress=tell)\n"
                   "except KeyboardInterrupt:\n"
                   f"    print(ctxc.verify(model, {PROMPT!r}).verified)\n"
                   "    sys.exit(3)\n")
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "started\n")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, rest), (3, "True\n"))

    def test_the_interpreter_ends_in_the_middle_of_work(self):
        program = ("import ctxc, threading\n"
                   f"model = ctxc.load({str(MODEL)!r})\n"
                   "started = threading.Event()\n"
                   "def work():\n"
                   f"    ctxc.verify(model, {PROMPT!r}, generate=100000, progress=lambda done: started.set())\n"
                   "threading.Thread(target=work, daemon=True).start()\n"
                   "started.wait()\n")
        for _ in range(3):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipIf(SANITIZED, "the sanitizers keep freed memory for a while")
    def test_many_patches_take_no_memory(self):
        def resident():
            fields = Path("/proc/self/statm").read_text().split()
            return int(fields[1]) * 4096

        context = ctxc.Context(self.model, PROMPT)
        for _ in range(50):
            context.patch()
        before = resident()
        for _ in range(10_000 if NIGHT else 500):
            context.patch()
        self.assertLess(resident() - before, 4 << 20)

    def test_pages_are_true(self):
        import doctest

        page = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False)
        self.assertEqual((page.failed, page.attempted > 10), (0, True))
        self.assertEqual(doctest.testmod(ctxc).failed, 0)

    def test_docstrings_are_true(self):
        import doctest

        model = ctxc.load("examples/models/gemma3-kjv-1m")
        context = ctxc.Context(model, PROMPT)
        names = {"ctxc": ctxc, "np": np, "model": model, "context": context, "patch": context.patch(),
                 "folder": self.folder.name,
                 "made": ctxc.distil(model, context="In the beginning God created the heaven.", tokens=120, length=12,
                                     rank=2, anyway=True),
                 "joint": ctxc.joint_patch(model, "In the beginning God created the heaven.", [[7, 8, 9, 10, 11]])}
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        for module in (ctxc._model, ctxc._context, ctxc._patch, ctxc._report, ctxc._errors, ctxc._distil, ctxc._joint,
                       ctxc.batch):
            with self.subTest(module.__name__):
                found = doctest.testmod(module, extraglobs=names, optionflags=flags)
                self.assertEqual((found.failed, found.attempted > 2), (0, True))

    def test_distil_is_the_commands(self):
        model = self.file("chat-model")
        model.mkdir()
        for name in ("config.json", "model.safetensors"):
            (model / name).write_bytes((ROOT / "test/goldens/llama" / name).read_bytes())
        subprocess.run([sys.executable, ROOT / "test/Driver/Inputs/more_tokens.py",
                        ROOT / "test/tokenizers/tiny/tokenizer.json", model], check=True)
        (model / "tokenizer_config.json").write_bytes((ROOT / "test/Driver/Inputs/chat-template.json").read_bytes())
        questions = ["The king", "A market", "Who is it?", "The sea", "A house", "The end"]
        options = {"tokens": 40, "length": 6, "rank": 2, "turns": 1, "more_prompts": 0}
        made = ctxc.distil(model, system="Be a market.", questions=questions, anyway=True, **options)
        system, asked = self.file("system.txt"), self.file("questions.txt")
        system.write_text("Be a market.")
        asked.write_text("".join(f"{question}\n" for question in questions))
        done = command("distil", model, "--chat", "--system", system, "--prompts", asked, "--anyway", "-o",
                       self.file("by-command"), *(word for key, value in options.items() for word in ("--" + key.replace("_", "-"), value)))
        self.assertEqual(done.returncode, 0, done.stderr)
        made.save(self.file("saved"))
        self.assertEqual((self.file("saved") / "adapter_model.safetensors").read_bytes(),
                         (self.file("by-command") / "adapter_model.safetensors").read_bytes())
        self.assertEqual(made.share, made.card["share_recovered"])
        self.assertIn("share of the context's effect recovered", made.report())
        with self.assertRaisesRegex(ctxc.Refused, "better off without it"):
            ctxc.distil(model, system="Be a market.", questions=questions, strength=0, **options)
        with self.assertRaisesRegex(ctxc.BadInput, "or else context"):
            ctxc.distil(model, system="x", context="y")
        with self.assertRaisesRegex(ctxc.BadInput, "already exists"):
            made.save(self.file("saved"))
        folder = made.path
        del made
        self.assertFalse(folder.exists())

    def test_batch_is_the_command_lines(self):
        lines = [{"id": i, "prompt": PROMPT + " and" * i, "make": ["patch", "metrics"]} for i in range(3)]
        prompts, ours, theirs = self.file("prompts.jsonl"), self.file("ours"), self.file("theirs")
        prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.assertEqual(command("batch", MODEL, prompts, "-o", theirs).returncode, 0)
        counts = ctxc.batch.run(self.model, lines, ours)
        self.assertEqual((counts["records"], counts["patches"], counts["unequal"]), (3, 3, 0))
        self.assertLess(counts["read"], counts["tokens"])
        for name in ("records-000000-00.jsonl", "patches-000000-00.safetensors", "batch.json"):
            self.assertEqual((ours / name).read_bytes(), (theirs / name).read_bytes(), name)
        alone, taken = self.file("alone.safetensors"), self.file("taken.safetensors")
        ctxc.Context(self.model, lines[2]["prompt"]).patch().save(alone)
        ctxc.batch.patch(ours, 3).save(taken)
        self.assertEqual(taken.read_bytes(), alone.read_bytes())
        with self.assertRaisesRegex(ctxc.BadInput, "has 0 patches of line 9"):
            ctxc.batch.patch(ours, 9)
        with self.assertRaisesRegex(ctxc.BadInput, "window is 64 there, and 2 was asked for"):
            ctxc.batch.run(self.model, lines, ours, window=2)

    def test_records_are_a_table(self):
        try:
            import pyarrow.parquet
        except ImportError:
            self.skipTest("pyarrow is not installed")
        folder, path = self.file("table"), self.file("records.parquet")
        ctxc.batch.run(self.model, [{"prompt": PROMPT, "make": ["layers"]}, {}], folder)
        self.assertEqual(ctxc.batch.to_parquet(folder, path, rows=1), 2)
        table = pyarrow.parquet.read_table(path)
        self.assertEqual(table.schema, ctxc.batch.schema())
        self.assertEqual(table.to_pylist(), list(ctxc.batch.records(folder)))

    def test_every_public_name_has_an_example(self):
        for name in ctxc.__all__:
            thing = getattr(ctxc, name)
            if name == "__version__":
                continue
            for place, each in [(name, thing)] + members(thing):
                self.assertIn(">>>", each.__doc__ or "", f"ctxc.{place} has no example")

    def test_stubs_name_what_the_extension_has(self):
        import ast

        source = (Path(ctxc.__file__).parent / "_core.pyi").read_text()
        stubs = [each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)]
        self.assertEqual({each.name for each in stubs},
                         {name for name in dir(ctxc._core) if isinstance(getattr(ctxc._core, name), type)})
        for stub in stubs:
            members = {each.name for each in stub.body if isinstance(each, ast.FunctionDef)}
            found = {name for name in dir(getattr(ctxc._core, stub.name)) if not name.startswith("__")}
            self.assertEqual(members, found, stub.name)

    def test_processes(self):
        import multiprocessing

        for method in ("spawn", "fork"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                self.assertAlmostEqual(pool.apply(norm_of, (str(MODEL), PROMPT)),
                                       ctxc.Context(self.model, PROMPT).patch().norm, places=6)


def stored(path):
    """The tensors of a safetensors file of bfloat16, as uint16, of which a copy is held in memory."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[start + each["data_offsets"][0]:start + each["data_offsets"][1]],
                                np.uint16).reshape(each["shape"]) for name, each in header.items()}


def members(thing):
    """The public methods and properties of a class."""
    if not isinstance(thing, type):
        return []
    return [(f"{thing.__name__}.{name}", each) for name, each in vars(thing).items()
            if not name.startswith("_") and (callable(each) or isinstance(each, (property, classmethod)))]


def norm_of(path, prompt):
    return ctxc.Context(ctxc.load(path, threads=1), prompt).patch().norm


if __name__ == "__main__":
    os.chdir(ROOT)
    warnings.simplefilter("error")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
