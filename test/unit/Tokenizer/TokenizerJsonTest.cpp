// tokenizer.json: the committed files compared with the tokenizers package's results, and
// everything that may be wrong in such a file.
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "test/unit/Checkpoint/Fixture.h"
#include <functional>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

const char *const kinds[] = {"byte-level", "metaspace", "tiny", "word-piece"};

std::string folder(StringRef kind) { return (CTXC_SOURCE_DIR "/test/tokenizers/" + kind).str(); }

json::Value jsonOf(const std::string &path) {
  auto text = MemoryBuffer::getFile(path);
  return cantFail(json::parse((*text)->getBuffer()));
}

std::string textOf(const json::Value &value) {
  std::string text;
  raw_string_ostream(text) << value;
  return text;
}

std::vector<int64_t> idsOf(const json::Array &array) {
  std::vector<int64_t> ids;
  for (const json::Value &id : array)
    ids.push_back(*id.getAsInteger());
  return ids;
}

TEST(TokenizerJson, AsTheTokenizersPackage) {
  for (StringRef kind : kinds) {
    std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(folder(kind)));
    EXPECT_TRUE(tokenizer->addsSpecial());
    json::Value expected = jsonOf(folder(kind) + "/expected.json");
    ASSERT_GT(expected.getAsArray()->size(), 10u);
    for (const json::Value &each : *expected.getAsArray()) {
      const json::Object &object = *each.getAsObject();
      std::string text = object.getString("text")->str();
      std::vector<int64_t> plain = idsOf(*object.getArray("plain"));
      EXPECT_EQ(cantFail(tokenizer->encode(text, false)), plain) << kind.str() << " " << text;
      EXPECT_EQ(cantFail(tokenizer->encode(text, true)), idsOf(*object.getArray("special")));
      EXPECT_EQ(cantFail(tokenizer->decode(plain)), object.getString("decoded")->str());
    }
  }
}

TEST(TokenizerJson, BrokenUtf8IsReplacedForEachMaximalPart) {
  std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(folder("byte-level")));
  const std::string bad = "\xef\xbf\xbd";
  for (auto [bytes, text] : {std::pair<std::string, std::string>{"a\xff\xfe", "a" + bad + bad},
                             {"\xe2\x82", bad},
                             {"\xe2\x82x", bad + "x"},
                             {"\xf0\x9f\x98", bad},
                             {"\xed\xa0\x80", bad + bad + bad},
                             {"\xc0\x80", bad + bad},
                             {"\xf4\x90\x80\x80", bad + bad + bad + bad},
                             {"\x80", bad}}) {
    auto ids = cantFail(tokenizer->encode(bytes, false));
    EXPECT_EQ(ids, cantFail(tokenizer->encode(text, false)));
    EXPECT_EQ(cantFail(tokenizer->decode(ids)), text);
  }
}

// The tokens may end inside a character; the text is valid UTF-8 all the same.
TEST(TokenizerJson, ACharacterOfManyTokensIsWholeOrReplaced) {
  for (StringRef kind : {"byte-level", "metaspace"}) {
    std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(folder(kind)));
    std::vector<int64_t> ids = cantFail(tokenizer->encode("😀", false));
    ASSERT_GE(ids.size(), 4u);
    EXPECT_EQ(cantFail(tokenizer->decode(ids)), "😀");
    for (size_t size = 0; size < ids.size(); ++size)
      EXPECT_TRUE(json::isUTF8(cantFail(tokenizer->decode(ArrayRef(ids).take_front(size)))));
  }
}

TEST(TokenizerJson, PiecesAndIdsOutOfRange) {
  std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(folder("metaspace")));
  EXPECT_EQ(tokenizer->piece(0), "<unk>");
  EXPECT_EQ(tokenizer->piece(12), "<0x0A>");
  std::string size = std::to_string(tokenizer->size());
  for (int64_t id : {int64_t(-1), tokenizer->size(), INT64_MAX}) {
    EXPECT_EQ(tokenizer->piece(id), "<id " + std::to_string(id) + ">");
    EXPECT_EQ(messageOf(tokenizer->decode({5, id})), "token id " + std::to_string(id) +
                                                         " is out of range; the tokenizer has " +
                                                         size + " ids");
  }
}

struct TokenizerJsonFiles : TempDirectory {
  json::Value good = jsonOf(folder("byte-level") + "/tokenizer.json");

  std::string opened(StringRef text) {
    write("tokenizer.json", text);
    return messageOf(Tokenizer::open(dir.str()));
  }
  /// The message for a copy of the file that `change` was applied to.
  std::string changed(function_ref<void(json::Object &)> change) {
    json::Value copy = good;
    change(*copy.getAsObject());
    return opened(textOf(copy));
  }
  std::string with(StringRef key, json::Value value) {
    return changed([&](json::Object &root) { root[key] = std::move(value); });
  }
  std::string withModel(StringRef key, json::Value value) {
    return changed([&](json::Object &root) { (*root.getObject("model"))[key] = std::move(value); });
  }
};

TEST_F(TokenizerJsonFiles, ComesBeforeTokenizerModel) {
  write("tokenizer.model", "x");
  EXPECT_EQ(opened(textOf(good)), "");
}

TEST_F(TokenizerJsonFiles, Malformed) {
  EXPECT_HAS(opened(""), "tokenizer.json: at byte 0: the text ends where '{' was expected");
  EXPECT_HAS(opened("{}"), "tokenizer.json: has no model");
  EXPECT_HAS(opened("{\"model\": {\"vocab\": {\"a\": -1}}}"), "expected an integer from 0");
  EXPECT_HAS(opened("\xff"), "tokenizer.json: at byte 0: not valid UTF-8");
  EXPECT_HAS(opened("{\"version\": \"1.0\", \"version\": \"1.0\"}"), "is given twice");
  EXPECT_HAS(with("version", "2.0"), "tokenizer.json: version: found '2.0', expected '1.0'");
  EXPECT_HAS(with("extra", 1), "tokenizer.json: the key 'extra' is not supported");
}

TEST_F(TokenizerJsonFiles, Vocabularies) {
  using O = json::Object;
  EXPECT_HAS(withModel("vocab", json::Array{json::Array{"a", -1.5}}),
             "tokenizer.json: model.vocab: expected an object of ids");
  EXPECT_HAS(withModel("vocab", json::Array{json::Array{"a", "b"}}),
             "tokenizer.json: model.vocab[0]: expected a token and its score");
  EXPECT_HAS(withModel("vocab", O{{"a", 3}, {"b", 3}}),
             "model.vocab: the id 3 is given to 'a' and");
  EXPECT_HAS(withModel("vocab", O{{"a", int64_t(1) << 40}}), "of 'a' is not below 16777216");
  EXPECT_HAS(withModel("vocab", O{{"a", "1"}}), "expected a number");
  EXPECT_HAS(withModel("type", "Unigram"), "model.vocab: expected a list of tokens and scores");
  EXPECT_HAS(withModel("type", "Bigram"), "model.type: the model 'Bigram' is not supported");
  EXPECT_HAS(withModel("unk_token", "absent"),
             "model.unk_token: 'absent' is not in the vocabulary");
  EXPECT_HAS(withModel("dropout", 0.1), "model.dropout: tokens would be drawn at random");
  EXPECT_HAS(withModel("byte_fallback", "yes"), "model.byte_fallback: found a string, expected");
  EXPECT_HAS(withModel("novelty", true), "model: the key 'novelty' is not supported");
}

TEST_F(TokenizerJsonFiles, Merges) {
  using A = json::Array;
  EXPECT_EQ(withModel("merges", A{"h e", A{"Ġt", "he"}}), "");
  EXPECT_HAS(withModel("merges", A{"h e", "中 e"}),
             "model.merges[1]: '中' is not in the vocabulary");
  EXPECT_HAS(withModel("merges", A{"Z Z"}), "model.merges[0]: 'ZZ' is not in the vocabulary");
  EXPECT_HAS(withModel("merges", A{"the"}), "model.merges[0]: 1 parts, expected 2");
  EXPECT_HAS(withModel("merges", A{A{"a", "b", "c"}}), "model.merges[0]: 3 parts, expected 2");
  EXPECT_HAS(withModel("merges", A{7}), "expected '\"'");
}

TEST_F(TokenizerJsonFiles, AddedTokens) {
  using O = json::Object;
  using A = json::Array;
  EXPECT_HAS(with("added_tokens", A{O{{"content", "x"}}}), "added_tokens[0].id: found nothing");
  EXPECT_HAS(with("added_tokens", A{O{{"id", 5}, {"content", "<new>"}}}),
             "added_tokens[0]: the id 5 is given to");
  EXPECT_HAS(with("added_tokens", A{O{{"id", 999}, {"content", "A"}}}),
             "added_tokens[0]: 'A' has the");
  EXPECT_HAS(with("added_tokens", O{}), "added_tokens: found an object, expected an array");
  EXPECT_HAS(with("post_processor", json::Value(nullptr)), "");
  EXPECT_HAS(changed([](json::Object &root) {
               root.getObject("post_processor")->getObject("special_tokens")->erase("<s>");
             }),
             "post_processor.special_tokens.<s>: found nothing, expected an object");
  EXPECT_HAS(
      with("post_processor",
           O{{"type", "BertProcessing"}, {"cls", A{"[CLS]", 70000}}, {"sep", A{"[SEP]", 1}}}),
      "post_processor.cls[1]: the vocabulary has no token of id 70000");
}

// test/judge/side_files.py compares such directories with transformers.
TEST_F(TokenizerJsonFiles, TokensOfTheFilesBesideIt) {
  write("tokenizer.json", textOf(good));
  auto encode = [&](StringRef text) {
    return cantFail(cantFail(Tokenizer::open(dir.str()))->encode(text, false));
  };
  int64_t next = cantFail(Tokenizer::open(dir.str()))->size();
  EXPECT_GT(encode("<tool>").size(), 1u);
  write("added_tokens.json", R"({"<tool>": 70000})");
  EXPECT_EQ(encode("<tool>"), std::vector<int64_t>{next});
  write("tokenizer_config.json",
        R"({"added_tokens_decoder": {"9": {"content": "<a>", "special": true}},
            "image_token": "<b>", "extra_special_tokens": ["<c>"]})");
  EXPECT_EQ(encode("<a><c><b>"), (std::vector<int64_t>{next, next + 2, next + 1}));
  EXPECT_GT(encode("<tool>").size(), 1u); // the older file is not read
  write("tokenizer_config.json", R"({"split_special_tokens": true, "bos_token": "<a>"})");
  EXPECT_GT(encode("<a>").size(), 1u);
  for (auto [config, problem] :
       {std::pair("[", "tokenizer_config.json: at byte 0"),
        {R"({"split_special_tokens": 1})", ": split_special_tokens: found"},
        {R"({"extra_special_tokens": 1})", ": extra_special_tokens: found"},
        {R"({"bos_token": {}})", ": bos_token.content: found nothing"},
        {R"({"added_tokens_decoder": {"x": {"content": "a"}}})",
         "expected an id as the key of a token"}}) {
    write("tokenizer_config.json", config);
    EXPECT_HAS(messageOf(Tokenizer::open(dir.str())), problem);
  }
}

TEST_F(TokenizerJsonFiles, Components) {
  using O = json::Object;
  using A = json::Array;
  EXPECT_HAS(with("normalizer", O{{"type", "Nmtt"}}), "normalizer: the normalizer 'Nmtt'");
  EXPECT_HAS(with("normalizer", O{{"type", "Precompiled"}, {"precompiled_charsmap", "AAA"}}),
             "normalizer.precompiled_charsmap: ");
  EXPECT_HAS(with("normalizer", O{{"type", "Precompiled"}, {"precompiled_charsmap", "BAAAAA=="}}),
             "normalizer.precompiled_charsmap: is not a precompiled normalization of 4 bytes");
  EXPECT_HAS(with("normalizer", O{{"type", "Sequence"}, {"normalizers", A{O{{"type", 3}}}}}),
             "normalizer.normalizers[0].type: found a number, expected a string");
  EXPECT_HAS(with("pre_tokenizer", O{{"type", "UnicodeScripts"}}),
             "the pre-tokenizer 'UnicodeScripts'");
  EXPECT_HAS(with("decoder", O{{"type", "Later"}}),
             "decoder: the decoder 'Later' is not supported");
  EXPECT_HAS(with("pre_tokenizer", O{{"type", "Metaspace"}, {"replacement", "__"}}),
             "pre_tokenizer.replacement: found a string, expected a string of one character");
  EXPECT_HAS(with("pre_tokenizer",
                  O{{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}}),
             "prepend_scheme: found 'last', expected always, first or never");
}

TEST_F(TokenizerJsonFiles, SplittingExpressions) {
  auto split = [&](StringRef expression) {
    return with("pre_tokenizer", json::Object{{"type", "Split"},
                                              {"pattern", json::Object{{"Regex", expression}}},
                                              {"behavior", "Isolated"}});
  };
  EXPECT_EQ(split("(?i:'s|'LL)|\\p{N}{1,3}|[^\\s\\p{L}]?+\\p{L}+|\\s+(?!\\S)|\\w\\u00e9"), "");
  EXPECT_HAS(split("(a"), "pre_tokenizer.pattern.Regex: the expression '(a' cannot be read");
  EXPECT_HAS(split("\\p{Klingon}"), "cannot be read: invalid character property name");
  EXPECT_HAS(split("a\\"), "cannot be read: end pattern at escape");
  for (const char *known :
       {" ?[^(\\s|[.,!?…。，、।۔،])]+", "[a&&b]", "[a[^b]]", "\\h", "a{1,2}+", "(?m).", "[\\W]"})
    EXPECT_EQ(split(known), "") << known;
  EXPECT_HAS(split(std::string(70000, 'a')), "an expression of 70000 bytes");
  // Exponential matching stops at a limit, with a message.
  EXPECT_EQ(split("(a+)+$"), "");
  std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(dir.str()));
  EXPECT_HAS(messageOf(tokenizer->encode(std::string(60, 'a') + "b", false)),
             "pre_tokenizer.pattern.Regex: the expression gave up on the text at byte 0");
  // A chain of replacements that each double the text is stopped.
  json::Array doublings;
  for (int i = 0; i < 60; ++i)
    doublings.push_back(json::Object{{"type", "Replace"},
                                     {"pattern", json::Object{{"String", "market"}}},
                                     {"content", "marketmarket"}});
  json::Object sequence{{"type", "Sequence"}, {"normalizers", std::move(doublings)}};
  EXPECT_HAS(with("normalizer", std::move(sequence)),
             "the text would grow past 2^26 bytes"); // an added token alone does so
}

TEST_F(TokenizerJsonFiles, CutShortAtAnyPlaceIsRefused) {
  for (StringRef kind : kinds) {
    auto whole = MemoryBuffer::getFile(folder(kind) + "/tokenizer.json");
    StringRef bytes = (*whole)->getBuffer().rtrim();
    for (size_t size = 0; size < bytes.size(); size += 61)
      EXPECT_HAS(opened(bytes.take_front(size)), "tokenizer.json: ") << size;
  }
}

/// Calls `use` once for each value inside `value`, which is replaced during the call.
void eachReplaced(json::Value &value, const std::function<void()> &use) {
  if (json::Object *object = value.getAsObject()) {
    size_t seen = 0;
    for (auto &member : *object)
      if (seen++ < 8) // only some entries of a vocabulary
        eachReplaced(member.second, use);
  } else if (json::Array *array = value.getAsArray()) {
    for (size_t i = 0; i < std::min<size_t>(array->size(), 4); ++i)
      eachReplaced((*array)[i], use);
  }
  json::Value kept = value;
  for (const json::Value &other :
       {json::Value(nullptr), json::Value(true), json::Value(0), json::Value(-1),
        json::Value(1e300), json::Value(""), json::Value("e"), json::Value(json::Array{}),
        json::Value(json::Object{}), json::Value(json::Array{kept, kept})}) {
    value = other;
    use();
  }
  value = kept;
}

// Any value in any place is read or refused; whatever is read encodes and decodes.
TEST_F(TokenizerJsonFiles, AnyValueInAnyPlaceIsNoCrash) {
  size_t refused = 0, read = 0;
  for (StringRef kind : {"tiny", "word-piece"}) {
    json::Value root = jsonOf(folder(kind) + "/tokenizer.json");
    eachReplaced(root, [&] {
      write("tokenizer.json", textOf(root));
      Expected<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(dir.str());
      if (!tokenizer) {
        EXPECT_HAS(toString(tokenizer.takeError()), "tokenizer.json");
        ++refused;
        return;
      }
      ++read;
      auto ids = (*tokenizer)->encode("<s> The market\xff 中 <|end|>", true);
      if (!ids)
        return consumeError(ids.takeError());
      EXPECT_TRUE(bool((*tokenizer)->decode(*ids)));
    });
  }
  EXPECT_GT(refused, 500u);
  EXPECT_GT(read, 100u);
}

} // namespace
