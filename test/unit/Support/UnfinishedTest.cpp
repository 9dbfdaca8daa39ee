// What remains of an output that is not completed.
#include "ctxc/Support/Unfinished.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <csignal>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace ctxc;

namespace {

struct UnfinishedTest : testing::Test {
  void SetUp() override { ASSERT_FALSE(sys::fs::createUniqueDirectory("ctxc-unfinished", dir)); }
  void TearDown() override { sys::fs::remove_directories(dir); }
  std::string path(StringRef name) const { return (dir + "/" + name).str(); }
  int entries() const {
    std::error_code ec;
    int n = 0;
    for (sys::fs::directory_iterator it(dir, ec), end; it != end && !ec; it.increment(ec))
      ++n;
    return n;
  }
  SmallString<128> dir;
};

TEST_F(UnfinishedTest, IsRemovedUnlessItIsKept) {
  {
    Unfinished file = cantFail(Unfinished::file(path("a.tmp-")));
    Unfinished folder = cantFail(Unfinished::directory(path("b.tmp-")));
    std::ofstream((folder.path() + "/c").str()) << "content";
    ASSERT_FALSE(sys::fs::create_directory(folder.path() + "/d"));
    std::ofstream((folder.path() + "/d/e").str()) << "content";
    EXPECT_EQ(entries(), 2);
  }
  EXPECT_EQ(entries(), 0);
  cantFail(cantFail(Unfinished::file(path("a.tmp-"))).keepAs(path("a")));
  EXPECT_TRUE(sys::fs::exists(path("a")));
  EXPECT_EQ(entries(), 1);
}

/// A child process ends by the signal, in the middle of an output, and leaves nothing.
TEST_F(UnfinishedTest, ASignalLeavesNothing) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) {
    pid_t child = ::fork();
    if (child == 0) {
      removeUnfinishedOnSignals();
      Unfinished folder = cantFail(Unfinished::directory(path("folder.tmp-")));
      for (int i = 0; i < 300; ++i)
        std::ofstream((folder.path() + "/" + Twine(i)).str()) << i;
      consumeError(writeFileAtomically(path("file"), [&](raw_pwrite_stream &os) {
        os << "half";
        ::raise(signal);
        return Error::success();
      }));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(entries(), 0) << signal;
  }
}

/// As under nohup.
TEST_F(UnfinishedTest, AnIgnoredSignalStaysIgnored) {
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGHUP, SIG_IGN);
    removeUnfinishedOnSignals();
    ::raise(SIGHUP);
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST_F(UnfinishedTest, AnOutputAppearsWhereTheCheckAllowsIt) {
  auto before = setOutputCheck(
      [&](StringRef at) { return at.ends_with("refused") ? makeError("no") : Error::success(); });
  auto write = [&](StringRef name) {
    return toString(writeFileAtomically(path(name), [](raw_pwrite_stream &os) {
      os << "content";
      return Error::success();
    }));
  };
  EXPECT_EQ(write("refused"), "no");
  EXPECT_EQ(entries(), 0);
  EXPECT_EQ(write("allowed"), "");
  EXPECT_EQ(entries(), 1);
  setOutputCheck(std::move(before));
  EXPECT_EQ(write("refused"), "");
}

} // namespace
