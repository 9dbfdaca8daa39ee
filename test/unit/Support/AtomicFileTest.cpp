#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <sys/stat.h>
#include <thread>

using namespace llvm;

namespace {

struct AtomicFile : testing::Test {
  void SetUp() override { ASSERT_FALSE(sys::fs::createUniqueDirectory("ctxc-atomic", dir)); }
  void TearDown() override { sys::fs::remove_directories(dir); }
  std::string path(StringRef name) {
    SmallString<128> p(dir);
    sys::path::append(p, name);
    return p.str().str();
  }
  int entries() {
    std::error_code ec;
    int n = 0;
    for (sys::fs::directory_iterator it(dir, ec), end; it != end && !ec; it.increment(ec))
      ++n;
    return n;
  }
  SmallString<128> dir;
};

TEST_F(AtomicFile, APipeIsWrittenIntoAndStays) {
  std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] {
    if (auto buffer = MemoryBuffer::getFileAsStream(pipe))
      received = (*buffer)->getBuffer().str();
  });
  Error failure = ctxc::writeFileAtomically(pipe, [](raw_pwrite_stream &os) {
    os << "text";
    return Error::success();
  });
  EXPECT_FALSE(errorToBool(std::move(failure)));
  reader.join();
  EXPECT_EQ(received, "text");
  struct stat status;
  ASSERT_EQ(stat(pipe.c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFile, WritesAndReplaces) {
  for (StringRef text : {"one", "two"})
    ASSERT_FALSE(errorToBool(ctxc::writeFileAtomically(path("f"), [&](raw_pwrite_stream &os) {
      os << text;
      return Error::success();
    })));
  auto buffer = MemoryBuffer::getFile(path("f"));
  ASSERT_TRUE(bool(buffer));
  EXPECT_EQ((*buffer)->getBuffer(), "two");
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFile, LeavesNothingBehindOnFailure) {
  Error e = ctxc::writeFileAtomically(path("f"), [&](raw_pwrite_stream &os) {
    os << "half";
    return ctxc::makeError("the writer gave up");
  });
  EXPECT_EQ(toString(std::move(e)), "the writer gave up");
  EXPECT_EQ(entries(), 0);
}

TEST_F(AtomicFile, NamesAnUnwritablePath) {
  Error e = ctxc::writeFileAtomically(path("no/such/folder/f"),
                                      [](raw_pwrite_stream &) { return Error::success(); });
  EXPECT_NE(toString(std::move(e)).find("cannot write"), std::string::npos);
}

} // namespace
