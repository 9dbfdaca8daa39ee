// The tiny checkpoints under test/goldens, for tests that run over all of them, and those under
// test/mixers, whose layers mix tokens by more than attention.
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

/// The directory of a checkpoint from either folder.
inline std::string golden(llvm::StringRef name) {
  std::string path = (CTXC_SOURCE_DIR "/test/goldens/" + name).str();
  std::string other = (CTXC_SOURCE_DIR "/test/mixers/" + name).str();
  return llvm::sys::fs::exists(other) ? other : path;
}

/// The names of the folders under test/FOLDER that have a FILE, sorted.
inline std::vector<std::string> namesUnder(llvm::StringRef folder, llvm::StringRef file) {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(CTXC_SOURCE_DIR "/test/" + folder, error), end;
       it != end && !error; it.increment(error))
    if (llvm::sys::fs::exists(it->path() + "/" + file))
      names.push_back(llvm::sys::path::filename(it->path()).str());
  llvm::sort(names);
  return names;
}

inline std::vector<std::string> allGoldens() { return namesUnder("goldens", "golden.safetensors"); }
inline std::vector<std::string> allMixers() { return namesUnder("mixers", "config.json"); }

/// A golden's name in the form of a part of a test's name.
inline std::string goldenTestName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  llvm::replace(name, '-', '_');
  return name;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_GOLDENS_H
