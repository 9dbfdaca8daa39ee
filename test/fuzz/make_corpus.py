#!/usr/bin/env python3
"""Makes the seeds of the corpus: small files of every format that ctxc reads.

  make_corpus.py CTXC OUT    CTXC is the program; OUT/READER/seed-* are written

Proofs and witnesses are ctxc's own, about Inputs/proved.mlir. All else is made here, but for the
configs and tokenizers of the tests.
"""
import base64
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
WIDTHS = {"F64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "U8": 1, "I8": 1, "F8_E4M3": 1,
          "F8_E5M2": 1, "F8_E8M0": 1, "BOOL": 1}


def safetensors(tensors, metadata=None):
    """`tensors` is a list of (name, dtype, shape)."""
    header, end = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, dtype, shape in tensors:
        size = WIDTHS[dtype]
        for d in shape:
            size *= d
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(i % 61 for i in range(end))


def npy(descr, shape, version=(1, 0), fortran=False):
    header = str({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    wide = version[0] > 1
    header += b" " * (-(len(header) + 1 + (12 if wide else 10)) % 64) + b"\n"
    length = struct.pack("<I" if wide else "<H", len(header))
    size = int(descr[-1])
    for d in shape:
        size *= d
    return b"\x93NUMPY" + bytes(version) + length + header + bytes(i % 61 for i in range(size))


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(keys, tensors, version=3):
    """`keys` maps to (type, value); `tensors` is a list of (name, shape, type, bytes)."""
    def value(kind, x):
        if kind == 8:
            return text(x)
        if kind == 9:
            of, items = x
            return struct.pack("<IQ", of, len(items)) + b"".join(value(of, i) for i in items)
        return struct.pack("<" + "BbHhIifB  Qqd"[kind], x)

    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for key, (kind, x) in keys.items():
        out += text(key) + struct.pack("<I", kind) + value(kind, x)
    data = b""
    for name, shape, kind, size in tensors:
        out += text(name) + struct.pack("<I", len(shape))
        out += b"".join(struct.pack("<Q", d) for d in shape)
        out += struct.pack("<IQ", kind, len(data))
        data += bytes(i % 61 for i in range(size))
        data += bytes(-len(data) % 32)
    return out + bytes(-len(out) % 32) + data


def llama_gguf():
    arch, width, inner, vocabulary = "llama", 8, 12, 6
    keys = {"general.architecture": (8, arch), "general.alignment": (4, 32)}
    for name, x in {"block_count": 1, "embedding_length": width, "feed_forward_length": inner,
                    "context_length": 16, "attention.head_count": 2,
                    "attention.head_count_kv": 1, "vocab_size": vocabulary,
                    "rope.dimension_count": 4}.items():
        keys[f"{arch}.{name}"] = (4, x)
    keys[f"{arch}.attention.layer_norm_rms_epsilon"] = (6, 1e-5)
    keys[f"{arch}.rope.freq_base"] = (6, 10000.0)
    matrices = {"attn_q": (width, width), "attn_k": (width, 4), "attn_v": (width, 4),
                "attn_output": (width, width), "ffn_gate": (width, inner),
                "ffn_up": (width, inner), "ffn_down": (inner, width)}
    tensors = [("token_embd.weight", (width, vocabulary)), ("output_norm.weight", (width,))]
    tensors += [(f"blk.0.{name}.weight", shape) for name, shape in matrices.items()]
    tensors += [(f"blk.0.{name}.weight", (width,)) for name in ("attn_norm", "ffn_norm")]
    size = lambda shape: 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    return keys, [(name, shape, 0, size(shape)) for name, shape in tensors]


def gguf_tokenizer(model):
    pieces = ["<unk>", "<s>", "</s>", "▁", "t", "o", "b", "e", "to", "▁to", "<0x0A>"]
    if model == "gpt2":
        pieces = ["<s>", "t", "o", "b", "e", "to", "Ġ", "Ġto", "!"]
    keys = {"tokenizer.ggml.model": (8, model), "tokenizer.ggml.tokens": (9, (8, pieces)),
            "tokenizer.ggml.token_type": (9, (5, [3 if p.startswith("<") else 1 for p in pieces])),
            "tokenizer.ggml.bos_token_id": (4, 0), "tokenizer.ggml.add_bos_token": (7, 1)}
    if model == "gpt2":
        keys["tokenizer.ggml.merges"] = (9, (8, ["t o", "Ġ to"]))
        keys["tokenizer.ggml.pre"] = (8, "llama-bpe")
    else:
        keys["tokenizer.ggml.scores"] = (9, (6, [-float(i) for i in range(len(pieces))]))
    return keys


def sentencepiece(kind, byte_fallback):
    """sentencepiece's protocol buffer: pieces, then the trainer's and the normaliser's settings."""
    def field(number, wire, payload):
        return varint(number << 3 | wire) + payload

    def varint(x):
        out = b""
        while x > 127:
            out += bytes([x & 127 | 128])
            x >>= 7
        return out + bytes([x])

    def chunk(number, data):
        return field(number, 2, varint(len(data)) + data)

    pieces = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("▁", 1), ("t", 1), ("o", 1), ("to", 1),
              ("▁to", 1), ("b", 1), ("e", 1), ("mark", 4)]
    if byte_fallback:
        pieces += [(f"<0x{b:02X}>", 6) for b in range(256)]
    out = b""
    for i, (piece, type_) in enumerate(pieces):
        out += chunk(1, chunk(1, piece.encode()) + field(2, 5, struct.pack("<f", -float(i)))
                     + field(3, 0, varint(type_)))
    trainer = field(3, 0, varint(kind)) + field(35, 0, varint(int(byte_fallback)))
    return out + chunk(2, trainer) + chunk(3, chunk(1, b"identity") + field(3, 0, varint(1)))


def checkpoints(write):
    write("safetensors", safetensors([("a", "F32", [2, 3]), ("b", "BF16", [4]), ("c", "I32", [])],
                                     {"format": "pt"}))
    write("safetensors", safetensors([("w", "F8_E4M3", [4, 4]), ("w_scale_inv", "F32", [2, 2])]))
    write("safetensors", safetensors([("w_blocks", "U8", [1, 2, 1, 16]),
                                      ("w_scales", "U8", [1, 2, 1])]))
    write("index", json.dumps({"metadata": {"total_size": 8}, "weight_map":
                               {"a": "a.safetensors", "b": "b.safetensors"}}).encode())
    write("npy", npy("<f4", (2, 3)))
    write("npy", npy(">f8", (1, 2), version=(2, 0)))
    write("npy", npy("<f2", (2, 2), version=(3, 0)))
    keys, tensors = llama_gguf()
    for model in ("llama", "gpt2"):
        write("gguf", gguf({**keys, **gguf_tokenizer(model)}, tensors))
    write("gguf", gguf({"general.architecture": (8, "gemma3"), "x": (10, 2**63), "y": (12, 0.5)},
                       [("q", (32, 2), 8, 68), ("k", (256,), 12, 144), ("h", (3,), 30, 6)]))
    for config in sorted(TESTS.glob("goldens/*/config.json")) + sorted(
            TESTS.glob("mixers/*/config.json")):
        write("config", json.dumps(json.loads(config.read_text()),
                                   separators=(",", ":")).encode())


def tokenizers(write):
    for folder in sorted((TESTS / "tokenizers").iterdir()):
        data = json.loads((folder / "tokenizer.json").read_text())
        if folder.name in ("metaspace", "byte-level"):
            vocabulary = data["model"]["vocab"]
            kept = [k for k in vocabulary if len(k) == 1 or k in ("<unk>", "<s>", "<0x41>")][:40]
            data["model"]["vocab"] = {k: i for i, k in enumerate(kept)}
            data["model"]["merges"] = [m for m in data["model"]["merges"]
                                       if all(p in kept for p in [*m, "".join(m)])]
            data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] in kept][:2]
            for token in data["added_tokens"]:
                token["id"] = data["model"]["vocab"][token["content"]]
        write("tokenizer-json", json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())
    write("tokenizer-json", json.dumps({
        "added_tokens": [{"id": 2, "content": "<s>", "special": True, "single_word": False,
                          "lstrip": True, "rstrip": True, "normalized": False}],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Lowercase"}, {"type": "Replace", "pattern": {"Regex": "(a|b)+?\\s{2,}"},
                                    "content": "x"}, {"type": "StripAccents"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "(?i:'s)|\\p{N}{1,3}|[^\\r\\n]+(?!\\S)"},
             "behavior": "MergedWithPrevious", "invert": True},
            {"type": "Digits", "individual_digits": True}]},
        "post_processor": {"type": "TemplateProcessing",
                           "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                      {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [], "special_tokens": {
                               "<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteFallback"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<s>": 2, "ab": 3},
                  "merges": [["a", "b"]], "unk_token": "a"}}).encode())
    for kind in (1, 2):
        for byte_fallback in (False, True):
            write("sentencepiece", sentencepiece(kind, byte_fallback))


def charsmap():
    """A precompiled normalization that makes "A" to "a": a double array of Darts with one key."""
    units = [0] * 0x142
    units[0] = 0x100 << 10
    units[0x100 ^ ord("A")] = 1 << 10 | 1 << 8 | ord("A")
    units[0x140] = 1 << 31
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + b"a\0"


def vocabularies(write):
    """Word pieces and Unigram, in GGUF files and as a tokenizer.json."""
    keys, tensors = llama_gguf()
    pieces = ["[UNK]", "[CLS]", "[SEP]", "▁to", "be", "▁be"]
    write("gguf", gguf({**keys, "tokenizer.ggml.model": (8, "bert"), "tokenizer.ggml.tokens": (9, (8, pieces)),
                        "tokenizer.ggml.token_type": (9, (5, [2, 3, 3, 1, 1, 1])),
                        "tokenizer.ggml.unknown_token_id": (4, 0), "tokenizer.ggml.bos_token_id": (4, 1),
                        "tokenizer.ggml.seperator_token_id": (4, 2)}, tensors))
    pieces = ["<pad>", "</s>", "<unk>", "▁", "a", "▁a"]
    write("gguf", gguf({**keys, "tokenizer.ggml.model": (8, "t5"), "tokenizer.ggml.tokens": (9, (8, pieces)),
                        "tokenizer.ggml.token_type": (9, (5, [3, 3, 2, 1, 1, 1])),
                        "tokenizer.ggml.scores": (9, (6, [0.0, 0.0, 0.0, -1.0, -2.0, -2.5])),
                        "tokenizer.ggml.precompiled_charsmap": (9, (0, list(charsmap()))),
                        "tokenizer.ggml.remove_extra_whitespaces": (7, 1)}, tensors))
    write("tokenizer-json", json.dumps({
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap()).decode()}, {"type": "Nmt"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "CharDelimiterSplit", "delimiter": "_"}, {"type": "FixedLength", "length": 3}]},
        "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
        "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                  "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2], ["<0x62>", -9]]}}).encode())


TEMPLATES = ["""{%- for message in messages %}
{{- '<|im_start|>' + message['role'] + '\\n' + message.content | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
""", """{%- macro line(role, text='') -%}[{{ role | upper }}] {{ text }}{%- endmacro -%}
{%- set ns = namespace(last=-1, found=false) -%}
{%- for m in messages[::-1] if m.role == "user" and m.content is string -%}
{%- set ns.last = messages | length - 1 - loop.index0 -%}
{%- if loop.first and not ns.found %}{% set ns.found = true %}{% endif -%}
{%- endfor -%}
{{ bos_token }}{{ line(messages[0]['role'], messages[0].content.strip()) }}
{{- messages | map(attribute='role') | join(', ') }}{{ messages | tojson(indent=2) }}
{%- if messages | selectattr('role', 'equalto', 'tool') | list | length > 0 %}{{ raise_exception('no tools') }}{% endif %}
{{- strftime_now('%d %b %Y') ~ (1 + 2 * 3 // 2 % 5 - 0.5) }}
""", """{% set x = [1, 2.5, 'a', {'k': none}, (1, 2)] %}{% for a, b in x[3].items() %}{{ a ~ b }}{% else %}-{% endfor %}
{% for i in range(3, 9, 2) %}{% if i == 5 %}{% continue %}{% endif %}{{ loop.index }}:{{ i }}{% endfor %}
{{ messages[-1].content.split('</think>')[-1].lstrip('\\n') | replace('H', 'J') | default('x', true) }}
{{ 'yes' if 'a' in x and x is not mapping else 'no' }}{% filter upper %}{{ x | first }}{% endfilter %}
{% generation %}{{ messages | groupby('role') }}{% endgeneration %}
"""]


def templates(write):
    for template in TEMPLATES:
        write("template", template.encode())
    write("template", json.dumps({"chat_template": TEMPLATES[0], "bos_token": "<s>",
                                  "eos_token": {"content": "</s>"}}).encode())
    write("template", json.dumps({"chat_template": [{"name": "default", "template": TEMPLATES[1]},
                                                    {"name": "tool_use", "template": "x"}]}).encode())
    write("template", b"{{ " + b"(" * 400 + b"1" + b")" * 400 + b" }}")
    write("template", b"{{ " + b"not " * 400 + b"1 }}")
    write("template", b"{% if x %}" * 400)
    write("template", b"{{ x" + b".y" * 2000 + b"[0]" * 2000 + b" | trim" * 2000 + b" }}")
    write("template", b"{{ 1" + b" + 1" * 2000 + b" }}")
    write("template", b"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")
    write("template", b"{{ 'x' * 9999999999 }}{{ range(999999999) | list }}")


def results(write, ctxc):
    metadata = {"format_version": "1", "model_hash": "0" * 64, "tokens": "1,2,3", "position": "2",
                "kept": "0", "update": "least", "dtype": "f32"}
    write("patch", safetensors([("m.0.up.weight.u", "F32", [3, 1]),
                                ("m.0.up.weight.v", "F32", [2, 1]),
                                ("m.0.norm.weight.delta", "F32", [2]),
                                ("m.0.bank[1].u", "F32", [3, 1]), ("m.0.bank[1].v", "F32", [2, 1])],
                               metadata))
    rows = {**metadata, "tokens": "1,row,3", "rows_digest": "0" * 64}
    write("patch", safetensors([("w.delta", "F32", [1])], rows))
    several = {**metadata, "format_version": "2", "positions": "1,2"}
    del several["position"]
    write("patches", safetensors([("m.0.up.weight.u", "F32", [2, 3, 1]), ("m.0.up.weight.v", "F32", [2, 2, 1]),
                                  ("m.0.norm.weight.delta", "F32", [2, 2])], several))
    several = {**several, "tokens": "1,row,3", "rows_digests": "0" * 64 + "," + "1" * 64}
    write("patches", safetensors([("w.delta", "BF16", [2, 1])], several))
    write("patches", safetensors([("w.delta", "F32", [1])], metadata))
    down, norm = "base_model.model.model.layers.0.mlp.down_proj", "base_model.model.model.norm"
    factors = [(f"{down}.lora_A.weight", "F32", [2, 4]), (f"{down}.lora_B.weight", "F32", [3, 2])]
    lora = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "use_rslora": True,
            "target_modules": ["down_proj"], "rank_pattern": {}, "alpha_pattern": {"down_proj": 3}}
    write("adapter", json.dumps(lora).encode() + b"\0"
          + safetensors([*factors, (f"{norm}.weight", "F32", [4])], {"prefix": "2,5"}))
    factors = [(f"{down}.lora_A.weight", "BF16", [2, 3]), (f"{down}.lora_B.weight", "F16", [4, 2])]
    write("adapter", json.dumps({"peft_type": "LORA", "fan_in_fan_out": True}).encode() + b"\0"
          + safetensors(factors))
    write("adapter", b"\0" + safetensors(
        [("model.layers.0.mlp.down_proj.weight.u", "F32", [3, 2]), ("model.layers.0.mlp.down_proj.weight.v", "F32", [4, 2]),
         ("model.norm.weight.delta", "F32", [4])], {"format": "ctxc-adapter", "format_version": "1", "prefix": "2,5"}))
    settings = {"format": "ctxc-experiment", "version": 1, "settings": {"model": "m"}, "about": 1}
    records = [settings] + [{"key": f"k{i}", "linf": i / 7, "match": True} for i in range(3)]
    lines = "".join(json.dumps(r) + "\n" for r in records)
    write("records", lines.encode())
    write("records", lines[:-9].encode())
    with tempfile.TemporaryDirectory() as folder:
        proof, witness = Path(folder, "proof.json"), Path(folder, "witness.json")
        run = [ctxc, "check", str(HERE / "Inputs" / "proved.mlir")]
        subprocess.run([*run, "--proof", str(proof)], capture_output=True, check=False)
        subprocess.run([*run, f"--witness={witness}"], capture_output=True, check=False)
        write("proof", proof.read_bytes())
        write("witness", witness.read_bytes() + b"\0"
              + witness.with_suffix(".safetensors").read_bytes())


def nested(write):
    """Deeper than any reader goes, at a place where it looks."""
    deep = "[" * 300 + "]" * 300
    for reader in ("index", "config", "tokenizer-json", "proof", "witness", "records"):
        write(reader, f'{{"a":{deep}}}\n'.encode())
    write("program", f'{{"a":{deep}}}'.encode())
    header = f'{{"a":{{"dtype":{deep}}}}}'.encode()
    for reader in ("safetensors", "patch", "patches"):
        write(reader, struct.pack("<Q", len(header)) + header)
    write("mlir", f"module attributes {{a = {deep}}} {{}}".encode())
    aliases = "".join(f"#a{i} = [#a{i - 1}, #a{i - 1}]\n" for i in range(1, 40))
    write("mlir", f"#a0 = [1]\n{aliases}module attributes {{a = #a39}} {{}}".encode())
    write("mlir", f"module attributes {{a = affine_map<(d0) -> ({'-' * 300}d0)>}} {{}}".encode())


def models(write):
    """The blocks of the rules, without their comments."""
    for path in sorted((TESTS / "Rules").glob("*.mlir")):
        lines = [line for line in path.read_text().splitlines()
                 if line.strip() and not line.lstrip().startswith("//")]
        write("mlir", "\n".join(lines).encode())


def programs(write):
    """The blocks of the tests, whole and damaged."""
    inputs = TESTS / "Driver" / "Inputs"
    with tempfile.TemporaryDirectory() as folder:
        for damage in ["", "unknown", "cycle", "symbol", "length", "kept", "compressed", "overlap", "cut"]:
            path = Path(folder) / "model.pt2"
            subprocess.run([sys.executable, inputs / "pt2.py", path, damage], check=True)
            if damage in ("", "compressed", "overlap", "cut"):
                write("pt2", path.read_bytes())
            if damage not in ("compressed", "overlap", "cut"):
                with zipfile.ZipFile(path) as archive:
                    write("torch-program", archive.read("model/models/model.json"))
        subprocess.run([sys.executable, inputs / "program_file.py", "write", folder], check=True)
        data = (Path(folder) / "damaged.ctxc").read_bytes()
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        write("program", header["__metadata__"]["program"].encode())


def main():
    ctxc, out = sys.argv[1], Path(sys.argv[2])
    counts = {}

    def write(reader, data):
        counts[reader] = counts.get(reader, 0) + 1
        folder = out / reader
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed-{counts[reader]:03}").write_bytes(data)

    checkpoints(write)
    tokenizers(write)
    templates(write)
    results(write, ctxc)
    models(write)
    programs(write)
    nested(write)
    vocabularies(write)
    print(counts)


if __name__ == "__main__":
    main()
