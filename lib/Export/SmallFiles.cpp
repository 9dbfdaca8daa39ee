#include "SmallFiles.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace ctxc;

namespace {

/// A tokenizer.json with 262,144 tokens has 33 MB.
constexpr uint64_t maxFileBytes = 256 << 20;

std::string joined(StringRef directory, StringRef name) {
  SmallString<256> path(directory);
  sys::path::append(path, name);
  return path.str().str();
}

bool isWanted(StringRef name) {
  if (name == "config.json" || name.ends_with(".index.json") || name.starts_with("."))
    return false;
  return is_contained({".json", ".model", ".txt", ".jinja", ".md"}, sys::path::extension(name));
}

/// Whether the canonical path `real` lies below the directory `directory`.
bool isBelow(StringRef real, StringRef directory) {
  SmallString<256> root;
  if (sys::fs::real_path(directory, root))
    return false;
  return real.consume_front(root) && real.starts_with("/");
}

Error checkLink(StringRef directory, StringRef path) {
  if (!sys::fs::is_symlink_file(path))
    return Error::success();
  SmallString<256> real;
  if (std::error_code ec = sys::fs::real_path(path, real))
    return makeError(path + ": cannot follow the link: " + ec.message());
  if (isBelow(real, directory) || isBelow(real, joined(directory, "../../blobs")))
    return Error::success();
  return makeError(path + ": is a link to " + real.str() +
                   ", outside the checkpoint's directory; put a copy of the file in its place");
}

Error writeText(StringRef path, StringRef text) {
  return writeFileAtomically(path, [&](raw_pwrite_stream &os) {
    os << text;
    return Error::success();
  });
}

Error copyFile(StringRef from, StringRef to, uint64_t limit) {
  Expected<std::string> text = readSmallFile(from, limit);
  if (!text)
    return text.takeError();
  return writeText(to, *text);
}

/// As JSON.
StringRef torchName(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return "\"float16\"";
  case DType::BF16:
    return "\"bfloat16\"";
  case DType::F64:
    return "\"float64\"";
  default:
    return "\"float32\"";
  }
}

/// The string that begins at text[at], a quote, with its quotes.
StringRef stringAt(StringRef text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && text[end] != '"')
    end += text[end] == '\\' ? 2 : 1;
  return text.slice(at, end + 1);
}

/// The text of a config, which is valid JSON, with `storage` as its type and as that of its text
/// model. All else stays as it is written: readers tell 0.0 from 0.
std::string withDType(StringRef text, DType storage) {
  std::string result;
  std::vector<StringRef> path; // the keys of the objects and arrays around; the outermost has none
  StringRef key;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      StringRef string = stringAt(text, at);
      at += string.size() - 1;
      StringRef rest = text.substr(at + 1).ltrim(" \t\r\n");
      const bool isHere = path.size() == 1 || (path.size() == 2 && path[1] == "\"text_config\"");
      if (rest.starts_with(":"))
        key = string;
      else if (isHere && (key == "\"dtype\"" || key == "\"torch_dtype\""))
        string = torchName(storage);
      result += string;
      continue;
    }
    if (text[at] == '{' || text[at] == '[')
      path.push_back(key);
    else if (text[at] == '}' || text[at] == ']')
      path.pop_back();
    if (text[at] == '{' || text[at] == '[' || text[at] == ',')
      key = {};
    result += text[at];
  }
  return result;
}

} // namespace

Error ctxc::copySmallFiles(const Checkpoint &checkpoint, StringRef outDir) {
  StringRef directory = checkpoint.directory();
  std::vector<std::string> names;
  std::error_code ec;
  for (sys::fs::directory_iterator it(directory, ec), end; it != end && !ec; it.increment(ec))
    if (StringRef name = sys::path::filename(it->path());
        isWanted(name) && sys::fs::is_regular_file(it->path()))
      names.push_back(name.str());
  if (ec)
    return makeError(directory + ": cannot list: " + ec.message());
  llvm::sort(names);
  for (const std::string &name : names) {
    std::string from = joined(directory, name);
    if (Error e = checkLink(directory, from))
      return e;
    if (Error e = copyFile(from, joined(outDir, name), maxFileBytes))
      return e;
  }
  return Error::success();
}

Error ctxc::writeConfig(const Checkpoint &checkpoint, StringRef outDir,
                        std::optional<DType> storage) {
  std::string to = joined(outDir, "config.json");
  if (!storage)
    return copyFile(joined(checkpoint.directory(), "config.json"), to, maxFileBytes);
  Expected<std::string> text = readSmallFile(checkpoint.configPath(), maxFileBytes);
  if (!text)
    return text.takeError();
  return writeText(to, withDType(*text, *storage));
}
