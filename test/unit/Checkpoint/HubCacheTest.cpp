// Models by their names on the hub, in the cache that huggingface_hub keeps.
#include "ctxc/Checkpoint/HubCache.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace ctxc;

namespace {

class HubCache : public testing::Test {
protected:
  void SetUp() override {
    llvm::sys::fs::createUniqueDirectory("hub", folder);
    setenv("HF_HUB_CACHE", folder.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HF_HUB_CACHE");
    llvm::sys::fs::remove_directories(folder);
  }
  /// A file in the cache, with the folders above it.
  std::string write(llvm::StringRef name, llvm::StringRef text = "") {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
    std::error_code ec;
    llvm::raw_fd_ostream(path, ec) << text;
    return path.str().str();
  }
  std::string in(llvm::StringRef name) const { return (folder + "/" + name).str(); }
  llvm::SmallString<128> folder;
};

} // namespace

TEST_F(HubCache, HasTheSnapshotThatMainIs) {
  write("models--some--model/refs/main", "abc\n");
  write("models--some--model/snapshots/abc/config.json");
  write("models--some--model/snapshots/older/config.json");
  EXPECT_EQ(findModel("some/model"), in("models--some--model/snapshots/abc"));
  EXPECT_EQ(findModel("some/model/q4.gguf"), in("models--some--model/snapshots/abc/q4.gguf"));
}

TEST_F(HubCache, HasTheOnlySnapshotWhereNoRefIs) {
  write("models--some--model/snapshots/abc/config.json");
  EXPECT_EQ(findModel("some/model"), in("models--some--model/snapshots/abc"));
  write("models--some--model/snapshots/other/config.json");
  EXPECT_EQ(findModel("some/model"), "some/model");
}

TEST_F(HubCache, TakesTheOnlyGgufFileForTheModel) {
  write("models--some--model-GGUF/refs/main", "abc");
  const std::string file = write("models--some--model-GGUF/snapshots/abc/q4.gguf");
  EXPECT_EQ(findModel("some/model-GGUF"), file);
  write("models--some--model-GGUF/snapshots/abc/q8.gguf");
  EXPECT_EQ(findModel("some/model-GGUF"), in("models--some--model-GGUF/snapshots/abc"));
}

TEST_F(HubCache, LeavesPathsAlone) {
  const std::string file = write("models--some--model/snapshots/abc/config.json");
  EXPECT_EQ(findModel(file), file);
  for (llvm::StringRef path : {"", "model", "/some/model", "./some/model", "../some/model",
                               "~/model", "some/../model", "some/model/../../x", "some//model"})
    EXPECT_EQ(findModel(path), path.str());
  EXPECT_EQ(findModel("no/model"), "no/model");
}

TEST_F(HubCache, SaysHowToFetchAName) {
  EXPECT_EQ(hubHint("some/model"), ("; of models on the Hugging Face hub those in " + folder +
                                    " are found by name: `hf download some/model` puts this one "
                                    "there")
                                       .str());
  EXPECT_EQ(hubHint("model"), "");
  EXPECT_EQ(hubHint("some/block.mlir"), "");
}
