#include "Decoder.h"
#include "Normalizer.h"
#include "Pattern.h"
#include "PreTokenizer.h"
#include "Unicode.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <functional>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

using Tokens = std::vector<std::string>;
using DecoderOr = Expected<std::unique_ptr<Decoder>>;

class Step final : public Decoder {
public:
  using Function = std::function<Expected<Tokens>(Tokens)>;
  /// `keeping` is the same for Parts::Kept, where that differs.
  explicit Step(Function function, Function keeping)
      : function(std::move(function)), keeping(std::move(keeping)) {}
  Expected<Tokens> apply(Tokens tokens, Parts parts) const override {
    return (parts == Parts::Kept && keeping ? keeping : function)(std::move(tokens));
  }

private:
  Function function, keeping;
};

struct Sequence final : Decoder {
  std::vector<std::unique_ptr<Decoder>> steps;
  Expected<Tokens> apply(Tokens tokens, Parts parts) const override {
    for (const std::unique_ptr<Decoder> &step : steps) {
      Expected<Tokens> next = step->apply(std::move(tokens), parts);
      if (!next)
        return next;
      tokens = std::move(*next);
    }
    return tokens;
  }
};

} // namespace

static DecoderOr step(Step::Function function, Step::Function keeping = nullptr) {
  return std::make_unique<Step>(std::move(function), std::move(keeping));
}

/// The bytes that the characters of a byte-level token stand for; a token with another
/// character (an added one) is unchanged.
static std::string bytesOf(const std::string &token) {
  std::string bytes;
  bool all = true;
  forEachCodePoint(token, [&](char32_t c, size_t, size_t) {
    int b = byteOfCharacter(c);
    all &= b >= 0;
    bytes += char(b);
  });
  return all ? bytes : token;
}

static std::string joinByteLevel(const Tokens &tokens) {
  std::string bytes;
  for (const std::string &token : tokens)
    bytes += bytesOf(token);
  return bytes;
}

/// Turns runs of byte tokens into their text, with U+FFFD for each byte of a run that is not UTF-8.
static Tokens decodeByteFallback(const Tokens &tokens) {
  Tokens out;
  std::string run;
  auto flush = [&] {
    if (run.empty())
      return;
    std::string text = validUtf8(run);
    if (text != run) {
      text.clear();
      for (size_t i = 0; i < run.size(); ++i)
        text += "\xef\xbf\xbd";
    }
    out.push_back(std::move(text));
    run.clear();
  };
  for (const std::string &token : tokens) {
    int byte = byteOfToken(token);
    if (byte >= 0) {
      run += char(byte);
      continue;
    }
    flush();
    out.push_back(token);
  }
  flush();
  return out;
}

/// Turns byte tokens into their bytes.
static Tokens keepByteFallback(Tokens tokens) {
  for (std::string &token : tokens)
    if (int byte = byteOfToken(token); byte >= 0)
      token = withMarkedBytes(std::string(1, char(byte)));
  return tokens;
}

/// Removes up to `count` characters `c` from the front of `text`, or from its back.
static StringRef stripFront(StringRef text, StringRef c, int64_t count) {
  while (count-- > 0 && text.consume_front(c))
    ;
  return text;
}
static StringRef stripBack(StringRef text, StringRef c, int64_t count) {
  while (count-- > 0 && text.consume_back(c))
    ;
  return text;
}

static DecoderOr readStrip(const Field &field) {
  if (Error error = field.onlyKeys({"type", "content", "start", "stop"}))
    return std::move(error);
  Expected<char32_t> content = field["content"].character();
  if (!content)
    return content.takeError();
  Expected<int64_t> start = field["start"].count();
  if (!start)
    return start.takeError();
  Expected<int64_t> stop = field["stop"].count();
  if (!stop)
    return stop.takeError();
  std::string c;
  append(c, *content);
  return step([=, start = *start, stop = *stop](Tokens tokens) {
    for (std::string &token : tokens)
      token = stripBack(stripFront(token, c, start), c, stop).str();
    return tokens;
  });
}

static DecoderOr readReplace(const Field &field) {
  Expected<Replacement> replacement = Replacement::read(field);
  if (!replacement)
    return replacement.takeError();
  return step([r = *replacement](Tokens tokens) -> Expected<Tokens> {
    for (std::string &token : tokens) {
      Expected<std::string> replaced = r.in(token);
      if (!replaced)
        return replaced.takeError();
      token = std::move(*replaced);
    }
    return tokens;
  });
}

static DecoderOr readMetaspace(const Field &field) {
  if (Error error = field.onlyKeys(
          {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"}))
    return std::move(error);
  Expected<char32_t> replacement = field["replacement"].character();
  if (!replacement)
    return replacement.takeError();
  Expected<Prepend> prepend = readPrependScheme(field);
  if (!prepend)
    return prepend.takeError();
  return step([mark = *replacement, strip = *prepend != Prepend::Never](Tokens tokens) {
    bool first = true;
    for (std::string &token : tokens) {
      std::string text;
      forEachCodePoint(token, [&](char32_t c, size_t, size_t) {
        if (c != mark)
          append(text, c);
        else if (!first || !strip)
          text += ' ';
      });
      token = std::move(text);
      first = false;
    }
    return tokens;
  });
}

static DecoderOr readBpe(const Field &field) {
  if (Error error = field.onlyKeys({"type", "suffix"}))
    return std::move(error);
  Expected<std::string> suffix = field["suffix"].string("</w>");
  if (!suffix)
    return suffix.takeError();
  return step(
      [suffix = Regex::literal(*suffix), where = field.place()](Tokens tokens) -> Expected<Tokens> {
        for (std::string &token : tokens) {
          Expected<std::string> text =
              replaceAll(token, suffix, &token == &tokens.back() ? "" : " ", where);
          if (!text)
            return text.takeError();
          token = std::move(*text);
        }
        return tokens;
      });
}

/// Cleans up blanks in English as BERT's detokenizer does.
static std::string cleanUp(std::string text) {
  static const std::pair<StringRef, StringRef> replacements[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (auto [from, to] : replacements)
    text = cantFail(replaceAll(text, Regex::literal(from), to, ""));
  return text;
}

static DecoderOr readWordPiece(const Field &field) {
  if (Error error = field.onlyKeys({"type", "prefix", "cleanup"}))
    return std::move(error);
  Expected<std::string> prefix = field["prefix"].string("##");
  if (!prefix)
    return prefix.takeError();
  Expected<bool> cleanup = field["cleanup"].boolean(true);
  if (!cleanup)
    return cleanup.takeError();
  return step([prefix = *prefix, cleanup = *cleanup](Tokens tokens) {
    bool first = true;
    for (std::string &token : tokens) {
      StringRef rest = token;
      if (!first)
        token = rest.consume_front(prefix) ? rest.str() : " " + token;
      if (cleanup)
        token = cleanUp(token);
      first = false;
    }
    return tokens;
  });
}

/// Of equal neighbours one is left, as models of speech repeat a token for as long as it sounds.
static DecoderOr readCtc(const Field &field) {
  if (Error error = field.onlyKeys({"type", "pad_token", "word_delimiter_token", "cleanup"}))
    return std::move(error);
  Expected<std::string> pad = field["pad_token"].string("<pad>");
  if (!pad)
    return pad.takeError();
  Expected<std::string> delimiter = field["word_delimiter_token"].string("|");
  if (!delimiter)
    return delimiter.takeError();
  Expected<bool> cleanup = field["cleanup"].boolean(true);
  if (!cleanup)
    return cleanup.takeError();
  return step([pad = Regex::literal(*pad), delimiter = Regex::literal(*delimiter),
               cleanup = *cleanup, where = field.place()](Tokens tokens) -> Expected<Tokens> {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string &token : tokens) {
      Expected<std::string> text = replaceAll(token, pad, "", where);
      if (text && cleanup)
        text = replaceAll(cleanUp(*text), delimiter, " ", where);
      if (!text)
        return text.takeError();
      token = std::move(*text);
    }
    llvm::erase_if(tokens, [](const std::string &token) { return token.empty(); });
    return tokens;
  });
}

static DecoderOr readSequence(const Field &field) {
  auto steps = readSteps<Decoder>(field, "decoders", readDecoder);
  if (!steps)
    return steps.takeError();
  auto sequence = std::make_unique<Sequence>();
  sequence->steps = std::move(*steps);
  return sequence;
}

DecoderOr text::readDecoder(const Field &field) {
  if (field.isNull())
    return nullptr;
  Expected<std::string> type = field.type();
  if (!type)
    return type.takeError();
  if (*type == "Sequence")
    return readSequence(field);
  if (*type == "ByteLevel")
    if (Error error = field.onlyKeys({"type", "add_prefix_space", "trim_offsets", "use_regex"}))
      return std::move(error);
  if (*type == "ByteFallback" || *type == "Fuse")
    if (Error error = field.onlyKeys({"type"}))
      return std::move(error);
  if (*type == "ByteLevel")
    return step([](Tokens tokens) { return Tokens{validUtf8(joinByteLevel(tokens))}; },
                [](Tokens tokens) { return Tokens{withMarkedBytes(joinByteLevel(tokens))}; });
  if (*type == "ByteFallback")
    return step([](Tokens tokens) { return decodeByteFallback(tokens); }, keepByteFallback);
  if (*type == "Fuse")
    return step([](Tokens tokens) { return Tokens{join(tokens, "")}; });
  if (*type == "Metaspace")
    return readMetaspace(field);
  if (*type == "Replace")
    return readReplace(field);
  if (*type == "Strip")
    return readStrip(field);
  if (*type == "BPEDecoder")
    return readBpe(field);
  if (*type == "WordPiece")
    return readWordPiece(field);
  if (*type == "CTC")
    return readCtc(field);
  return field.fail("the decoder " + quoted(*type) +
                    " is not supported; give token ids instead of text");
}

std::string Decoder::bytesOf(const std::string &token) const {
  const std::string front = token == "a" ? "b" : "a"; // equal neighbours may be one
  if (Expected<Tokens> three = apply({front, token, front}, Parts::Kept); !three)
    consumeError(three.takeError());
  else if (three->size() == 3)
    return withoutMarks((*three)[1]);
  Expected<Tokens> before = apply({front}, Parts::Kept);
  Expected<Tokens> both = apply({front, token}, Parts::Kept);
  if (!before || !both) {
    consumeError(joinErrors(before.takeError(), both.takeError()));
    return token;
  }
  std::string whole = join(*both, "");
  StringRef rest = whole;
  return rest.consume_front(join(*before, "")) ? withoutMarks(rest) : token;
}
