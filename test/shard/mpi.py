"""How tests start ranks."""
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def launcher(kind):
    """The command that starts ranks by MPICH or OpenMPI; ends the test where there is none."""
    program = kind and shutil.which("mpirun." + kind)
    if not program:
        print(f"skipped: this build has no {kind or 'MPI'}; tools/setup.sh --judges installs MPICH")
        sys.exit(SKIPPED)
    if kind == "openmpi":
        return [program, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    return [program, "-bind-to", "none"]


class Ranks:
    """Runs ctxc, by itself or on ranks."""

    def __init__(self, ctxc, kind):
        self.ctxc, self.kind, self.start = ctxc, kind, launcher(kind)

    def alone(self, *words, **more):
        return run([self.ctxc, *words], **more)

    def together(self, count, *words, shard=None, **more):
        shard = shard or f"pipeline={count}"
        return run([*self.start, "-n", str(count), self.ctxc, *words, "--shard", shard], **more)

    def differing(self, programs, **more):
        """A rank for each command."""
        words = list(self.start)
        for i, program in enumerate(programs):
            words += ([":"] if i else []) + ["-n", "1", *program]
        return run(words, **more)


def run(words, timeout=120, env=None, **more):
    words = [str(word) for word in words]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "NO_COLOR": "1", **(env or {})}
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, env=environment,
                          **more)


def fail(message, result=None):
    print("error:", message)
    if result is not None:
        print("exit code", result.returncode, "\n--- stdout\n" + result.stdout + "--- stderr\n" +
              result.stderr)
    sys.exit(1)


def folder():
    return tempfile.mkdtemp(prefix="ctxc-ranks-")
