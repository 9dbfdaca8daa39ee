"""Models that mix tokens in ways that xf has no op for: ctxc runs the exported program itself, and PyTorch, with the patch
added to its weights and without the context, must give the logits that it gives with it. The mixers have between them the ops of PyTorch that models use, so that a wrong meaning of any shows as a wrong patch.
Others are attention and convolutions as models spell them: these are an xf.attention and xf.conv to ctxc. Two have no numbers, and are refused."""
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import ctxc.export as exporter

sys.path.insert(0, str(Path(__file__).parents[1] / "types"))
import patches  # noqa: E402

WIDTH, HEADS, TOKENS = 16, 4, 9


def heads(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def attended(x, scores, v):
    t = x.shape[1]
    scores = torch.where(torch.ones(t, t, dtype=torch.bool).tril(), scores, torch.finfo(x.dtype).min)
    return (scores.softmax(-1, dtype=torch.float32).to(x.dtype) @ v).transpose(1, 2).flatten(2)


def turning(layer, x, positions):
    """Rotary positions as complex numbers, and once more as sines; keys that several heads share."""
    q, k, v = heads(layer.a(x)), heads(layer.b(x))[:, :2], heads(layer.c(x))
    frequencies = 1.0 / (100.0 ** (torch.arange(0, 4, 2).float() / 4))
    angles = positions.float().unsqueeze(-1) * frequencies
    turns = torch.polar(torch.ones_like(angles), angles)
    q = torch.view_as_real(torch.view_as_complex(q.unflatten(-1, (-1, 2))) * turns.unsqueeze(1)).flatten(3)
    angles = torch.cat([angles, angles], -1).unsqueeze(1)
    half = torch.cat([-k[..., 2:], k[..., :2]], -1)
    k = (k * angles.cos() + half * angles.sin()).repeat_interleave(2, 1)
    return attended(x, torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(4), v)


def chosen(layer, x, positions):
    """Each token sees the key of the highest score."""
    t = x.shape[1]
    q, k, v = (part.unsqueeze(1) for part in torch.split(layer.wide(x), WIDTH, -1))
    scores = torch.baddbmm(torch.zeros(1, 1, 1, dtype=x.dtype), q[0], k[0].transpose(1, 2), beta=0.0, alpha=0.25).unsqueeze(0)
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
    best = scores.topk(1, -1).indices
    mask = torch.zeros_like(scores).scatter(-1, best, 1.0)
    return attended(x, scores.masked_fill(mask == 0, -1e30), v)


def slopes(layer, x, positions):
    """ALiBi, a cap, and a term of the softmax that no token has."""
    q, k, v = heads(layer.a(x)), heads(layer.b(x)), heads(layer.c(x))
    distance = positions.unsqueeze(1) - positions.unsqueeze(-1)
    bias = distance.unsqueeze(1) * torch.tensor([0.5, 0.25, 0.125, 0.0625]).view(1, 4, 1, 1)
    scores = 3.0 * torch.tanh(torch.matmul(q, k.mT) / 3.0) + bias
    scores = scores.masked_fill(distance.unsqueeze(1) > 0, -1e9)
    scores = torch.cat([scores, layer.sinks.view(1, -1, 1, 1).expand(1, HEADS, x.shape[1], 1)], -1)
    return (scores.softmax(-1)[..., :-1] @ v).transpose(1, 2).reshape(x.shape)


def summed(layer, x, positions):
    """ALiBi as Bloom writes it: what is added to the products, in one op with them."""
    t = x.shape[1]
    q, k, v = heads(layer.a(x)), heads(layer.b(x)), heads(layer.c(x))
    numbers = torch.pow(torch.full((), 0.5), torch.arange(1, 1 + HEADS, dtype=torch.int32))
    alibi = (numbers[:, None, None] * torch.arange(t)).repeat(1, 1, 1).to(x.dtype)
    return attended(x, alibi.baddbmm(q[0], k[0].mT, beta=1.0, alpha=0.5).view(1, HEADS, t, t), v)


def sliced(layer, x, positions):
    """As MPT: the last columns of a table; numbers for five heads of eight, in another order."""
    t = x.shape[1]
    q, k, v = heads(layer.a(x)), heads(layer.b(x)), heads(layer.c(x))
    numbers = (1.0 / torch.pow(2, torch.arange(1, 9).float() * 0.5)).view(1, 8, 1, 1)
    numbers = torch.concat([numbers[:, 1::2], numbers[:, ::2]], 1)[:, :HEADS]
    alibi = (torch.arange(1 - 64, 1).view(1, 1, 1, 64) * numbers).squeeze(0)[:, :, max(0, 64 - t):]
    scores = q @ k.mT * 0.5 + alibi
    return (scores.masked_fill(torch.ones(t, t).triu(1).bool(), -1e30).softmax(-1) @ v).transpose(1, 2).flatten(2)


def rounded(layer, x, positions):
    """As Falcon: rounded to bfloat16, and added twice."""
    t = x.shape[1]
    q, k, v = heads(layer.a(x)), heads(layer.b(x)), heads(layer.c(x))
    numbers = torch.pow(torch.full((), 0.3), torch.arange(1, 1 + HEADS, dtype=torch.int32))
    places = ((torch.ones(1, t, dtype=torch.long).cumsum(-1) - 1) * 1)[:, None, :]
    alibi = (numbers[..., None].bfloat16() * places).reshape(HEADS, 1, t).to(x.dtype)
    hidden = torch.ones(t, t).triu(1).bool()
    mask = torch.masked_fill(alibi.reshape(1, HEADS, 1, t) / math.sqrt(4), hidden, torch.finfo(x.dtype).min)
    scores = (q @ k.mT + alibi.view(1, HEADS, 1, -1)) * (1 / math.sqrt(4)) + mask
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def factored(layer, x, positions):
    """A mask that multiplies (GPT), and one inside of the scale (CodeGen)."""
    t = x.shape[1]
    q, k, v = heads(layer.a(x)), heads(layer.b(x)), heads(layer.c(x))
    seen = layer.seen[:t, :t]
    scores = (q @ k.mT / 1.5) * seen + -1e4 * (1 - seen)
    scores = (scores + torch.where(seen > 0, 0.0, -1e30)) / math.sqrt(4)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def tied(layer, x, positions):
    """Each token sees the keys of the two highest scores, of which several are 0."""
    t = x.shape[1]
    q, k, v = heads(layer.a(x)), heads(layer.b(x)), heads(layer.c(x))
    scores = torch.relu(q @ k.mT).masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
    mask = torch.zeros_like(scores).scatter(-1, scores.topk(2, -1).indices, 1.0)
    return attended(x, scores.masked_fill(mask == 0, -1e30), v)


def convolved(layer, x, positions):
    y = F.conv1d(F.pad(layer.a(x).transpose(1, 2), (2, 0)), layer.filter, groups=WIDTH).transpose(1, 2)
    bounded = torch.max(torch.min(layer.b(x), y), layer.a(x))
    return F.silu(y) * torch.sigmoid(layer.b(x)) + F.softplus(y).clamp(max=1.5) - F.elu(y) + bounded


def short(layer, x, positions):
    """A causal convolution, by zeros at both ends; what it reads and gives is gated (LFM2)."""
    y = (layer.a(x) * layer.b(x)).transpose(1, 2)
    y = F.conv1d(y, layer.filter.squeeze(1).unsqueeze(1), padding=2, groups=WIDTH)[..., :x.shape[1]]
    return y.transpose(1, 2) * layer.c(x)


def front(layer, x, positions):
    """The same by zeros in front, with a bias, and behind the MLP as well (Short)."""
    return convolution(layer, x)


def convolution(layer, x):
    y = F.pad(x.transpose(1, 2), (2, 0))
    return F.conv1d(y, layer.filter, layer.scale, groups=WIDTH).transpose(1, 2)


def running(layer, x, positions):
    """Sums, products and means over the tokens before."""
    y = F.normalize(layer.a(x), dim=-1)
    count = (positions + 1).unsqueeze(-1)
    decay = torch.sigmoid(layer.b(x)).clamp_min(0.5).log().cumsum(1).exp()
    linear = torch.cumsum(y.unsqueeze(-1) * layer.c(x).unsqueeze(-2), 1)
    return y.cumsum(1) / count + decay.sqrt() * 0.1 + (linear * y.unsqueeze(-1)).sum(-2) + y.square().rsqrt().tanh()


def before(layer, x, positions):
    """The token before, found by its index; statistics of its numbers."""
    y = layer.a(x)
    index = (torch.arange(x.shape[1]) - 1).clamp(min=0)
    last = y.index_select(1, index)
    rolled = torch.gather(y, 1, index.view(1, -1, 1).expand(1, -1, WIDTH))
    ordered, places = last.sort(-1, descending=True)
    top = last.max(-1, keepdim=True)
    spread = last.std(-1, keepdim=True) + last.var(-1, keepdim=True, correction=0) + last.logsumexp(-1, keepdim=True)
    pairs = last[..., None, ::2].repeat(1, 1, 2, 1).flatten(2).flip(-1)
    joined = torch.stack(last.chunk(2, -1), -1).flatten(2)
    return ordered + 0.1 * places + top.values * top.indices + spread + pairs * last.norm(dim=-1, keepdim=True) + \
        F.layer_norm(joined, (WIDTH,)) + F.rms_norm(rolled, (WIDTH,), layer.scale) + y[:, index].abs().pow(1.5)


def unrolled(layer, x, positions):
    """A loop over the tokens, which torch.export writes out: the program is for their number alone."""
    y, sums = layer.a(x), []
    for t in range(x.shape[1]):
        sums.append((0.5 * sums[-1] if sums else 0) + y[:, t])
    return torch.stack(sums, 1)


def backwards(layer, x, positions):
    """The same from the last token on: what others may follow makes a difference."""
    return unrolled(layer, x.flip(1), positions).flip(1)


def around(layer, x, positions):
    """In both directions."""
    q, k, v = heads(layer.a(x)), heads(layer.b(x)), heads(layer.c(x))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) + layer.a(x).mean(1, keepdim=True)


def numbered(layer, x, positions):
    """Attention in a layer that ends in one number (Numbered)."""
    q, k, v = heads(layer.a(x)), heads(layer.b(x)), heads(layer.c(x))
    return attended(x, q @ k.mT * 0.5, v)


def stored(layer, x, positions):
    """The same in a layer with a term that is made of stored tensors alone (Stored)."""
    return numbered(layer, x, positions)


class Layer(nn.Module):
    def __init__(self, mixer):
        super().__init__()
        self.mixer = mixer
        self.a, self.b, self.c = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.wide = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.sinks, self.scale = nn.Parameter(torch.randn(HEADS)), nn.Parameter(torch.randn(WIDTH))
        self.filter = nn.Parameter(torch.randn(WIDTH, 1, 3))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.seen = nn.Buffer(torch.ones(32, 32).tril(), persistent=False)

    def forward(self, x, positions):
        x = x + self.mixer(self, self.norm(x), positions)
        return x + self.down(F.gelu(self.up(x)))


class Numbered(Layer):
    """A norm without a scale, and a trained number for all entries; numbers are stored with an axis and without."""
    def __init__(self, mixer):
        super().__init__(mixer)
        self.length, self.share = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.full((1,), 1.4))

    def forward(self, x, positions):
        x = x + self.share * self.mixer(self, self.norm(x), positions)
        return x + F.rms_norm(self.down(F.gelu(self.up(x))), (WIDTH,), eps=1e-6) * self.length


class Stored(Layer):
    def forward(self, x, positions):
        x = x + self.mixer(self, self.norm(x), positions)
        return x + self.down(F.gelu(self.up(x))) + self.scale.exp()


class Short(Layer):
    def __init__(self, mixer):
        super().__init__(mixer)
        self.behind = nn.Conv1d(WIDTH, WIDTH, 3, padding=2, groups=WIDTH, bias=False)

    def forward(self, x, positions):
        x = x + self.mixer(self, self.norm(x), positions)
        y = self.down(F.gelu(self.up(x))).transpose(1, 2)
        return x + self.behind(y)[:, :, :y.shape[2]].transpose(1, 2)


OTHER = {numbered: Numbered, stored: Stored, front: Short}


class Model(nn.Module):
    def __init__(self, mixers):
        super().__init__()
        self.embed = nn.Embedding(40, WIDTH)
        self.layers = nn.ModuleList(OTHER.get(mixer, Layer)(mixer) for mixer in mixers)
        self.head = nn.Linear(WIDTH, 40, bias=False)

    def forward(self, input_ids, position_ids):
        torch._check(input_ids.shape[1] == position_ids.shape[1])
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x, position_ids)
        return self.head(x)


def judged(binary, mixers, folder):
    torch.manual_seed(2)
    model = Model(mixers).eval()
    ids = torch.randint(0, 40, (1, TOKENS))
    positions = torch.arange(TOKENS).unsqueeze(0)
    exporter.export(model, [ids, positions], folder / "model.ctxc")
    file = folder / "patch.safetensors"
    command = [binary, "patch", str(folder / "model.ctxc"), "--tokens", ",".join(map(str, ids[0].tolist())), "-o", str(file)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        return run.stderr
    model = model.double()

    def logits(first):
        return model(ids[:, first:], positions[:, first:])[0, -1]
    with torch.no_grad():
        full, control = logits(0), logits(TOKENS - 1)
        patches.add(model, file)
        patched = logits(TOKENS - 1)
    difference, control = float((patched - full).abs().max()), float((control - full).abs().max())
    print([mixer.__name__ for mixer in mixers], f"patched {difference:.1e}, without {control:.1e}", flush=True)
    return "" if difference < 1e-4 and control > 100 * difference else "differs"


MODELS = ([turning, chosen, slopes], [convolved, running, before], [around], [summed, sliced], [rounded, factored],
          [numbered, numbered], [stored], [unrolled], [short, front])
RAISED = {summed, sliced, rounded, factored, numbered, short, front}  # of them nothing is left of the program
# PyTorch does not say which of equal scores topk takes; and a program for some tokens is that of fewer only where none sees
# those behind it. There are no numbers to compare.
REFUSED = {tied: "'aten.topk.default' keeps 2 of 8 entries",
           backwards: f"is for {TOKENS} tokens alone, as torch.export has fixed them, since tokens see those behind them"}


def problem_of(binary, mixers, folder):
    """What is wrong with what `binary` makes of a model with these mixers; nothing where all is well."""
    problem = judged(binary, mixers, folder)
    if problem or not RAISED.issuperset(mixers):
        return problem
    text = subprocess.run([binary, "import", str(folder / "model.ctxc")], capture_output=True, text=True).stdout
    return "" if "graph.body" not in text else "is not attention, or a convolution, to ctxc"


def failures(binary):
    """How many of the models have no exact patch by `binary`."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for mixers in MODELS:
            problem = problem_of(binary, mixers, Path(folder))
            if problem:
                print([mixer.__name__ for mixer in mixers], problem, flush=True)
            failed += bool(problem)
        for mixer, why in REFUSED.items():
            said = judged(binary, [mixer], Path(folder))
            refused = "mixer_numbers.py" in said and why in said
            print(mixer.__name__, "is refused" if refused else f"is not refused: {said}", flush=True)
            failed += not refused
    return failed
