"""What the package computes is what the command line computes."""
import copy
import json
import pickle
import subprocess
import sys

import ctxc
import ctxc.batch
import numpy as np
from core_case import GOLDENS, MODEL, NIGHT, PROMPT, ROOT, Case, command


class Results(Case):
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


def stored(path):
    """The tensors of a safetensors file of bfloat16, as uint16, of which a copy is held in memory."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[start + each["data_offsets"][0]:start + each["data_offsets"][1]],
                                np.uint16).reshape(each["shape"]) for name, each in header.items()}
