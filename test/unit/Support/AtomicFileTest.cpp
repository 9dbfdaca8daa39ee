#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

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
  Error e = ctxc::writeFileAtomically(path("no/such/folder/f"), [](raw_pwrite_stream &) {
    return Error::success();
  });
  EXPECT_NE(toString(std::move(e)).find("cannot write"), std::string::npos);
}

} // namespace
