#include "GgufVocabulary.h"
#include "ctxc/Checkpoint/FormatKeys.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Tokenizer/TokenizerKeys.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

/// What of a vocabulary the file need not say.
namespace {
struct Defaults {
  StringLiteral name; ///< of tokenizer.ggml.model
  GgufModel model;
  std::optional<int64_t> bos, eos, unknown, separator, padding;
  bool addBos, addEos;
};
} // namespace

static const Defaults models[] = {
    {"llama", GgufModel::SentencePiece, 1, 2, 0, {}, {}, true, false},
    {"gpt2", GgufModel::BytePairs, 11, 11, {}, {}, {}, false, false},
    {"gemma4", GgufModel::BytePairs, {}, {}, {}, {}, {}, false, false},
    {"bert", GgufModel::WordPiece, 101, {}, 100, 102, 0, true, false},
    {"t5", GgufModel::Unigram, {}, 1, 2, {}, 0, false, true},
};

std::vector<int64_t> GgufVocabulary::before() const {
  return addBos && bos ? std::vector<int64_t>{*bos} : std::vector<int64_t>();
}

std::vector<int64_t> GgufVocabulary::after() const {
  if (model == GgufModel::WordPiece)
    return separator ? std::vector<int64_t>{*separator} : std::vector<int64_t>();
  return addEos && eos ? std::vector<int64_t>{*eos} : std::vector<int64_t>();
}

Expected<bool> text::ggufFlag(const GgufFile &file, StringRef key, bool absent) {
  if (!file.metadata().count(key.str()))
    return absent;
  if (std::optional<bool> flag = file.flag(key))
    return *flag;
  return makeError(file.file().path() + ": key " + quoted(key) + " is not true or false");
}

/// The token that the key of `role` names; without the key, `id` stays.
static Error readId(const GgufVocabulary &v, const GgufFile &file, StringRef role,
                    std::optional<int64_t> &id) {
  std::string key = ("tokenizer.ggml." + role + "_token_id").str();
  if (!file.metadata().count(key))
    return Error::success();
  id = file.integer(key);
  if (id && *id >= 0 && *id < v.size())
    return Error::success();
  return makeError(file.file().path() + ": key " + quoted(key) +
                   (id ? " = " + std::to_string(*id) : "") + " is no token; there are " +
                   Twine(v.size()));
}

/// Marks of the parts of a text whose middle is to be found: the end of the key that names one, and
/// the texts that do if no key does. llama.cpp ends a text at some of them.
struct PartMark {
  StringLiteral role, texts;
  bool ends;
};
static constexpr PartMark partMarks[] = {
    {"fim_pre",
     "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> "
     "<|prefix|>",
     false},
    {"fim_suf",
     "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> "
     "<|suffix|>",
     false},
    {"fim_mid",
     "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> "
     "<|middle|>",
     false},
    {"fim_pad", "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]", true},
    {"fim_rep", "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>", true},
    {"fim_sep", "<|file_sep|>", true}};

static SmallVector<StringRef> wordsOf(StringRef texts) {
  SmallVector<StringRef> words;
  texts.split(words, ' ');
  return words;
}

/// Tokens that end a text, or mark its parts, are symbols in llama.cpp whatever the file says their
/// kind is.
static Error markSymbols(GgufVocabulary &v, const GgufFile &file) {
  static constexpr StringLiteral ending =
      "<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> "
      "<|endoftext|> </s> <|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> "
      "<eos> <turn|> <|tool_response> <｜end▁of▁sentence｜> [e~[";
  StringMap<int64_t> ids;
  for (auto [id, token] : enumerate(v.tokens))
    ids[token] = int64_t(id);
  auto mark = [&](StringRef text, TokenKind kind) {
    auto id = ids.find(text);
    if (id != ids.end())
      v.kinds[id->second] = kind;
    return id == ids.end() ? std::nullopt : std::optional(id->second);
  };
  llvm::SmallSetVector<int64_t, 8> ends;
  for (StringRef text : wordsOf(ending))
    if (auto id = mark(text, TokenKind::Control))
      ends.insert(*id);
  for (const PartMark &part : partMarks) {
    std::optional<int64_t> named;
    if (Error error = readId(v, file, part.role, named))
      return error;
    const bool isNamed = named.has_value();
    for (StringRef text : isNamed ? SmallVector<StringRef>() : wordsOf(part.texts))
      if (auto id = mark(text, TokenKind::Control); !named)
        named = id;
    if (named && part.ends)
      ends.insert(*named);
  }
  for (StringRef role : {"eot", "eom"}) {
    std::optional<int64_t> id;
    if (Error error = readId(v, file, role, id))
      return error;
    if (id)
      ends.insert(*id);
  }
  if (v.eos)
    ends.insert(*v.eos);
  for (StringRef shown : {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"})
    mark(shown, TokenKind::UserDefined);
  auto has = [&](StringRef text) { return ids.contains(text) && ends.contains(ids[text]); };
  // The end of a part of an answer that goes on.
  bool calls = has("<|call|>") || has("<|calls|>");
  if (has("<|end|>") && calls && (has("<|flush|>") || has("<|return|>")))
    ends.remove(*mark("<|end|>", TokenKind::UserDefined));
  // Here "</s>" is HTML.
  if (has("</s>") && has("<|tool_response>"))
    ends.remove(*mark("</s>", TokenKind::Normal));
  v.ends.assign(ends.begin(), ends.end());
  llvm::sort(v.ends);
  return Error::success();
}

/// The file does not say which tokens take white space with them; llama.cpp knows it by names.
static void markStripping(GgufVocabulary &v, const GgufFile &file) {
  auto has = [&](StringRef key, ArrayRef<StringLiteral> parts) {
    std::string value = file.text(key).value_or("").lower();
    return any_of(parts, [&](StringRef part) { return StringRef(value).contains(part); });
  };
  auto idOf = [&](StringRef token) { return find(v.tokens, token) - v.tokens.begin(); };
  auto stripLeft = [&](StringRef token) {
    if (int64_t id = idOf(token); id < v.size())
      v.leftStripping.push_back(id);
  };
  if (has("tokenizer.ggml.pre", {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
      has("general.architecture", {"nomic-bert-moe", "jina-bert-v3"})) {
    stripLeft("<mask>");
  } else if (has("general.name", {"phi-3", "phi3"})) {
    for (int64_t id = 0; id < v.size(); ++id)
      if (v.isSymbol(id) && !is_contained({"<unk>", "<s>", "<|endoftext|>"}, v.tokens[id]))
        v.rightStripping.push_back(id);
  } else if (has("general.name", {"modern-bert"})) {
    stripLeft("[MASK]");
  }
}

static Error readIds(GgufVocabulary &v, const GgufFile &file) {
  for (auto [role, id] : {std::pair{"bos", &v.bos},
                          {"eos", &v.eos},
                          {"unknown", &v.unknown},
                          {"seperator", &v.separator}, // as ggml spells it
                          {"padding", &v.padding}}) {
    if (*id && **id >= v.size()) // a default
      id->reset();
    if (Error error = readId(v, file, role, *id))
      return error;
  }
  return Error::success();
}

/// Checks the kinds of values, so that none is taken for absent.
static Error checkKinds(const GgufFile &file) {
  auto check = [&](StringRef key, bool isRight, StringRef kind) {
    return isRight || !file.metadata().count(key.str())
               ? Error::success()
               : makeError(file.file().path() + ": key " + quoted(key) + " is not " + kind);
  };
  Error error = Error::success();
  for (StringRef key : {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.chat_template"})
    error = joinErrors(std::move(error), check(key, bool(file.text(key)), "text"));
  for (StringRef key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"})
    error = joinErrors(std::move(error), check(key, bool(file.texts(key)), "an array of texts"));
  for (StringRef key : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"})
    error =
        joinErrors(std::move(error), check(key, bool(file.numbers(key)), "an array of numbers"));
  return error;
}

/// Whether a token is a byte by its text, "<0x0A>".
static bool isByte(StringRef token) {
  unsigned byte;
  return token.size() == 6 && token.consume_front("<0x") && token.consume_back(">") &&
         !token.getAsInteger(16, byte);
}

static Error readTokens(GgufVocabulary &v, const GgufFile &file) {
  StringRef path = file.file().path();
  auto tokens = file.texts("tokenizer.ggml.tokens");
  if (!tokens || tokens->empty())
    return makeError(path + ": has no 'tokenizer.ggml.tokens': give token ids instead of text");
  size_t count = tokens->size();
  for (auto [id, token] : enumerate(*tokens)) // as llama.cpp calls those without a text
    v.tokens.push_back(token.empty() ? "[EMPTY_" + std::to_string(id) + "]" : token.str());
  v.scores = file.numbers("tokenizer.ggml.scores").value_or(std::vector<double>(count));
  std::vector<double> kinds =
      file.numbers("tokenizer.ggml.token_type").value_or(std::vector<double>(count, 1));
  if (v.scores.size() != count || kinds.size() != count)
    return makeError(path + ": has " + Twine(count) + " tokens, " + Twine(v.scores.size()) +
                     " scores and " + Twine(kinds.size()) +
                     " token types; expected as many of each");
  for (double kind : kinds) {
    if (!(kind >= 1 && kind <= 6))
      return makeError(path + ": 'tokenizer.ggml.token_type' has an entry that is not from 1 to 6");
    v.kinds.push_back(TokenKind(int(kind)));
  }
  // llama.cpp finds bytes by their texts.
  if (!file.metadata().count("tokenizer.ggml.token_type") &&
      file.text("tokenizer.ggml.model") == StringRef("llama"))
    for (auto [token, kind] : zip(v.tokens, v.kinds))
      if (isByte(token))
        kind = TokenKind::Byte;
  return Error::success();
}

static Error readSplit(GgufVocabulary &v, const GgufFile &file, StringRef model) {
  StringRef key = "tokenizer.ggml.pre", pre = file.text(key).value_or("");
  if (model == "gemma4")
    pre = "gemma4";
  if (pre.empty()) {
    v.warning = (file.file().path() + ": has no key " + quoted(key) +
                 ": its texts are split as by llama.cpp, whose default may not be what the model "
                 "was trained with; convert the model again")
                    .str();
    pre = "default";
  }
  v.split = findGgufSplit(pre);
  if (v.split)
    return Error::success();
  std::string names;
  for (const GgufSplit &each : ggufSplits())
    names += (names.empty() ? "" : ", ") + join(llvm::split(each.names, ' '), ", ");
  return makeError(file.file().path() + ": key " + quoted(key) + " = " + quoted(pre) +
                   " is not known: give token ids instead of text; known are " + names);
}

Expected<GgufVocabulary> GgufVocabulary::read(const GgufFile &file) {
  StringRef path = file.file().path(), key = "tokenizer.ggml.model";
  GgufVocabulary v;
  Problems problems;
  checkGgufKeys(
      file, [](StringRef key) { return key.starts_with("tokenizer."); }, ggufTokenizerKeys,
      problems);
  if (!problems.empty())
    return problems.take();
  if (Error error = checkKinds(file))
    return std::move(error);
  if (Error error = readTokens(v, file))
    return std::move(error);
  StringRef name = file.text(key).value_or("");
  const Defaults *defaults = find_if(models, [&](const Defaults &d) { return d.name == name; });
  if (defaults == std::end(models))
    return makeError(path + ": key " + quoted(key) + " = " + quoted(name) +
                     " is not supported; llama, gpt2, gemma4, bert and t5 are: give token ids "
                     "instead of text");
  v.model = defaults->model;
  v.bos = defaults->bos;
  v.eos = defaults->eos;
  v.unknown = defaults->unknown;
  v.separator = defaults->separator;
  v.padding = defaults->padding;
  bool bosByDefault = defaults->addBos;
  if (v.model == GgufModel::BytePairs) {
    if (Error error = readSplit(v, file, name))
      return std::move(error);
    if (v.split->has(GgufSplit::NoBos))
      v.bos.reset();
    bosByDefault = v.split->has(GgufSplit::Bos);
  }
  if (Error error = readIds(v, file))
    return std::move(error);
  Expected<bool> addBos = ggufFlag(file, "tokenizer.ggml.add_bos_token", bosByDefault);
  Expected<bool> addEos = ggufFlag(file, "tokenizer.ggml.add_eos_token", defaults->addEos);
  if (!addBos || !addEos)
    return joinErrors(addBos.takeError(), addEos.takeError());
  v.addBos = *addBos || (v.split && v.split->has(GgufSplit::AlwaysBos));
  v.addEos = *addEos;
  if (v.model == GgufModel::WordPiece) { // both always
    v.addBos = true;
    v.addEos = false;
  }
  for (auto [isAdded, id, what] : {std::tuple{v.addBos, v.bos, "bos"},
                                   {v.addEos, v.eos, "eos"},
                                   {v.model == GgufModel::WordPiece, v.separator, "seperator"}})
    if (isAdded && !id)
      return makeError(path + ": puts a token around each text and has no 'tokenizer.ggml." + what +
                       "_token_id': give token ids instead of text");
  if (Error error = markSymbols(v, file))
    return std::move(error);
  markStripping(v, file);
  return v;
}
