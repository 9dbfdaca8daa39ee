#!/usr/bin/env python3
"""Tests run_readme.py and links.py: correct pages pass, and each kind of wrong page fails."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path

import links
import run_readme


def run_page(text):
    """How many commands of a page print something else or fail, and what is said of them."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
        _, failures = run_readme.problems("page.md", text, folder, os.environ)
        return failures, said.getvalue()


def run(text):
    return run_page("Text.\n\n```console\n" + text + "```\n\n```\n$ false\n```\n")[0]


class RunReadme(unittest.TestCase):
    def test_right_results_pass(self):
        for text in ("$ echo a; echo b >&2\na\nb\n",
                     "$ printf 'one \\n\\ntwo'\none\n\ntwo\n\n$ true\n",
                     "$ echo a \\\n    b\na b\n",
                     "$ (exit 3)\n$ echo $?\n3\n",
                     "$ cat > x <<'END'\n$ b\nEND\n$ wc -l < x\n1\n",
                     "$ echo x > left; ls left > /dev/null\n$ cat left\nx\n",
                     "$ echo \"it's\"\nit's\n$ cat\n$ echo next\nnext\n"):
            self.assertEqual(run(text), 0, text)

    def test_wildcards(self):
        self.assertEqual(run("$ seq 5\n1\n...\n5\n"), 0)
        self.assertEqual(run("$ seq 5\n1\n...\n2\n3\n4\n5\n"), 0)
        self.assertEqual(run("$ echo took 12 s.\ntook ... s.\n"), 0)
        self.assertEqual(run("$ seq 5\n1\n...\n4\n"), 1)
        self.assertEqual(run("$ echo took 12 h\ntook ... s\n"), 1)
        self.assertEqual(run("$ printf '1\\n2'\n...2\n"), 1)

    def test_what_differs_between_machines(self):
        self.assertEqual(run("$ echo 'in 0.50 s, L   2e-16 of 12.5'\nin 3 s, L 8.88e-16 of 12.4\n"), 0)
        self.assertEqual(run("$ echo 1.13\n1.14\n$ echo 0\n1e-5\n$ echo 0.02\n0.01\n"), 0)
        self.assertEqual(run("$ echo 'L 1e-14'\nL 8.88e-16\n"), 1)
        self.assertEqual(run("$ echo 'L nan'\nL 8.88e-16\n"), 1)
        self.assertEqual(run("$ echo 12.1\n12.5\n"), 1)
        self.assertEqual(run("$ echo 4 of 5\n5 of 5\n"), 1)

    def test_wrong_results_fail(self):
        for text in ("$ echo a\nb\n", "$ echo a\n", "$ true\na\n", "$ echo a.c\nabc\n",
                     "$ false\n$ echo $?\n0\n", "$ echo abc\na.c\n", "$ echo 'a\n", "$ exit 0\n$ true\n"):
            self.assertEqual(run(text), 1, text)

    def test_what_is_no_command(self):
        with self.assertRaises(SystemExit):
            run("output\n$ echo output\n")


class Paste(unittest.TestCase):
    def test_a_shell_is_kept(self):
        good = "```sh\nexport A=1\nmkdir x\ncd x\n```\n```console\n$ echo $A; ls -d ../x\n1\n../x\n```\n"
        self.assertEqual(run_page(good)[0], 0)

    def test_each_command_of_a_block_must_succeed(self):
        for block in ("true\nfalse\ntrue", "no-such-program", "true && false", "ls no-such-file\ntrue",
                      "exit 0", "echo 'a"):
            self.assertEqual(run_page(f"```sh\n{block}\n```\n")[0], 1, block)
        for block in ("true", "# a comment\ntrue  # another", "if false; then false; fi",
                      "false || true", "cat >x <<'END'\nfalse\nEND\ngrep false x"):
            self.assertEqual(run_page(f"```sh\n{block}\n```\n")[0], 0, block)
        self.assertIn("failed (exit code 1): false", run_page("```sh\nfalse\ntrue\n```\n")[1])

    def test_a_marked_block_is_left_out(self):
        marked = "<!-- not run: it fails -->\n```sh\nfalse\n```\n"
        self.assertEqual(run_page(marked)[0], 0)
        self.assertEqual(list(run_readme.blocks(marked)), [])
        self.assertEqual(run_page(marked.replace("it fails ", ""))[0], 1)
        self.assertEqual(run_page(marked.replace("\n```sh", "\n\n```sh"))[0], 1)

    def test_what_changes_the_machine_is_refused(self):
        for command in ("sudo true", "tools/setup.sh --judges", "tools/test.sh", "tools/build.sh ctxc",
                        "apt-get install x", "cmake --install build", "cmake --preset package",
                        "cmake --install build --prefix /usr/local", "docker build ."):
            for block in (f"```sh\ntrue && {command}\n```\n", f"```console\n$ {command}\n```\n"):
                with self.assertRaises(SystemExit, msg=command):
                    run_readme.commands(block)
        harmless = "```sh\ncmake --install build --prefix build/ctxc\ntools/demo.sh\n```\n"
        self.assertEqual(len(run_readme.commands(harmless)), 1)

    def test_the_copy_is_what_is_checked_in(self):
        with tempfile.TemporaryDirectory() as folder:
            work, build = Path(folder) / "work", Path(folder) / "tree"
            work.mkdir(), (build / "bin").mkdir(parents=True)
            run_readme.scratch_copy(work, build, build, build)
            self.assertTrue((work / "README.md").is_file())
            self.assertFalse((work / "README.md").is_symlink())
            self.assertFalse((work / ".git").exists())
            self.assertEqual(sorted(path.name for path in (work / "build").iterdir()),
                             ["bin", "judges", "models"])


class Links(unittest.TestCase):
    def dead(self, **pages):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in pages.items():
                path = Path(folder) / name.replace("__", "/").replace("_md", ".md")
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            files = [str(path.relative_to(folder)) for path in Path(folder).rglob("*")
                     if path.is_file() and path.name != "left_out"]
            return list(links.dead_links(Path(folder), files))

    def test_right_links_pass(self):
        there = "# A `b`, c\n```\n# no heading\n```\n# A `b`, c\n[up](../a.md) [folder](..)"
        for link in ("[x](docs/b.md)", "[x](docs)", "[x](<docs/b.md> \"t\")", "![x](docs/b.md#a-b-c-1)",
                     "[x][y]\n\n[y]: docs/b.md", '<img src="docs/b.md">', "[x](#me)\n# Me",
                     "[a](docs/b.md) [x](https://a.b/c) [x](mailto:a@b.c) `[x](code)`\n```\n[x](code)\n```"):
            self.assertEqual(self.dead(a_md=link, docs__b_md=there), [], link)

    def test_dead_links_are_found(self):
        for link in ("[x](b.md)", "[x](../docs/b.md)", "[x](docs/b.md#no)", "[x](docs/b.md#a-b-c-2)",
                     "[x][y]\n\n[y]: no.md", "<img src=\"no.svg\">", "[x](#you)\n# Me", "[x](/docs/b.md)",
                     "[x](docs/left_out)"):
            found = self.dead(a_md=link, docs__b_md="# A b c\n# A b c\n[up](../a.md)", docs__left_out="")
            self.assertEqual(len(found), 1, link)
            self.assertTrue(found[0].startswith("a.md:1: ") or found[0].startswith("a.md:3: "), found)

    def test_files_that_are_named(self):
        page = "[x](docs/b.md) "
        for span in ("`docs/b.md`", "`docs`", "`docs/`", "`docs/*.md`", "`docs/….md`", "`docs/PAGE.md`",
                     "`elsewhere/b.md`", "`docs/b.md --option`", "\n```\n`docs/no.md`\n```\n"):
            self.assertEqual(self.dead(a_md=page + span, docs__b_md=""), [], span)
        for span in ("`docs/no.md`", "`docs/no`", "`docs/*.cpp`", "`docs/PAGE.cpp`"):
            self.assertEqual(self.dead(a_md=page + span, docs__b_md=""),
                             [f"a.md:1: {span}: no such file is checked in"], span)

    def test_pages_without_links_are_an_error(self):
        self.assertEqual(len(self.dead(a_md="no link")), 1)


if __name__ == "__main__":
    unittest.main()
