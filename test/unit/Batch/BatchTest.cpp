// A batch gives what its lines would give alone, in files that do not depend on how often it was
// ended, nor on how many processes shared it.
#include "ctxc/Batch/Batch.h"
#include "ctxc/Export/PatchShard.h"
#include "test/unit/Session/Opened.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <map>
#include <set>

using namespace ctxc;
using namespace ctxc::test;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

namespace {

/// More threads are not faster for such small models, and wait for each other on a busy machine.
LoadOptions oneThread() {
  LoadOptions options;
  options.threads = 1;
  return options;
}

/// Files by name, but for the lock's.
using Files = std::map<std::string, std::string>;

class BatchTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(fs::createUniqueDirectory("ctxc-batch", directory)); }
  void TearDown() override { fs::remove_directories(directory); }

  std::string path(StringRef name) const { return (directory + "/" + name).str(); }
  void write(StringRef name, StringRef text) const {
    std::error_code code;
    llvm::raw_fd_ostream(path(name), code) << text;
    ASSERT_FALSE(code);
  }
  Files filesOf(StringRef name) const {
    Files files;
    std::error_code code;
    for (fs::directory_iterator i(path(name), code), end; !code && i != end; i.increment(code))
      if (StringRef file = llvm::sys::path::filename(i->path()); !file.ends_with(".lock"))
        files[file.str()] = (*llvm::MemoryBuffer::getFile(i->path()))->getBuffer().str();
    return files;
  }
  std::vector<llvm::json::Object> recordsOf(StringRef name) const {
    std::vector<llvm::json::Object> records;
    for (const auto &[file, text] : filesOf(name)) {
      llvm::SmallVector<StringRef> lines;
      if (StringRef(file).ends_with(".jsonl"))
        StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
      for (StringRef line : lines)
        records.push_back(*llvm::cantFail(llvm::json::parse(line)).getAsObject());
    }
    return records;
  }

  BatchRequest request(StringRef to) const {
    BatchRequest request;
    request.prompts = path("prompts.jsonl");
    request.directory = path(to);
    request.window = 4;
    return request;
  }
  BatchResult run(Model &model, const BatchRequest &request) const {
    return llvm::cantFail(runBatch(model, request));
  }

  llvm::SmallString<128> directory;
};

/// Prompts that share beginnings of several lengths, in no order.
std::vector<std::vector<int64_t>> sharedPrompts() {
  return {{5, 42, 71, 27, 64},    {9, 1},          {5, 42, 71, 27, 10, 11}, {5, 42, 3},
          {5, 42, 71, 27},        {9, 1, 7, 7, 7}, {5, 42, 71, 27, 10, 12}, {3, 3, 3},
          {5, 42, 71, 27, 10, 11}};
}

std::string linesOf(llvm::ArrayRef<std::vector<int64_t>> prompts, StringRef more = "") {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const auto &[i, tokens] : llvm::enumerate(prompts))
    os << "{\"id\": \"p" << i << "\", \"tokens\": " << llvm::json::Value(llvm::json::Array(tokens))
       << more << "}\n";
  return text;
}

void expectSame(const Patch &found, const Patch &expected) {
  ASSERT_EQ(found.parameters.size(), expected.parameters.size());
  std::map<std::string, const ParameterPatch *> byName;
  for (const ParameterPatch &p : expected.parameters)
    byName[p.parameter] = &p;
  for (const ParameterPatch &p : found.parameters) {
    ASSERT_TRUE(byName.count(p.parameter));
    EXPECT_EQ(p.u, byName[p.parameter]->u);
    EXPECT_EQ(p.v, byName[p.parameter]->v);
    EXPECT_EQ(p.delta, byName[p.parameter]->delta);
  }
}

/// In a model with post-norms and windows, and in one with experts.
TEST_F(BatchTest, GivesWhatEachPromptGivesAlone) {
  for (const char *golden : {"test/goldens/gemma3", "test/goldens/mixtral"}) {
    auto model = opened(golden, oneThread());
    auto prompts = sharedPrompts();
    write("prompts.jsonl", linesOf(prompts, ", \"positions\": \"all\", \"keep\": [0]"));
    BatchRequest asked = request(llvm::sys::path::filename(golden));
    asked.window = 3;
    run(*model, asked);
    for (size_t i = 0; i < prompts.size(); ++i) {
      const std::vector<int64_t> &tokens = prompts[i];
      RunRequest alone;
      alone.tokens = toInputs(tokens);
      alone.kept = {0};
      for (int64_t position = 1; position < int64_t(tokens.size()); ++position)
        alone.positions.push_back(position);
      std::string shard =
          asked.directory + "/patches-00000" + std::to_string(i / 3) + "-00.safetensors";
      llvm::cantFail(model->positions(alone, [&](const TokenPatch &given) {
        auto [patch, metadata] = llvm::cantFail(readFromShard(shard, i + 1, given.position));
        expectSame(patch, llvm::cantFail(given.patch()));
        EXPECT_EQ(metadata.position, given.position);
        EXPECT_EQ(metadata.kept, std::vector<int64_t>{0});
        EXPECT_EQ(metadata.tokens,
                  std::vector<int64_t>(tokens.begin(), tokens.begin() + given.position + 1));
        return llvm::Error::success();
      }));
    }
  }
}

TEST_F(BatchTest, ReadsEachTokenOfTheTreeOfBeginningsOnce) {
  auto model = opened("test/goldens/llama", oneThread());
  auto prompts = sharedPrompts();
  write("prompts.jsonl", linesOf(prompts));
  BatchRequest asked = request("out");
  asked.window = 64;
  BatchResult result = run(*model, asked);
  std::set<std::vector<int64_t>> beginnings;
  int64_t all = 0, again = 0;
  for (const std::vector<int64_t> &tokens : prompts) {
    all += tokens.size();
    for (size_t count = 1; count <= tokens.size(); ++count)
      again += !beginnings.insert({tokens.begin(), tokens.begin() + count}).second &&
               count == tokens.size();
  }
  EXPECT_EQ(result.tokens, all);
  // A patched token runs, though another prompt has run it.
  EXPECT_LE(result.read, int64_t(beginnings.size()) + again);
  EXPECT_GE(result.read, int64_t(beginnings.size()));
}

TEST_F(BatchTest, SaysWhyALineIsBadAndGoesOn) {
  auto model = opened("test/goldens/llama", oneThread());
  write("prompts.jsonl", "{\"id\": \"a\", \"tokens\": [1, 2, 3]}\n"
                         "no json\n"
                         "\n"
                         "{\"id\": 5, \"tokens\": [1, 2, 100000]}\n"
                         "{\"tokens\": [1]}\n"
                         "{\"prompt\": \"text\"}\n"
                         "{\"tokens\": [1, 2], \"positions\": [2]}\n"
                         "{\"tokens\": [1, 2], \"mak\": [\"patch\"]}\n"
                         "{\"tokens\": [1, 2], \"make\": [\"ptch\"]}\n"
                         "{\"tokens\": [1, 2], \"prompt\": \"text\"}\n"
                         "[1, 2]\n"
                         "{\"tokens\": [1, -2]}\n"
                         "{\"tokens\": [1, 2], \"keep\": [1]}\n"
                         "\xff\n"
                         "{\"id\": \"z\", \"tokens\": [1, 2, 4]}");
  BatchResult result = run(*model, request("out"));
  EXPECT_EQ(result.counts.records, 14);
  EXPECT_EQ(result.counts.errors, 12);
  EXPECT_EQ(result.counts.patches, 2);
  std::map<int64_t, std::string> errors;
  for (const llvm::json::Object &record : recordsOf("out"))
    errors[*record.getInteger("line")] = record.getString("error").value_or("").str();
  EXPECT_EQ(errors.at(1), "");
  EXPECT_EQ(errors.at(15), "");
  EXPECT_EQ(errors.count(3), 0u);
  EXPECT_TRUE(StringRef(errors.at(4)).contains("100000")) << errors.at(4);
  EXPECT_EQ(errors.at(5), "line 5: found 1 token, expected at least two: a context, and the token "
                          "after it");
  EXPECT_TRUE(StringRef(errors.at(6)).contains("has no tokenizer")) << errors.at(6);
  EXPECT_EQ(errors.at(8), "line 8: found the member 'mak', expected some of id, prompt, tokens, "
                          "messages, keep, positions, make; did you mean 'make'?");
  EXPECT_EQ(errors.at(9),
            "line 9: make: found 'ptch', expected some of patch, metrics, layers; did "
            "you mean 'patch'?");
  for (int64_t line : {2, 7, 10, 11, 12, 13, 14})
    EXPECT_NE(errors.at(line), "") << line;
}

TEST_F(BatchTest, PartsGiveTheFilesOfTheWhole) {
  auto model = opened("test/goldens/llama", oneThread());
  write("prompts.jsonl", linesOf(sharedPrompts()) + "bad\n" + linesOf(sharedPrompts()));
  BatchRequest whole = request("whole");
  whole.make = {true, true, true};
  BatchResult result = run(*model, whole);
  EXPECT_EQ(result.counts.compared, 18);
  EXPECT_EQ(result.counts.unequal, 0);
  llvm::cantFail(mergeBatch({path("whole")}, path("whole-merged")));
  for (int64_t parts : {2, 7}) {
    std::string name = "parts-" + std::to_string(parts);
    BatchRequest one = whole;
    one.directory = path(name);
    one.parts = parts;
    for (one.part = parts; one.part > 1; --one.part)
      run(*model, one);
    std::string message = llvm::toString(mergeBatch({path(name)}, path("early")).takeError());
    EXPECT_TRUE(StringRef(message).contains("run part 1/")) << message;
    run(*model, one);
    llvm::cantFail(mergeBatch({path(name)}, path(name + "-merged")));
    EXPECT_EQ(filesOf(name + "-merged"), filesOf("whole-merged"));
  }
  // In directories of their own, as on machines without a common disk.
  BatchRequest one = whole;
  one.parts = 2;
  for (one.part = 1; one.part <= 2; ++one.part) {
    one.directory = path("own-" + std::to_string(one.part));
    run(*model, one);
  }
  llvm::cantFail(mergeBatch({path("own-2"), path("own-1")}, path("own")));
  EXPECT_EQ(filesOf("own"), filesOf("whole-merged"));
}

/// After a kill between any two of its files, the next run makes the same that a whole run makes.
/// Files end within a line here: a shard has room for one patch.
TEST_F(BatchTest, GoesOnWhereItWasEnded) {
  auto model = opened("test/goldens/llama", oneThread());
  write("prompts.jsonl", linesOf(sharedPrompts(), ", \"positions\": \"all\""));
  BatchRequest asked = request("out");
  asked.shardBytes = 1;
  run(*model, asked);
  const Files expected = filesOf("out");
  EXPECT_EQ(run(*model, asked).added, 0);
  // The files in the order in which they appear: patches before the records that name them.
  std::vector<std::string> order = {"batch.json"};
  for (const auto &[name, text] : expected)
    if (StringRef numbers = name; numbers.consume_front("records"))
      order.insert(order.end(), {"patches" + numbers.drop_back(5).str() + "safetensors", name});
  order.push_back("part-1-of-1.json");
  ASSERT_EQ(order.size(), expected.size());
  for (size_t count = 0; count < order.size(); count += 3) {
    fs::remove_directories(path("out"));
    ASSERT_FALSE(fs::create_directory(path("out")));
    for (const std::string &name : llvm::ArrayRef(order).take_front(count))
      write("out/" + name, expected.at(name));
    write("out/" + order[count] + ".tmp-123", "half of it");
    run(*model, asked);
    Files now = filesOf("out");
    if (!StringRef(order[count]).starts_with("records") &&
        !StringRef(order[count]).starts_with("patches"))
      now.erase(order[count] + ".tmp-123");
    EXPECT_EQ(now, expected) << count;
  }
}

TEST_F(BatchTest, RefusesAnotherBatchsDirectory) {
  auto model = opened("test/goldens/llama", oneThread());
  write("prompts.jsonl", linesOf(sharedPrompts()));
  run(*model, request("out"));
  BatchRequest other = request("out");
  other.make = {false, true};
  std::string message = llvm::toString(runBatch(*model, other).takeError());
  EXPECT_TRUE(
      StringRef(message).contains("make is [\"patch\"] there, and [\"metrics\"] was asked for"))
      << message;
  write("prompts.jsonl", linesOf(sharedPrompts()) + linesOf({{1, 2}}));
  message = llvm::toString(runBatch(*model, request("out")).takeError());
  EXPECT_TRUE(StringRef(message).contains("lines is 9 there, and 10 was asked for")) << message;
  fs::create_directory(path("foreign"));
  write("foreign/notes.txt", "mine");
  message = llvm::toString(runBatch(*model, request("foreign")).takeError());
  EXPECT_TRUE(StringRef(message).contains("has files, and is no directory of a batch")) << message;
  EXPECT_EQ(filesOf("foreign").size(), 1u);
}

/// The last token alone can be patched, and nothing is shared.
TEST_F(BatchTest, TakesAnEncoder) {
  auto model = opened("test/goldens/bert", oneThread());
  write("prompts.jsonl", "{\"tokens\": [2, 7, 9]}\n{\"tokens\": [2, 7, 8]}\n"
                         "{\"tokens\": [2, 7, 8], \"positions\": [1]}\n");
  BatchRequest asked = request("out");
  asked.make = {true, true, true};
  BatchResult result = run(*model, asked);
  EXPECT_EQ(result.counts.patches, 2);
  EXPECT_EQ(result.counts.errors, 1);
  EXPECT_EQ(result.counts.compared - result.counts.unequal, 2);
  RunRequest alone;
  alone.tokens = toInputs({2, 7, 8});
  auto [patch, metadata] =
      llvm::cantFail(readFromShard(path("out/patches-000000-00.safetensors"), 2, 2));
  expectSame(patch, llvm::cantFail(model->patch(alone)).patch);
}

TEST_F(BatchTest, GivesOnePatchAsAFile) {
  auto model = opened("test/goldens/llama", oneThread());
  write("prompts.jsonl", "{\"tokens\": [1, 2, 3], \"positions\": [1, 2]}\n{\"tokens\": [4, "
                         "5]}\n");
  run(*model, request("out"));
  llvm::cantFail(mergeBatch({path("out")}, path("merged")));
  for (const char *from : {"out", "merged"}) {
    llvm::cantFail(takeFromBatch(path(from), 1, 2, path("p.safetensors")));
    auto [patch, metadata] = llvm::cantFail(readPatchFile(path("p.safetensors")));
    RunRequest alone;
    alone.tokens = toInputs({1, 2, 3});
    EXPECT_TRUE(summarize(llvm::cantFail(model->verify(alone, patch)).steps).verified());
    llvm::cantFail(takeFromBatch(path(from), 2, std::nullopt, path("q.safetensors")));
    std::string message =
        llvm::toString(takeFromBatch(path(from), 1, std::nullopt, path("r.safetensors")));
    EXPECT_TRUE(StringRef(message).contains("has 2 patches of line 1; expected its position, as "
                                            "1:1"))
        << message;
    message = llvm::toString(takeFromBatch(path(from), 7, std::nullopt, path("r.safetensors")));
    EXPECT_TRUE(StringRef(message).contains("has no patch of line 7")) << message;
  }
}

} // namespace
