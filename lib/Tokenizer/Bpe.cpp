// Byte-pair encoding: a piece begins as characters. Of all neighbours that can merge,
// those with the least rank do, the leftmost first, until none can.
#include "Model.h"
#include "Unicode.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/DenseMap.h"
#include <queue>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

struct Merge {
  uint32_t rank;
  int32_t merged;
};

/// A token of the piece so far, in a doubly linked list; `id` is -1 once it is merged away, and for
/// a character without a token, which still separates its neighbours.
struct Symbol {
  int32_t id;
  int64_t previous, next;
};

struct Candidate {
  uint32_t rank;
  int64_t left;
  int32_t merged;
  bool operator<(const Candidate &other) const { // std::priority_queue gives the largest first
    return std::tie(other.rank, other.left) < std::tie(rank, left);
  }
};

class Bpe final : public Model {
public:
  DenseMap<std::pair<int32_t, int32_t>, Merge> merges;
  std::optional<int32_t> unknown;
  ByteTokens bytes;           // -1: without byte fallback, or with a byte missing
  std::string prefix, suffix; // for characters that do not begin a piece, or that end it
  bool fuseUnknown = false, ignoreMerges = false, unknownSeparates = false;

  void tokenize(StringRef piece, std::vector<int64_t> &ids) const override;

private:
  std::vector<Symbol> symbolsOf(StringRef piece) const;
  bool addBytes(StringRef character, std::vector<Symbol> &symbols) const;
};

} // namespace

static void add(std::vector<Symbol> &symbols, int32_t id) {
  int64_t at = symbols.size();
  symbols.push_back({id, at - 1, at + 1});
}

bool Bpe::addBytes(StringRef character, std::vector<Symbol> &symbols) const {
  for (unsigned char b : character)
    if (bytes[b] < 0)
      return false;
  for (unsigned char b : character)
    add(symbols, bytes[b]);
  return true;
}

std::vector<Symbol> Bpe::symbolsOf(StringRef piece) const {
  std::vector<Symbol> symbols;
  bool pending = false; // an unknown token has not been added yet
  forEachCodePoint(piece, [&](char32_t, size_t at, size_t size) {
    std::string decorated;
    StringRef character = piece.substr(at, size);
    if (!prefix.empty() || !suffix.empty()) {
      decorated = (at ? prefix : "") + character.str() + (at + size == piece.size() ? suffix : "");
      character = decorated;
    }
    if (std::optional<int32_t> id = vocabulary.find(character)) {
      if (pending)
        add(symbols, *unknown);
      pending = false;
      add(symbols, *id);
    } else if (addBytes(character, symbols)) {
      return;
    } else if (unknownSeparates && !unknown) {
      add(symbols, -1);
    } else if (unknown) {
      if (pending && !fuseUnknown)
        add(symbols, *unknown);
      pending = true;
    }
  });
  if (pending)
    add(symbols, *unknown);
  if (!symbols.empty())
    symbols.back().next = -1;
  return symbols;
}

void Bpe::tokenize(StringRef piece, std::vector<int64_t> &ids) const {
  if (ignoreMerges)
    if (std::optional<int32_t> whole = vocabulary.find(piece)) {
      ids.push_back(*whole);
      return;
    }
  std::vector<Symbol> symbols = symbolsOf(piece);
  std::priority_queue<Candidate> queue;
  auto offer = [&](int64_t left) {
    if (left < 0 || symbols[left].next < 0)
      return;
    auto merge = merges.find({symbols[left].id, symbols[symbols[left].next].id});
    if (merge != merges.end())
      queue.push({merge->second.rank, left, merge->second.merged});
  };
  for (size_t i = 0; i < symbols.size(); ++i)
    offer(i);
  while (!queue.empty()) {
    Candidate top = queue.top();
    queue.pop();
    Symbol &left = symbols[top.left];
    if (left.id < 0 || left.next < 0)
      continue;
    // Neighbours may have changed since this candidate was added.
    Symbol &right = symbols[left.next];
    auto merge = merges.find({left.id, right.id});
    if (merge == merges.end() || merge->second.merged != top.merged)
      continue;
    left.id = top.merged;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0)
      symbols[left.next].previous = top.left;
    offer(left.previous);
    offer(top.left);
  }
  for (const Symbol &symbol : symbols)
    if (symbol.id >= 0)
      ids.push_back(symbol.id);
}

/// Merges by the ids of their parts.
static Error resolveMerges(ModelText &text, const Bpe &bpe,
                           DenseMap<std::pair<int32_t, int32_t>, Merge> &merges) {
  for (size_t i = 0; i < text.merges.size(); ++i) {
    const auto &[left, right] = text.merges[i];
    auto missing = [&](StringRef token) {
      return makeError(text.place + ".merges[" + Twine(i) + "]: " + quoted(token) +
                       " is not in the vocabulary");
    };
    std::optional<int32_t> l = bpe.vocabulary.find(left), r = bpe.vocabulary.find(right);
    if (!l)
      return missing(left);
    if (!r)
      return missing(right);
    StringRef tail = right;
    if (!bpe.prefix.empty() && tail.size() >= bpe.prefix.size())
      tail = tail.drop_front(bpe.prefix.size());
    std::string whole = left + tail.str();
    std::optional<int32_t> merged = bpe.vocabulary.find(whole);
    if (!merged)
      return missing(whole);
    merges[{*l, *r}] = {uint32_t(i), *merged};
  }
  return Error::success();
}

static Error readUnknown(const Field &field, Bpe &bpe) {
  if (field.isNull())
    return Error::success();
  Expected<std::string> token = field.string();
  if (!token)
    return token.takeError();
  bpe.unknown = bpe.vocabulary.find(*token);
  return bpe.unknown ? Error::success() : field.fail(quoted(*token) + " is not in the vocabulary");
}

Expected<std::unique_ptr<Model>> text::makeBpe(ModelText text) {
  json::Value settings = std::move(text.settings);
  Field field(&settings, text.place);
  if (Error error = field.onlyKeys({"type", "dropout", "unk_token", "continuing_subword_prefix",
                                    "end_of_word_suffix", "fuse_unk", "byte_fallback",
                                    "ignore_merges", "unknown_separates"}))
    return std::move(error);
  const json::Value *dropout = settings.getAsObject()->get("dropout");
  if (dropout && dropout->kind() != json::Value::Null && dropout->getAsNumber() != 0.0)
    return field["dropout"].fail("tokens would be drawn at random; expected null");

  auto bpe = std::make_unique<Bpe>();
  bpe->vocabulary = std::move(text.vocabulary);
  Expected<std::string> prefix = field["continuing_subword_prefix"].string("");
  Expected<std::string> suffix = field["end_of_word_suffix"].string("");
  Expected<bool> fuse = field["fuse_unk"].boolean(false);
  Expected<bool> fallback = field["byte_fallback"].boolean(false);
  Expected<bool> ignore = field["ignore_merges"].boolean(false);
  // Ours: what lies on both sides of a character that no token has is not merged, as in llama.cpp.
  Expected<bool> separates = field["unknown_separates"].boolean(false);
  Error error = joinErrors(prefix.takeError(), suffix.takeError());
  for (Expected<bool> *each : {&fuse, &fallback, &ignore, &separates})
    error = joinErrors(std::move(error), each->takeError());
  if (error)
    return std::move(error);
  bpe->prefix = *prefix;
  bpe->suffix = *suffix;
  bpe->fuseUnknown = *fuse;
  bpe->ignoreMerges = *ignore;
  bpe->unknownSeparates = *separates;
  bpe->bytes = *fallback ? byteTokens(bpe->vocabulary) : noByteTokens();
  if (Error error = readUnknown(field["unk_token"], *bpe))
    return std::move(error);
  if (Error error = resolveMerges(text, *bpe, bpe->merges))
    return std::move(error);
  return bpe;
}
