// Builds good and bad checkpoint files in a temporary directory.
#ifndef CTXC_TEST_UNIT_CHECKPOINT_FIXTURE_H
#define CTXC_TEST_UNIT_CHECKPOINT_FIXTURE_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstring>
#include <string>
#include <vector>

namespace ctxc::test {

/// A safetensors file with exactly this header text and these data bytes.
inline std::string fileOf(llvm::StringRef header, llvm::StringRef data = "") {
  std::string file(8, '\0');
  llvm::support::endian::write64le(file.data(), header.size());
  return file + header.str() + data.str();
}

inline std::string bytesOf(const std::vector<float> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()), values.size() * 4);
}

/// The message of a failed Expected or Error; "" for a success.
template <typename T> std::string messageOf(llvm::Expected<T> value) {
  return value ? "" : llvm::toString(value.takeError());
}
inline std::string messageOf(llvm::Error error) { return llvm::toString(std::move(error)); }

/// Succeeds where `text` contains `part`.
inline testing::AssertionResult containsPart(const char *, const char *, const std::string &text,
                                             const std::string &part) {
  if (llvm::StringRef(text).contains(part))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "found:\n" << text << "\nexpected in it:\n" << part;
}

struct TempDirectory : testing::Test {
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ctxc-unit", dir));
    ::setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);
  }
  void TearDown() override { llvm::sys::fs::remove_directories(dir); }
  std::string path(llvm::StringRef name) const {
    llvm::SmallString<128> p(dir);
    llvm::sys::path::append(p, name);
    return p.str().str();
  }
  std::string write(llvm::StringRef name, llvm::StringRef content) const {
    std::string p = path(name);
    llvm::sys::fs::create_directories(llvm::sys::path::parent_path(p));
    std::error_code ec;
    llvm::raw_fd_ostream os(p, ec);
    EXPECT_FALSE(ec) << p;
    os << content;
    return p;
  }
  std::string contentOf(llvm::StringRef name) const {
    auto buffer = llvm::MemoryBuffer::getFile(path(name));
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  llvm::SmallString<128> dir;
};

} // namespace ctxc::test

#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(ctxc::test::containsPart, text, part)

#endif // CTXC_TEST_UNIT_CHECKPOINT_FIXTURE_H
