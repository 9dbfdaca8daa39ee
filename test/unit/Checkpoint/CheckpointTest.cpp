#include "ctxc/Checkpoint/Checkpoint.h"
#include "Fixture.h"
#include "ctxc/Checkpoint/FileDigest.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/UserCache.h"
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct CheckpointDirectory : TempDirectory {
  void SetUp() override {
    TempDirectory::SetUp();
    write("m/config.json", "{\"model_type\":\"tiny\"}");
  }
  std::string open() { return messageOf(Checkpoint::open(path("m"))); }
  void index(StringRef weightMap) {
    write("m/model.safetensors.index.json", ("{\"weight_map\":" + weightMap + "}").str());
  }
  void expectMessage(StringRef part) {
    std::string message = open();
    EXPECT_NE(message.find(part.str()), std::string::npos) << message;
  }
};

/// A file with two floats in each named tensor.
std::string tensors(std::vector<std::string> names, float value = 1) {
  std::string header = "{", data;
  for (const std::string &name : names) {
    std::string begin = std::to_string(data.size());
    data += bytesOf({value, value});
    header += (header.size() > 1 ? ",\"" : "\"") + name +
              "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" + begin + "," +
              std::to_string(data.size()) + "]}";
  }
  return fileOf(header + "}", data);
}

TEST_F(CheckpointDirectory, ReadsASingleFile) {
  write("m/model.safetensors", tensors({"a", "b"}));
  auto checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint)) << messageOf(std::move(checkpoint));
  EXPECT_EQ((*checkpoint)->config().getString("model_type"), "tiny");
  EXPECT_EQ((*checkpoint)->tensors().size(), 2u);
  EXPECT_NE((*checkpoint)->find("b"), nullptr);
  EXPECT_EQ((*checkpoint)->find("c"), nullptr);
  EXPECT_EQ((*checkpoint)->directory(), path("m"));
  EXPECT_EQ((*checkpoint)->tokenizerPath(), std::nullopt);
  write("m/tokenizer.model", "x");
  EXPECT_EQ((*checkpoint)->tokenizerPath(), path("m/tokenizer.model"));
  EXPECT_EQ(messageOf((*checkpoint)->checkUnchanged()), "");
}

TEST_F(CheckpointDirectory, ReadsShardsAlsoThroughLinksOfAHubCache) {
  write("blobs/1234", tensors({"a"}));
  ASSERT_EQ(::symlink("../blobs/1234", path("m/x-1.safetensors").c_str()), 0);
  write("m/x-2.safetensors", tensors({"b", "not.in.the.index"}));
  index(R"({"a":"x-1.safetensors","b":"x-2.safetensors"})");
  auto checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint)) << messageOf(std::move(checkpoint));
  ASSERT_EQ((*checkpoint)->tensors().size(), 3u);
  EXPECT_EQ((*checkpoint)->find("a")->file, path("m/x-1.safetensors"));
  EXPECT_NE((*checkpoint)->find("not.in.the.index"), nullptr);
}

TEST_F(CheckpointDirectory, ReportsAllProblemsOfTheShards) {
  write("m/1.safetensors", tensors({"a", "twice"}));
  write("m/2.safetensors", tensors({"b", "twice"}));
  write("m/bad.safetensors", fileOf("{"));
  index(R"({"a":"2.safetensors","b":"2.safetensors","lost":"1.safetensors",)"
        R"("c":"gone.safetensors","d":"bad.safetensors"})");
  std::string message = open();
  for (std::string part :
       {"2.safetensors: tensor 'twice' is also in 1.safetensors", "gone.safetensors: the index",
        "bad.safetensors: header", "tensor 'lost' is not in 1.safetensors",
        "tensor 'a' is not in 2.safetensors but in 1.safetensors"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in:\n" << message;
  EXPECT_EQ(message.find("tensor 'd'"), std::string::npos) << message;
}

TEST_F(CheckpointDirectory, OneMessageForAllMissingShards) {
  std::string map;
  for (int i = 1; i <= 9; ++i)
    map +=
        (i > 1 ? ",\"" : "\"") + std::to_string(i) + "\":\"" + std::to_string(i) + ".safetensors\"";
  index("{" + map + "}");
  write("m/1.safetensors", tensors({"1"}));
  std::string message = open();
  expectMessage(
      "2.safetensors: the index names this shard, but it is missing; fetch it, and 7 more "
      "of the 9 shards, which are missing too: 3.safetensors, 4.safetensors, "
      "5.safetensors, 6.safetensors, 7.safetensors, …");
  EXPECT_EQ(StringRef(message).count('\n'), 0u) << message;
}

TEST_F(CheckpointDirectory, OneMessageForAllTensorsThatAFileLacks) {
  write("m/1.safetensors", tensors({"a"}));
  write("m/2.safetensors", tensors({"b", "c", "d"}));
  index(R"({"a":"1.safetensors","b":"1.safetensors","c":"1.safetensors","d":"2.safetensors",)"
        R"("x":"2.safetensors","y":"2.safetensors","z":"2.safetensors"})");
  std::string message = open();
  expectMessage("2 tensors, such as 'b', are not in 1.safetensors but in 2.safetensors");
  expectMessage("3 tensors, such as 'x', are not in 2.safetensors");
  EXPECT_EQ(StringRef(message).count('\n'), 1u) << message;
}

TEST_F(CheckpointDirectory, RefusesShardNamesThatAreNotPlain) {
  write("outside.safetensors", tensors({"a"}));
  write("m/sub/x.safetensors", tensors({"a"}));
  for (std::string name :
       {"../outside.safetensors", "sub/x.safetensors", "sub/../../x.safetensors", "..", ".", "",
        "..\\\\outside.safetensors", "/etc/passwd", "C:\\\\x.safetensors", "x\\u0000.safetensors",
        "./x.safetensors", "x.safetensors/", "pytorch_model.bin", "model.txt"}) {
    SCOPED_TRACE(name);
    index("{\"a\":\"" + name + "\"}");
    expectMessage("of tensor 'a': ");
    expectMessage(name == "pytorch_model.bin" ? "pickled weights are never read" : "expected");
  }
  index("{\"a\":\"" + path("outside.safetensors") + "\"}");
  expectMessage("points outside the checkpoint's directory");
}

TEST_F(CheckpointDirectory, RefusesMalformedIndexes) {
  write("m/1.safetensors", tensors({"a"}));
  for (std::string map : {R"({"a":{"file":"1.safetensors"}})", R"({"a":1})", R"({"a":null})"}) {
    index(map);
    expectMessage("tensor 'a' is mapped to something that is not a string");
  }
  index("{}");
  expectMessage("'weight_map' is empty");
  index("[]");
  expectMessage("no object 'weight_map'");
  index(R"({"a":"1.safetensors","\u0061":"1.safetensors"})");
  expectMessage("'a' is given twice");
  index(R"({"a":"1.safe)");
  expectMessage("index.json: at byte");
  index(std::string(100000, '[') + std::string(100000, ']'));
  expectMessage("nested more than 64 deep");
  index(R"({"a":"\ud800"})");
  expectMessage("lone surrogate");
}

TEST_F(CheckpointDirectory, RefusesShardsThatAreNoFiles) {
  index(R"({"a":"x.safetensors"})");
  std::string x = path("m/x.safetensors");
  ASSERT_EQ(::mkfifo(x.c_str(), 0600), 0);
  expectMessage("x.safetensors: is a FIFO");
  ::unlink(x.c_str());
  ASSERT_EQ(::symlink("/dev/zero", x.c_str()), 0);
  expectMessage("x.safetensors: is a device");
  ::unlink(x.c_str());
  ASSERT_EQ(::symlink("x.safetensors", x.c_str()), 0);
  expectMessage("x.safetensors: ");
  ::unlink(x.c_str());
  ASSERT_EQ(::mkdir(x.c_str(), 0700), 0);
  expectMessage("x.safetensors: is a directory");
}

TEST_F(CheckpointDirectory, SaysWhatIsMissing) {
  expectMessage("has neither model.safetensors nor model.safetensors.index.json");
  write("m/pytorch_model.bin", "x");
  expectMessage("pickled weights are never read");
  write("m/other.safetensors", tensors({"a"}));
  expectMessage("'other.safetensors' is there");
  EXPECT_NE(messageOf(Checkpoint::open(path("absent"))).find("no such file or directory"),
            std::string::npos);
  EXPECT_NE(messageOf(Checkpoint::open(path("m/config.json"))).find("is not a GGUF file"),
            std::string::npos);
  EXPECT_NE(messageOf(Checkpoint::open(path("."))).find("has no config.json"), std::string::npos);
}

TEST_F(CheckpointDirectory, RefusesMalformedConfigs) {
  write("m/model.safetensors", tensors({"a"}));
  for (std::string config :
       {"", "[]", "{\"a\":1,\"a\":2}", "{\"a\":nan}", "{} {}", "{\"a\":\"\xff\"}"}) {
    SCOPED_TRACE(config);
    write("m/config.json", config);
    expectMessage("config.json: ");
  }
}

TEST_F(CheckpointDirectory, HashesHeaderAndEveryByte) {
  auto hash = [&] {
    auto checkpoint = Checkpoint::open(path("m"));
    EXPECT_TRUE(bool(checkpoint)) << messageOf(std::move(checkpoint));
    auto hash = (*checkpoint)->hash();
    EXPECT_TRUE(bool(hash)) << messageOf(std::move(hash));
    return *hash;
  };
  // Three chunks; the last is not full.
  size_t bytes = (8 << 20) + 12;
  std::string header = "{\"w\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(bytes) +
                       "],\"data_offsets\":[0," + std::to_string(bytes) + "]}}";
  std::string data(bytes, 'a');
  write("m/model.safetensors", fileOf(header, data));
  std::string first = hash();
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(hash(), first);
  std::set<std::string> seen = {first};
  for (size_t at : {size_t(0), size_t(4 << 20), bytes - 1}) {
    std::string changed = data;
    changed[at] = 'b';
    write("m/model.safetensors", fileOf(header, changed));
    EXPECT_TRUE(seen.insert(hash()).second) << at;
  }
  write("m/model.safetensors", fileOf(header + " ", data));
  EXPECT_TRUE(seen.insert(hash()).second);
  write("m/model.safetensors", fileOf(header, data));
  EXPECT_EQ(hash(), first);
}

TEST_F(CheckpointDirectory, ACachedHashReadsNoWeights) {
  std::string weights = write("m/model.safetensors", tensors({"a"}));
  auto checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint));
  std::string computed = cantFail((*checkpoint)->hash());

  // A digest that the data does not have: returning it proves that the data was not read.
  std::string name = sys::path::filename(digestCachePath(weights)).str();
  UserCache cache(path("cache/ctxc"));
  std::optional<std::string> entry = cache.find(name);
  ASSERT_TRUE(entry);
  std::string forged = entry->substr(0, entry->size() - 64) + std::string(64, '0');
  cache.insert(name, forged);
  EXPECT_NE(cantFail((*checkpoint)->hash()), computed);

  // Entries that are damaged, or belong to another state of the file, are not used.
  cache.insert(name, forged.substr(0, forged.size() - 2));
  EXPECT_EQ(cantFail((*checkpoint)->hash()), computed);
  write("cache/ctxc/" + name, "");
  EXPECT_EQ(cantFail((*checkpoint)->hash()), computed);
  cache.insert(name, forged);
  checkpoint->reset();
  write("m/model.safetensors", tensors({"a"}));
  checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint));
  EXPECT_EQ(cantFail((*checkpoint)->hash()), computed);
}

TEST_F(CheckpointDirectory, HashesWithoutACache) {
  write("m/model.safetensors", tensors({"a"}));
  auto checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint));
  std::string computed = cantFail((*checkpoint)->hash());
  ::setenv("XDG_CACHE_HOME", path("m/config.json").c_str(), 1); // a file, where a folder is needed
  EXPECT_EQ(cantFail((*checkpoint)->hash()), computed);
}

TEST_F(CheckpointDirectory, NoticesAFileCutShort) {
  std::string weights = write("m/model.safetensors", tensors({"a"}));
  auto checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint));
  ASSERT_EQ(::truncate(weights.c_str(), 60), 0);
  std::string message = messageOf((*checkpoint)->checkUnchanged());
  EXPECT_NE(message.find("file was cut short while mapped: found 60 bytes"), std::string::npos)
      << message;
  uint8_t bytes[8];
  message = messageOf((*checkpoint)->read((*checkpoint)->tensors()[0], 0, bytes));
  EXPECT_NE(message.find("file was cut short while it was being read"), std::string::npos)
      << message;
  EXPECT_NE(messageOf((*checkpoint)->hash()), "");
}

TEST_F(CheckpointDirectory, NoticesAFileWrittenInPlace) {
  std::string weights = write("m/model.safetensors", tensors({"a"}));
  auto checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint));
  EXPECT_EQ(messageOf((*checkpoint)->checkUnchanged()), "");
  EXPECT_EQ(messageOf(checkMappedFiles()), "");
  struct stat before;
  ASSERT_EQ(::stat(weights.c_str(), &before), 0);
  ::usleep(20000); // past what the system's times can tell apart
  std::fstream(weights, std::ios::in | std::ios::out).seekp(-1, std::ios::end).put('x');
  timespec times[] = {before.st_atim, before.st_mtim}; // as a copy that keeps times does
  ASSERT_EQ(::utimensat(AT_FDCWD, weights.c_str(), times, 0), 0);
  for (const std::string &message :
       {messageOf((*checkpoint)->checkUnchanged()), messageOf(checkMappedFiles())})
    EXPECT_NE(message.find("model.safetensors: file was changed while it was being read"),
              std::string::npos)
        << message;
}

TEST_F(CheckpointDirectory, AFileThatIsReplacedKeepsItsContent) {
  std::string weights = write("m/model.safetensors", tensors({"a"}));
  auto checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint));
  ::usleep(20000);
  ASSERT_FALSE(sys::fs::rename(write("other", "replaced"), weights));
  EXPECT_EQ(messageOf((*checkpoint)->checkUnchanged()), "");
}

TEST_F(CheckpointDirectory, MapsAreOfLargePagesWhereThereAreSuch) {
  if (!sys::fs::exists("/sys/kernel/mm/transparent_hugepage"))
    GTEST_SKIP() << "this kernel has no large pages";
  write("m/model.safetensors", tensors({"a"}));
  auto checkpoint = Checkpoint::open(path("m"));
  ASSERT_TRUE(bool(checkpoint));
  std::ifstream maps("/proc/self/smaps");
  std::string line, flags;
  for (bool isOurs = false; std::getline(maps, line) && flags.empty();) {
    if (line.find('-') < line.find(' '))
      isOurs = line.find("m/model.safetensors") != std::string::npos;
    else if (isOurs && StringRef(line).starts_with("VmFlags:"))
      flags = line;
  }
  EXPECT_NE(flags.find(" hg"), std::string::npos) << flags;
}

TEST_F(CheckpointDirectory, TheGuardNamesTheFileCutShort) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto touch = [&](uint64_t length) {
    installMappedFileGuard();
    std::string weights = write("m/model.safetensors", tensors({"a"}));
    auto checkpoint = Checkpoint::open(path("m"));
    if (!checkpoint || ::truncate(weights.c_str(), length))
      ::_exit(9);
    Error e = writeFileAtomically(path("m/unfinished"), [&](raw_pwrite_stream &os) {
      os.write(reinterpret_cast<const char *>((*checkpoint)->tensors()[0].data), 8);
      return Error::success();
    });
    ::_exit(messageOf(std::move(e)).empty() ? 0 : 1);
  };
  EXPECT_EXIT(touch(0), testing::ExitedWithCode(2),
              "ctxc: error: .*model.safetensors: file was cut short while it was being read");
  std::error_code ec;
  for (sys::fs::directory_iterator it(path("m"), ec), end; it != end && !ec; it.increment(ec))
    EXPECT_EQ(it->path().find("unfinished"), std::string::npos) << it->path();
}

TEST_F(CheckpointDirectory, OpensWideHeadersInLinearTime) {
  // Valid but large: many empty tensors, whose names are not sorted.
  auto seconds = [&](int count) {
    std::string header = "{";
    for (int i = 0; i < count; ++i)
      header += (i ? ",\"" : "\"") + std::to_string(i * 7919 % count) +
                "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    write("m/model.safetensors", fileOf(header + "}"));
    auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(open(), "");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double small = seconds(4000), large = seconds(64000);
  // 16 times the work; a quadratic algorithm would take 256 times as long.
  EXPECT_LT(large, 100 * small + 0.1);
}

} // namespace
