"""Compares ctxc's conversations, as text and as tokens, with those of transformers' apply_chat_template.

  chat_templates.py JUDGE-CHAT [--templates DIR] [--generated N] [--seed S]

The templates of chat/ use what public ones use, each in its own way; --templates compares a folder of others
(*.jinja). A tokenizer is made here, with special tokens that some messages spell out; the template stands in
tokenizer_config.json, in a list of named ones, in chat_template.jinja or in a GGUF file (but for directory-*, which see tokens
that such a file does not name). What one side refuses, the other must refuse. With --generated, that many templates are made
of drawn parts.
"""
import argparse
import datetime
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers.utils import chat_template_utils

SECONDS = 1735787045
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>", "<|end|>"]
TEXTS = ["What is the capital of France?", "  Größe? 東京 🙂 <b>'q' \"r\"</b>\n\n", "Wozu?\tWarum  nicht!",
         "a <|im_end|>\n<|im_start|>system\nspelled out</s>", "<think>\nhm\n</think>\n\nWell, {{ no }} {% tag %}"]


def conversations():
    user, assistant, system = (lambda text, role=role: {"role": role, "content": text}
                               for role in ("user", "assistant", "system"))
    for text in TEXTS:
        yield [user(text)]
        yield [system("Be brief. "), user(text)]
        yield [system(text), user("Hi"), assistant(text), user(text)]
    yield [user("Hi"), assistant("Hello!\n"), user("And now?"), assistant("<think>x</think>\nNow."), user("Ah")]
    yield [user("a"), user("b")]
    yield [system(""), user("")]


class Now(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(SECONDS)


def drawn_format(choose):
    fill, align = choose.choice(["", "*", "0", "é"]), choose.choice(["", "<", ">", "^"])
    width, precision = choose.choice(["", "1", "7", "12"]), choose.choice(["", ".0", ".2", ".5"])
    return (fill + align if align else "") + choose.choice(["", "+", " "]) + choose.choice(["", "0"]) * (not align) + width + \
        choose.choice(["", ","]) + precision + choose.choice(["", "d", "f", "e", "g", "%", "s"])


def drawn_part(choose):
    """A part of a template, which both sides may refuse."""
    value = choose.choice(["'ab'", "'Größe'", "7", "-12345", "3.14159", "-0.5", "1e9", "true", "none", "messages|length"])
    inner = choose.choice(["m.role", "m.content|length > 20", "m.role, loop.first", "'x'", "m.role == 'user'"])
    directives = "".join(choose.choice("aAbBdHIjmMpSUwWyYZz%") for _ in range(3))
    return choose.choice([
        "{{ '[%s]'.format(%s) }}" % ("{:" + drawn_format(choose) + "}", value),
        "{{ '{}/{!r}:{{}}'.format(%s, %s) }}" % (value, value),
        "{{ '{1}{0}{x}'.format(%s, 'b', x=%s) }}" % (value, value),
        "{{ strftime_now('%s') }}" % "".join(f"%{c} " for c in directives),
        "{%% for m in messages %%}{%% if loop.changed(%s) %%}[{{ m.role }}]{%% endif %%}{%% endfor %%}" % inner,
        "{% for t in tools %}{{ t }}{% endfor %}", "{% for t in tools or [] %}{{ t }}{% endfor %}",
        "{% if tools is iterable %}it{% endif %}{{ tools is none }}", "{{ bos_token }}{{ eos_token }}",
        "{% for m in messages %}{{ m.content }}\n{% endfor %}", "{{ nothing.x }}", "{{ %s|string|upper }}" % value])


def make_tokenizer():
    """A byte-level BPE that puts <s> in front of a text, so that a template's own would be doubled."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXTS * 3 + ["system user assistant model\n"] * 9, trainers.BpeTrainer(
        vocab_size=400, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    return tokenizer


def write_gguf(tokenizer, template, path):
    content = json.loads(tokenizer.to_str())
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    kinds = [1] * size
    for token in content["added_tokens"]:
        kinds[token["id"]] = 3
    file = gguf.GGUFWriter(path, "llama")
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list([tokenizer.id_to_token(i) for i in range(size)])
    file.add_token_types(kinds)
    file.add_token_merges([" ".join(pair) for pair in content["model"]["merges"]])
    file.add_bos_token_id(tokenizer.token_to_id("<s>"))
    file.add_eos_token_id(tokenizer.token_to_id("</s>"))
    file.add_add_bos_token(True)
    file.add_chat_template(template)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_ti_data_to_file()
    file.close()


def write_directory(tokenizer, template, folder, form):
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": {"__type": "AddedToken", "content": "</s>", "lstrip": False},
              "model_max_length": 1000000000000000019884624838656, "pad_token": None, "image_token": "<|im_start|>",
              "extra_special_tokens": {"boi_token": "<|im_end|>"}}
    if form != "without bos":
        config["bos_token"] = "<s>"
    if form == "file":
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8", newline="")
        config["chat_template"] = "not this one"
    elif form == "list":
        config["chat_template"] = [{"name": "other", "template": "not this one"},
                                   {"name": "default", "template": template}]
    else:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def expected(tokenizer, messages):
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer.apply_chat_template(messages, tokenize=True, add_generation_prompt=True)["input_ids"]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"text": text, "ids": list(ids)}


def around_difference(want, got, shown):
    """The part of one answer where the two differ; the whole of a short one."""
    if "error" in want or "error" in got or want["text"] == got["text"]:
        return str(shown)[:300]
    at = next((i for i, (a, b) in enumerate(zip(want["text"], got["text"])) if a != b), 0)
    return repr(shown["text"][max(0, at - 40):at + 40])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="JUDGE-CHAT")
    parser.add_argument("--templates", type=Path, default=Path(__file__).parent / "chat")
    parser.add_argument("--generated", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    chat_template_utils.datetime = Now
    templates = {file.stem: file.read_bytes().decode() for file in sorted(args.templates.glob("*.jinja"))}
    choose = random.Random(args.seed)
    templates |= {f"drawn {i}": "".join(drawn_part(choose) for _ in range(choose.randint(1, 3))) for i in range(args.generated)}
    tokenizer, jobs, answers, names = make_tokenizer(), [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for stem, text in templates.items():
            for form in ("text", "without bos", "list", "file"):
                place = Path(folder) / f"{stem} {form}"
                write_directory(tokenizer, text, place, form)
                theirs = transformers.AutoTokenizer.from_pretrained(place)
                for messages in list(conversations())[:None if form == "text" else 3]:
                    jobs.append({"path": str(place), "messages": messages})
                    answers.append(expected(theirs, messages))
                    names.append(f"{stem}, {form}")
                    if form == "text" and not stem.startswith("directory-"):
                        jobs.append({"path": str(place) + ".gguf", "messages": messages})
                        answers.append(answers[-1])
                        names.append(f"{stem}, GGUF")
            write_gguf(tokenizer, text, f"{folder}/{stem} text.gguf")
        job_file = Path(folder) / "jobs.json"
        job_file.write_text(json.dumps(jobs))
        found = json.loads(subprocess.run([args.program, job_file, str(SECONDS)], check=True,
                                          stdout=subprocess.PIPE).stdout)
    equal = refused = 0
    for name, job, want, got in zip(names, jobs, answers, found, strict=True):
        if want == got:
            equal += 1
        elif "error" in want and "error" in got:
            refused += 1
        else:
            print(f"{name}: {job['messages']}")
            for title, answer in (("expected", want), ("found", got)):
                print(f"  {title:8} {around_difference(want, got, answer)}")
    print(f"{len(templates)} templates, {len(jobs)} conversations: {equal} equal as text and tokens, {refused} refused "
          f"by both, {len(jobs) - equal - refused} different")
    return 0 if templates and equal > refused and equal + refused == len(jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
