"""Calls that others interrupt, watch or make at the same time."""
import signal
import subprocess
import sys
import threading
import unittest
import warnings
from pathlib import Path

import ctxc
import ctxc.batch
from core_case import MODEL, NIGHT, PROMPT, SANITIZED, Case


class Calls(Case):
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

    def test_processes(self):
        import multiprocessing

        for method in ("spawn", "fork"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                self.assertAlmostEqual(pool.apply(norm_of, (str(MODEL), PROMPT)),
                                       ctxc.Context(self.model, PROMPT).patch().norm, places=6)


def norm_of(path, prompt):
    return ctxc.Context(ctxc.load(path, threads=1), prompt).patch().norm
