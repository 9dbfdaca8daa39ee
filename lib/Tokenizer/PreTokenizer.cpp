#include "PreTokenizer.h"
#include "Normalizer.h"
#include "Pattern.h"
#include "Unicode.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include <functional>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

/// What happens to the text that an expression matches.
enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

struct Span {
  Range range;
  bool match;
};

} // namespace

/// Matches and the text between them, in order.
static std::vector<Span> spansOf(StringRef text, ArrayRef<Range> matches, bool invert) {
  std::vector<Span> spans;
  size_t at = 0;
  for (const Range &match : matches) {
    if (match.begin > at)
      spans.push_back({{at, match.begin}, invert});
    spans.push_back({match, !invert});
    at = match.end;
  }
  if (at < text.size())
    spans.push_back({{at, text.size()}, invert});
  return spans;
}

/// Spans merged as `behavior` says; for MergedWithNext, `spans` runs backwards.
static std::vector<Span> merged(ArrayRef<Span> spans, Behavior behavior) {
  std::vector<Span> out;
  bool previous = false;
  for (const Span &span : spans) {
    bool join = behavior == Behavior::Contiguous ? span.match == previous : span.match && !previous;
    previous = span.match;
    if (join && !out.empty()) {
      out.back().range.begin = std::min(out.back().range.begin, span.range.begin);
      out.back().range.end = std::max(out.back().range.end, span.range.end);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

static void cut(const Piece &piece, ArrayRef<Range> matches, Behavior behavior, bool invert,
                std::vector<Piece> &out) {
  std::vector<Span> spans = spansOf(piece.text, matches, invert);
  if (behavior == Behavior::MergedWithNext) {
    std::reverse(spans.begin(), spans.end());
    spans = merged(spans, behavior);
    std::reverse(spans.begin(), spans.end());
  } else if (behavior == Behavior::MergedWithPrevious || behavior == Behavior::Contiguous) {
    spans = merged(spans, behavior);
  }
  for (const Span &span : spans) {
    auto [begin, end] = span.range;
    if (begin == end || (behavior == Behavior::Removed && span.match))
      continue;
    out.push_back({piece.text.substr(begin, end - begin), piece.first && begin == 0});
  }
}

static std::vector<Range> charactersThat(StringRef text, bool (*test)(char32_t)) {
  std::vector<Range> matches;
  forEachCodePoint(text, [&](char32_t c, size_t at, size_t size) {
    if (test(c))
      matches.push_back({at, at + size});
  });
  return matches;
}

static bool startsWith(StringRef text, char32_t c) {
  size_t size;
  return !text.empty() && firstCodePoint(text, size) == c;
}

namespace {

class Step final : public PreTokenizer {
public:
  using Function = std::function<Error(Piece, std::vector<Piece> &)>;
  explicit Step(Function function) : function(std::move(function)) {}
  Error split(Piece piece, std::vector<Piece> &out) const override {
    return function(std::move(piece), out);
  }

private:
  Function function;
};

struct Sequence final : PreTokenizer {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  Error split(Piece piece, std::vector<Piece> &out) const override {
    std::vector<Piece> pieces;
    pieces.push_back(std::move(piece));
    for (const std::unique_ptr<PreTokenizer> &step : steps) {
      std::vector<Piece> next;
      for (Piece &each : pieces)
        if (Error error = step->split(std::move(each), next))
          return error;
      pieces = std::move(next);
    }
    std::move(pieces.begin(), pieces.end(), std::back_inserter(out));
    return Error::success();
  }
};

} // namespace

using PreTokenizerOr = Expected<std::unique_ptr<PreTokenizer>>;

static PreTokenizerOr step(Step::Function function) {
  return std::make_unique<Step>(std::move(function));
}

static PreTokenizerOr cutter(Regex regex, Behavior behavior, bool invert) {
  return step([=](Piece piece, std::vector<Piece> &out) -> Error {
    Expected<std::vector<Range>> matches = regex.find(piece.text);
    if (!matches)
      return matches.takeError();
    cut(piece, *matches, behavior, invert, out);
    return Error::success();
  });
}

static PreTokenizerOr cutterAt(bool (*test)(char32_t), Behavior behavior) {
  return step([=](Piece piece, std::vector<Piece> &out) {
    cut(piece, charactersThat(piece.text, test), behavior, false, out);
    return Error::success();
  });
}

static Expected<Behavior> readBehavior(const Field &field, StringRef absent) {
  Expected<std::string> name =
      field.string(absent.empty() ? std::optional<std::string>() : absent.str());
  if (!name)
    return name.takeError();
  static const std::pair<StringRef, Behavior> behaviors[] = {
      {"Removed", Behavior::Removed},
      {"Isolated", Behavior::Isolated},
      {"MergedWithPrevious", Behavior::MergedWithPrevious},
      {"MergedWithNext", Behavior::MergedWithNext},
      {"Contiguous", Behavior::Contiguous}};
  for (auto [known, behavior] : behaviors)
    if (*name == known)
      return behavior;
  return field.fail("found " + quoted(*name) +
                    ", expected Removed, Isolated, MergedWithPrevious, "
                    "MergedWithNext or Contiguous");
}

Expected<Prepend> text::readPrependScheme(const Field &field) {
  Expected<bool> legacy = field["add_prefix_space"].boolean(true);
  if (!legacy)
    return legacy.takeError();
  Expected<std::string> scheme = field["prepend_scheme"].string(*legacy ? "always" : "never");
  if (!scheme)
    return scheme.takeError();
  if (!*legacy && *scheme != "never")
    return field.fail("add_prefix_space is false, and prepend_scheme " + quoted(*scheme));
  if (*scheme == "always")
    return Prepend::Always;
  if (*scheme == "first")
    return Prepend::First;
  if (*scheme == "never")
    return Prepend::Never;
  return field["prepend_scheme"].fail("found " + quoted(*scheme) +
                                      ", expected always, first or never");
}

static PreTokenizerOr readMetaspace(const Field &field) {
  if (Error error = field.onlyKeys(
          {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"}))
    return std::move(error);
  Expected<char32_t> replacement = field["replacement"].character();
  if (!replacement)
    return replacement.takeError();
  Expected<Prepend> prepend = readPrependScheme(field);
  if (!prepend)
    return prepend.takeError();
  Expected<bool> split = field["split"].boolean(true);
  if (!split)
    return split.takeError();
  std::string mark;
  append(mark, *replacement);
  Regex spaces = Regex::literal(" "), marks = Regex::literal(mark);
  return step([=, c = *replacement, prepend = *prepend, split = *split,
               where = field.place()](Piece piece, std::vector<Piece> &out) -> Error {
    Expected<std::string> text = replaceAll(piece.text, spaces, mark, where);
    if (!text)
      return text.takeError();
    bool wanted = prepend == Prepend::Always || (prepend == Prepend::First && piece.first);
    piece.text = wanted && !startsWith(*text, c) ? mark + *text : std::move(*text);
    if (!split) {
      out.push_back(std::move(piece));
      return Error::success();
    }
    Expected<std::vector<Range>> matches = marks.find(piece.text);
    if (!matches)
      return matches.takeError();
    cut(piece, *matches, Behavior::MergedWithNext, false, out);
    return Error::success();
  });
}

static PreTokenizerOr readByteLevel(const Field &field) {
  // trim_offsets concerns offsets alone.
  if (Error error = field.onlyKeys({"type", "add_prefix_space", "trim_offsets", "use_regex"}))
    return std::move(error);
  Expected<bool> prefix = field["add_prefix_space"].boolean();
  if (!prefix)
    return prefix.takeError();
  Expected<bool> useRegex = field["use_regex"].boolean(true);
  if (!useRegex)
    return useRegex.takeError();
  Expected<Regex> regex = Regex::compile(
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
      field.place());
  if (!regex)
    return regex.takeError();
  return step([prefix = *prefix, useRegex = *useRegex,
               regex = *regex](Piece piece, std::vector<Piece> &out) -> Error {
    if (prefix && !StringRef(piece.text).starts_with(" "))
      piece.text = " " + piece.text;
    size_t from = out.size();
    if (useRegex) {
      Expected<std::vector<Range>> matches = regex.find(piece.text);
      if (!matches)
        return matches.takeError();
      cut(piece, *matches, Behavior::Isolated, false, out);
    } else {
      out.push_back(std::move(piece));
    }
    for (size_t i = from; i < out.size(); ++i)
      out[i].text = byteLevel(out[i].text);
    return Error::success();
  });
}

static PreTokenizerOr readSplit(const Field &field) {
  if (Error error = field.onlyKeys({"type", "pattern", "behavior", "invert"}))
    return std::move(error);
  Expected<Regex> pattern = readPattern(field["pattern"]);
  if (!pattern)
    return pattern.takeError();
  Expected<Behavior> behavior = readBehavior(field["behavior"], "");
  if (!behavior)
    return behavior.takeError();
  Expected<bool> invert = field["invert"].boolean(false);
  if (!invert)
    return invert.takeError();
  return cutter(std::move(*pattern), *behavior, *invert);
}

static PreTokenizerOr readDigits(const Field &field) {
  if (Error error = field.onlyKeys({"type", "individual_digits"}))
    return std::move(error);
  Expected<bool> individual = field["individual_digits"].boolean(false);
  if (!individual)
    return individual.takeError();
  return cutterAt(isNumeric, *individual ? Behavior::Isolated : Behavior::Contiguous);
}

static PreTokenizerOr readCharDelimiterSplit(const Field &field) {
  if (Error error = field.onlyKeys({"type", "delimiter"}))
    return std::move(error);
  Expected<char32_t> delimiter = field["delimiter"].character();
  if (!delimiter)
    return delimiter.takeError();
  std::string text;
  append(text, *delimiter);
  return cutter(Regex::literal(text), Behavior::Removed, false);
}

static PreTokenizerOr readFixedLength(const Field &field) {
  if (Error error = field.onlyKeys({"type", "length"}))
    return std::move(error);
  Expected<int64_t> length = field["length"].count(5);
  if (!length)
    return length.takeError();
  if (*length == 0)
    return field["length"].fail("found 0, expected at least 1");
  return step([most = *length](Piece piece, std::vector<Piece> &out) -> Error {
    std::vector<Range> parts;
    int64_t count = 0;
    forEachCodePoint(piece.text, [&](char32_t, size_t at, size_t size) {
      if (count++ % most == 0)
        parts.push_back({at, at});
      parts.back().end = at + size;
    });
    cut(piece, parts, Behavior::Isolated, false, out);
    return Error::success();
  });
}

static PreTokenizerOr readPunctuation(const Field &field) {
  if (Error error = field.onlyKeys({"type", "behavior"}))
    return std::move(error);
  Expected<Behavior> behavior = readBehavior(field["behavior"], "Isolated");
  if (!behavior)
    return behavior.takeError();
  return cutterAt(isPunctuation, *behavior);
}

static PreTokenizerOr readSequence(const Field &field) {
  auto steps = readSteps<PreTokenizer>(field, "pretokenizers", readPreTokenizer);
  if (!steps)
    return steps.takeError();
  auto sequence = std::make_unique<Sequence>();
  sequence->steps = std::move(*steps);
  return sequence;
}

static PreTokenizerOr readBert() {
  auto sequence = std::make_unique<Sequence>();
  sequence->steps.push_back(cantFail(cutterAt(isWhiteSpace, Behavior::Removed)));
  sequence->steps.push_back(cantFail(cutterAt(isPunctuation, Behavior::Isolated)));
  return sequence;
}

/// \w+|[^\w\s]+
static PreTokenizerOr readWhitespace() {
  auto sequence = std::make_unique<Sequence>();
  sequence->steps.push_back(cantFail(cutterAt(isWhiteSpace, Behavior::Removed)));
  sequence->steps.push_back(cantFail(cutterAt(isWord, Behavior::Contiguous)));
  return sequence;
}

PreTokenizerOr text::readPreTokenizer(const Field &field) {
  if (field.isNull())
    return nullptr;
  Expected<std::string> type = field.type();
  if (!type)
    return type.takeError();
  if (*type == "Sequence")
    return readSequence(field);
  if (*type == "Metaspace")
    return readMetaspace(field);
  if (*type == "ByteLevel")
    return readByteLevel(field);
  if (*type == "Split")
    return readSplit(field);
  if (*type == "Digits")
    return readDigits(field);
  if (*type == "CharDelimiterSplit")
    return readCharDelimiterSplit(field);
  if (*type == "FixedLength")
    return readFixedLength(field);
  if (*type == "Punctuation")
    return readPunctuation(field);
  static constexpr StringLiteral withoutKeys[] = {"BertPreTokenizer", "Whitespace",
                                                  "WhitespaceSplit"};
  if (is_contained(withoutKeys, StringRef(*type)))
    if (Error error = field.onlyKeys({"type"}))
      return std::move(error);
  if (*type == "BertPreTokenizer")
    return readBert();
  if (*type == "Whitespace")
    return readWhitespace();
  if (*type == "WhitespaceSplit")
    return cutterAt(isWhiteSpace, Behavior::Removed);
  return field.fail("the pre-tokenizer " + quoted(*type) +
                    " is not supported; give token ids instead of text");
}
