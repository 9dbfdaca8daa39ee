#include "ctxc/Experiments/Records.h"
#include "ctxc/Experiments/Lab.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cmath>
#include <csignal>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ctxc::experiments;
using llvm::json::Object;

namespace {

class RecordsTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ctxc-records", directory));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(directory); }

  llvm::Expected<std::unique_ptr<Records>> open(int64_t seed = 1) {
    return Records::open(directory, Object{{"seed", seed}, {"name", "x"}},
                         Object{{"machine", "here"}});
  }
  std::unique_ptr<Records> opened() {
    auto records = open();
    EXPECT_TRUE(bool(records)) << llvm::toString(records.takeError());
    return records ? std::move(*records) : nullptr;
  }
  std::string text() {
    return (*llvm::MemoryBuffer::getFile(directory + "/records.jsonl"))->getBuffer().str();
  }
  void write(llvm::StringRef text) {
    std::error_code code;
    llvm::raw_fd_ostream((directory + "/records.jsonl").str(), code) << text;
    ASSERT_FALSE(code);
  }
  /// The error message of opening the records.
  std::string message(int64_t seed = 1) {
    auto records = open(seed);
    return records ? "" : llvm::toString(records.takeError());
  }

  llvm::SmallString<128> directory;
};

TEST_F(RecordsTest, GoesOnWhereItWas) {
  {
    auto records = opened();
    ASSERT_TRUE(records);
    EXPECT_FALSE(records->has("a"));
    EXPECT_FALSE(bool(records->add("a", Object{{"value", 1.5}})));
    EXPECT_FALSE(bool(records->add("b", Object{{"value", number(INFINITY)}})));
  }
  std::string before = text();
  EXPECT_NE(before.find("\"machine\":\"here\""), std::string::npos);
  auto records = opened();
  EXPECT_EQ(records->found(), 2u);
  EXPECT_TRUE(records->has("a") && records->has("b"));
  EXPECT_FALSE(bool(records->add("a", Object{{"value", 2}})));
  EXPECT_EQ(text(), before) << "a key that is there is not written again";
}

TEST_F(RecordsTest, DropsALineThatWasCutOff) {
  {
    auto records = opened();
    llvm::cantFail(records->add("a", Object{{"value", 1}}));
    llvm::cantFail(records->add("b", Object{{"value", 2}}));
  }
  std::string whole = text();
  // Wherever the system stopped, the first line and the complete records before that point remain.
  for (size_t cut = whole.find('\n') + 1; cut < whole.size(); ++cut) {
    write(whole.substr(0, cut));
    auto records = opened();
    ASSERT_TRUE(records);
    size_t lines = llvm::StringRef(whole).take_front(cut).count('\n') - 1;
    EXPECT_EQ(records->found(), lines) << cut;
    llvm::cantFail(records->add("a", Object{{"value", 1}}));
    llvm::cantFail(records->add("b", Object{{"value", 2}}));
    EXPECT_EQ(text(), whole) << cut;
  }
  write(whole.substr(0, 20)); // cut inside the first line: nothing remains
  EXPECT_EQ(opened()->found(), 0u);
}

TEST_F(RecordsTest, RefusesOtherSettings) {
  opened();
  std::string text = message(2);
  EXPECT_NE(text.find("records.jsonl: seed is 1 there, and 2 was asked for"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("name is"), std::string::npos) << "what is equal is not named";
}

TEST_F(RecordsTest, RefusesWhatIsNotItsOwn) {
  write("{\"some\":\"thing\"}\n");
  EXPECT_NE(message().find("is not a file of an experiment's records"), std::string::npos);
  for (llvm::StringRef foreign : {"notes", "notes\n", "{\"some\":\"thing", "{\"some\":1}", "0"}) {
    write(foreign);
    EXPECT_NE(message().find("is not a file of an experiment's records"), std::string::npos);
    EXPECT_EQ(text(), foreign);
  }
  write("");
  llvm::cantFail(opened()->add("a", Object{}));
  write(text() + "not JSON\n{\"key\":\"b\"}\n");
  EXPECT_NE(message().find("line 3: "), std::string::npos) << message();
}

TEST_F(RecordsTest, AreOfOneRunAtATime) {
  {
    auto records = opened();
    llvm::cantFail(records->add("a", Object{}));
    std::string before = text();
    EXPECT_NE(message().find("records.jsonl: process " + std::to_string(::getpid()) +
                             " is writing to it"),
              std::string::npos)
        << message();
    EXPECT_EQ(text(), before);
  }
  EXPECT_EQ(opened()->found(), 1u);
}

TEST_F(RecordsTest, ALockEndsWithAKilledRun) {
  pid_t child = ::fork();
  if (child == 0) {
    auto records = open();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(message(), "");
}

TEST_F(RecordsTest, RefusesAFifo) {
  ASSERT_EQ(::mkfifo((directory + "/records.jsonl").str().c_str(), 0600), 0);
  EXPECT_NE(message().find("is a FIFO, expected a regular file"), std::string::npos);
}

TEST(Prompts, AreThoseOfTheExample) {
  auto file = llvm::MemoryBuffer::getFile(CTXC_SOURCE_DIR "/examples/02-gemma-3-270m/prompts.txt");
  ASSERT_TRUE(bool(file));
  std::string lines;
  for (llvm::StringRef prompt : paperPrompts())
    lines += (prompt + "\n").str();
  EXPECT_EQ((*file)->getBuffer(), lines);
}

TEST(Prompts, MadeUpOnesFitTheVocabulary) {
  auto prompts = madeUpPrompts(7);
  EXPECT_EQ(prompts.size(), 5u);
  for (const auto &prompt : prompts)
    for (int64_t id : prompt)
      EXPECT_TRUE(id >= 0 && id < 7);
  EXPECT_NE(prompts[0], prompts[1]);
}

} // namespace
