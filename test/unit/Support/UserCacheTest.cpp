// What is not believed of a cache.
#include "ctxc/Support/UserCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace llvm;
using namespace ctxc;

namespace {

struct UserCacheTest : testing::Test {
  void SetUp() override {
    ASSERT_FALSE(sys::fs::createUniqueDirectory("ctxc-cache", root));
    setCacheNotice([this](StringRef line) { said.push_back(line.str()); });
  }
  void TearDown() override {
    setCacheNotice(nullptr);
    sys::fs::remove_directories(root);
  }
  std::string folder() const { return (root + "/ctxc").str(); }
  std::string path(StringRef name) const { return folder() + "/" + name.str(); }
  /// Whether nothing is found under `name`, with one line that says `why`; and whether it can be
  /// made anew.
  void isNotBelieved(const UserCache &cache, StringRef name, StringRef why) {
    said.clear();
    EXPECT_EQ(cache.find(name), std::nullopt) << why.str();
    EXPECT_EQ(cache.find(name), std::nullopt);
    ASSERT_EQ(said.size(), 1u) << why.str();
    EXPECT_EQ(said[0], path(name) + ": " + why.str() + "; it is not used, and made anew");
    cache.insert(name, "new");
    EXPECT_EQ(cache.find(name), "new");
  }
  SmallString<128> root;
  std::vector<std::string> said;
};

TEST_F(UserCacheTest, GivesBackWhatWasPutIn) {
  mode_t mask = ::umask(0);
  UserCache cache(folder());
  ASSERT_TRUE(cache.isOn());
  EXPECT_EQ(cache.find("a"), std::nullopt);
  cache.insert("a", StringRef("con\0tent", 8));
  ::umask(mask);
  EXPECT_EQ(UserCache(folder()).find("a"), std::string("con\0tent", 8));
  struct stat status;
  ASSERT_EQ(::stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_TRUE(said.empty());
}

TEST_F(UserCacheTest, BelievesNoFileThatIsNotTheUsersAlone) {
  UserCache cache(folder());
  cache.insert("good", "content");
  ASSERT_FALSE(sys::fs::rename(path("good"), path("renamed")));
  isNotBelieved(cache, "renamed", "is damaged, or was stored under another name");
  for (mode_t mode : {0620, 0602}) {
    std::string name = "open" + std::to_string(mode);
    cache.insert(name, "content");
    ASSERT_EQ(::chmod(path(name).c_str(), mode), 0);
    isNotBelieved(cache, name, "can be written by others");
  }
  cache.insert("target", "content");
  ASSERT_EQ(::symlink(path("target").c_str(), path("link").c_str()), 0);
  isNotBelieved(cache, "link", "is a link");
  EXPECT_EQ(cache.find("target"), "content");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  isNotBelieved(cache, "pipe", "is no regular file");
  if (::geteuid() == 0) {
    cache.insert("foreign", "content");
    ASSERT_EQ(::chown(path("foreign").c_str(), 1, 1), 0);
    isNotBelieved(cache, "foreign", "belongs to another user");
  }
}

TEST_F(UserCacheTest, BelievesNoDamagedFile) {
  UserCache cache(folder());
  cache.insert("a", "content");
  std::string whole = (*MemoryBuffer::getFile(path("a")))->getBuffer().str();
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    std::error_code error;
    raw_fd_ostream(path("a"), error) << damaged;
    EXPECT_EQ(cache.find("a"), std::nullopt) << at;
  }
}

TEST_F(UserCacheTest, UsesNoFolderThatOthersCanWriteTo) {
  for (mode_t mode : {0770, 0707, 0722}) {
    said.clear();
    ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
    ASSERT_EQ(::chmod(folder().c_str(), mode), 0);
    EXPECT_FALSE(UserCache(folder()).isOn()) << mode;
    ASSERT_FALSE(sys::fs::remove_directories(folder()));
  }
  ASSERT_EQ(::mkdir(folder().c_str(), 0755), 0);
  EXPECT_TRUE(UserCache(folder()).isOn());
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder().c_str(), 1, 1), 0);
    EXPECT_FALSE(UserCache(folder()).isOn());
    ASSERT_FALSE(said.empty());
    EXPECT_NE(said.back().find("belongs to another user; nothing is cached there"),
              std::string::npos);
  }
}

} // namespace
