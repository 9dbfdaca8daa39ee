"""A golden's directory with changed files of weights: ctxc's logits beside transformers'."""
import atexit
import shutil
import tempfile
from pathlib import Path

from config_keys import Reader, transformers_logits

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"


def start(reader):
    global ctxc_reader, folder
    ctxc_reader, folder = Reader(reader), Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)


def copied(golden):
    path = folder / "model"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(GOLDENS / golden, path)
    return path


def ctxc(path):
    return ctxc_reader.read(path)


def judge(path):
    return transformers_logits(path)


def differ(found, expected):
    error = (found - expected).abs().max().item()
    return None if error <= 1e-4 else f"logits differ by {error:.3g} from transformers'"
