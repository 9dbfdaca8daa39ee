// The tiny checkpoints under test/goldens, for tests that run over all of them.
#ifndef CTXC_TEST_UNIT_GOLDENS_H
#define CTXC_TEST_UNIT_GOLDENS_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <string>
#include <vector>

namespace ctxc::test {

inline std::string golden(llvm::StringRef name) {
  return (CTXC_SOURCE_DIR "/test/goldens/" + name).str();
}

/// The names of all of them, sorted.
inline std::vector<std::string> allGoldens() {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(golden(""), error), end; it != end && !error;
       it.increment(error))
    if (llvm::sys::fs::exists(it->path() + "/golden.safetensors"))
      names.push_back(llvm::sys::path::filename(it->path()).str());
  llvm::sort(names);
  return names;
}

/// A golden's name as a part of a test's.
inline std::string goldenTestName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  llvm::replace(name, '-', '_');
  return name;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_GOLDENS_H
