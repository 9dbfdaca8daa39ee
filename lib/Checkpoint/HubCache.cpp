#include "ctxc/Checkpoint/HubCache.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <optional>
#include <vector>

using namespace llvm;
namespace fs = llvm::sys::fs;

static std::string joined(const Twine &a, const Twine &b, const Twine &c = "") {
  SmallString<128> path;
  sys::path::append(path, a, b, c);
  return path.str().str();
}

static std::string cacheFolder() {
  auto value = [](const char *name) {
    const char *text = std::getenv(name);
    return StringRef(text ? text : "");
  };
  if (StringRef own = value("HF_HUB_CACHE"); !own.empty())
    return own.str();
  if (StringRef home = value("HF_HOME"); !home.empty())
    return joined(home, "hub");
  if (StringRef caches = value("XDG_CACHE_HOME"); !caches.empty())
    return joined(caches, "huggingface", "hub");
  SmallString<128> home;
  return sys::path::home_directory(home) ? joined(home, ".cache/huggingface", "hub") : "";
}

namespace {

/// OWNER/NAME, or a FILE of it, which may be in folders.
struct HubName {
  std::string owner, name, file;
};

} // namespace

static std::optional<HubName> hubName(StringRef path) {
  auto isName = [](StringRef part) {
    return !part.empty() && !part.starts_with(".") && !part.starts_with("~") &&
           all_of(part, [](char c) { return isAlnum(c) || c == '-' || c == '_' || c == '.'; });
  };
  auto [owner, rest] = path.split('/');
  auto [name, file] = rest.split('/');
  if (!isName(owner) || !isName(name) || file.contains(".."))
    return std::nullopt;
  return HubName{owner.str(), name.str(), file.str()};
}

/// Its snapshot's folder, which refs/main names; without that, the only one.
static std::string snapshotOf(const HubName &name) {
  const std::string folder = joined(cacheFolder(), "models--" + name.owner + "--" + name.name),
                    all = joined(folder, "snapshots");
  if (auto main = MemoryBuffer::getFile(joined(folder, "refs", "main")))
    if (std::string found = joined(all, (*main)->getBuffer().trim()); fs::is_directory(found))
      return found;
  std::vector<std::string> found;
  std::error_code ec;
  for (fs::directory_iterator it(all, ec), end; !ec && it != end; it.increment(ec))
    found.push_back(it->path());
  return found.size() == 1 ? found.front() : "";
}

/// The only file of this kind in a folder; empty where there is none or more.
static std::string onlyGguf(StringRef folder) {
  std::vector<std::string> found;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    if (StringRef(it->path()).ends_with(".gguf"))
      found.push_back(it->path());
  return found.size() == 1 ? found.front() : "";
}

std::string ctxc::findModel(StringRef path) {
  auto name = fs::exists(path) ? std::nullopt : hubName(path);
  const std::string folder = name ? snapshotOf(*name) : "";
  if (folder.empty())
    return path.str();
  if (!name->file.empty())
    return joined(folder, name->file);
  if (std::string file = onlyGguf(folder);
      !file.empty() && !fs::exists(joined(folder, "config.json")))
    return file;
  return folder;
}

std::string ctxc::hubHint(StringRef path) {
  auto name = hubName(path);
  if (!name || path.ends_with(".mlir") || path.ends_with(".ctxc") || path.ends_with(".pt2"))
    return "";
  return "; of models on the Hugging Face hub those in " + cacheFolder() +
         " are found by name: `hf download " + name->owner + "/" + name->name +
         "` puts this one there";
}
