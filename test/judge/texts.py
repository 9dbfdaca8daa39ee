"""Texts to test tokenizers with: sources, mixed scripts, emoji, spaces, added tokens, broken UTF-8.

The same seed gives the same texts.
"""
import random
import unicodedata
from pathlib import Path

# Letters of scripts that came after Unicode 3.2.
NEWER = [(0x7ca, 0x7ea), (0x1b05, 0x1b33), (0x1c4d, 0x1c7d), (0x2c00, 0x2c5e), (0x2d30, 0x2d67),
         (0xa500, 0xa60c), (0x103a0, 0x103cf), (0x12000, 0x1236e)]
SCRIPTS = NEWER + [
    (0x41, 0x7a), (0xc0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff), (0x531, 0x587), (0x5d0, 0x5ea),
    (0x620, 0x6d3), (0x710, 0x74a), (0x904, 0x963), (0x985, 0x9df), (0xa05, 0xa74), (0xb85, 0xbd7),
    (0xc05, 0xc63), (0xd05, 0xd63), (0xe01, 0xe5b), (0xe81, 0xedf), (0xf40, 0xfbc), (0x1000, 0x109f),
    (0x10a0, 0x10ff), (0x1100, 0x11ff), (0x1200, 0x137f), (0x13a0, 0x13f5), (0x1780, 0x17f9),
    (0x1820, 0x1878), (0x1e00, 0x1fff), (0x3041, 0x309f), (0x30a0, 0x30ff), (0x3105, 0x312f),
    (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xfb00, 0xfb4f), (0xff01, 0xffee), (0x10330, 0x1034a),
    (0x1d400, 0x1d7ff), (0x20000, 0x2a6df)]
MARKS = "\u0301\u0300\u0308\u0323\u0327\u20dd\ufe0f\u200d\u3099"
SPACES = (" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028",
          "\u0085", "\u200b", "\v", "\f", "\u1680")
EMOJI = ("😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "❤️", "1️⃣", "🧑🏿‍🚀", "☃", "🫠")
ENGLISH = ("the", "king", "don't", "I'll", "WE'VE", "can't", "it's", "HE'S", "you're", "I'd", "naïve",
           "l'été", "Ärger", "ſ", "İstanbul", "ΌΣΟΣ", "straße", "e.g.,", "(see", "12:30)", "$1,234.56",
           "3.14159", "0x1F", "x=y+1;", "foo_bar", "__init__", "http://a.b/c?d=e&f", "#include",
           "--flag", "{}", "[[", "]]", "//", "/*", "...", "!?", "“quoted”", "—", "'", '"', "`", "\\n",
           "▁", "<0x41>", "##ing", "Ġ", "�", "<s>", "<unk>", "[SEP]", "x²", "½", "Ⅷ", "٣٤", "１２３")


def assigned(code):
    """A character that has the same properties in all versions of Unicode since 3.2: parts of the tokenizers
    package have tables of version 8 and later, and ctxc has newer ones."""
    c = chr(code)
    if any(low <= code <= high for low, high in NEWER):
        return unicodedata.category(c).startswith("L")
    old, category = unicodedata.ucd_3_2_0, unicodedata.category(c)
    return (category not in ("Cn", "Cs", "Co") and old.category(c) == category and
            old.normalize("NFKC", c) == unicodedata.normalize("NFKC", c))


def word(draw):
    low, high = draw.choice(SCRIPTS)
    out = "".join(chr(c) for c in (draw.randint(low, high) for _ in range(draw.randint(1, 8)))
                  if assigned(c))
    if draw.random() < 0.2:
        out += draw.choice(MARKS)
    return unicodedata.normalize("NFD", out) if draw.random() < 0.15 else out


def anything(draw):
    while True:
        code = draw.choice((draw.randint(0, 0x2ff), draw.randint(0, 0xffff), draw.randint(0, 0x323af)))
        if assigned(code):
            return chr(code)


def mixed(draw, added):
    parts = []
    for _ in range(draw.randint(1, 14)):
        kind = draw.random()
        if kind < 0.35:
            parts.append(draw.choice(ENGLISH))
        elif kind < 0.6:
            parts.append(word(draw))
        elif kind < 0.68:
            parts.append(draw.choice(EMOJI) * draw.randint(1, 3))
        elif kind < 0.76:
            parts.append("".join(anything(draw) for _ in range(draw.randint(1, 6))))
        elif kind < 0.84:
            parts.append(draw.choice(added))
        elif kind < 0.9:
            parts.append(str(draw.randint(0, 10 ** draw.randint(1, 12))))
        else:
            parts.append(draw.choice("aA-=._ \n0é中") * draw.randint(2, 40))
        parts.append(draw.choice(SPACES) if draw.random() < 0.5 else draw.choice((" ", "")))
    return "".join(parts)


def broken(draw, text):
    """`text` with some bytes removed and others inserted, such that all characters that result are in all of
    these versions too."""
    while True:
        data = corrupted(draw, text)
        if all(c in text or assigned(ord(c)) for c in data.decode("utf-8", "replace")):
            return data


def corrupted(draw, text):
    data = bytearray(text.encode())
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(data) + 1)
        if draw.random() < 0.5 and at < len(data):
            del data[at]
        else:
            data[at:at] = bytes(draw.choice((0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xe2, 0xed, 0xf0, 0xf4,
                                             0xf8, 0xff, draw.randrange(256))) for _ in range(2))
    return bytes(data)


def sources(root):
    lines = []
    for suffix in ("cpp", "h", "md", "py", "td", "mlir", "sh"):
        for path in sorted(filter(Path.is_file, Path(root).rglob(f"*.{suffix}"))):
            lines += path.read_text(errors="replace").split("\n")
    return lines


def texts(root, count, seed, added):
    """`count` texts as bytes: two fifths from the sources, the rest drawn, an eighth broken."""
    draw = random.Random(seed)
    lines = sources(root)
    out = []
    for i in range(count):
        if i % 5 < 2:
            at = draw.randrange(len(lines))
            text = "\n".join(lines[at:at + draw.choice((1, 1, 1, 2, 5))])
        else:
            text = mixed(draw, added)
        out.append(broken(draw, text) if i % 8 == 7 else text.encode())
    return out
