#include "Archive.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"
#include <zip.h>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

/// More entries than a model has tensors.
static constexpr zip_int64_t mostEntries = 1 << 20;
static constexpr uint64_t longestName = 1024;

void Archive::Discard::operator()(zip_t *archive) const { zip_discard(archive); }

static std::string words(zip_error_t &error) {
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

static Error notAnArchive(const Twine &name, const Twine &why) {
  return makeError(name + ": is not a .pt2 file: " + why +
                   "; expected what torch.export.save writes");
}

Expected<Archive> Archive::open(StringRef path) {
  if (Error error = checkRegularFile(path))
    return std::move(error);
  uint64_t size = 0;
  if (std::error_code code = sys::fs::file_size(path, size))
    return makeError(path + ": " + code.message());
  Archive result;
  result.path = path.str();
  int code = 0;
  result.archive.reset(zip_open(result.path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!result.archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    return notAnArchive(path, words(error));
  }
  if (Error error = result.list(size))
    return std::move(error);
  return result;
}

Expected<Archive> Archive::ofBytes(StringRef bytes, StringRef name) {
  Archive result;
  result.path = name.str();
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(bytes.data(), bytes.size(), /*freep=*/0, &error);
  if (!source)
    return notAnArchive(name, words(error));
  result.archive.reset(zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error));
  if (!result.archive) {
    zip_source_free(source);
    return notAnArchive(name, words(error));
  }
  if (Error error = result.list(bytes.size()))
    return std::move(error);
  return result;
}

Error Archive::list(uint64_t fileSize) {
  zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  if (count < 0 || count > mostEntries)
    return notAnArchive(path, "it lists " + Twine(count) + " entries");
  uint64_t together = 0;
  StringRef graph = "models/model.json";
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t entry;
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                    ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD |
                                    ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(archive.get(), i, ZIP_FL_ENC_RAW, &entry) ||
        (entry.valid & needed) != needed)
      return notAnArchive(path, "entry " + Twine(i) + " of its directory is incomplete");
    StringRef name = entry.name;
    if (name.empty() || name.size() > longestName)
      return notAnArchive(path,
                          "entry " + Twine(i) + " has a name of " + Twine(name.size()) + " bytes");
    if (entry.comp_method != ZIP_CM_STORE || entry.encryption_method != ZIP_EM_NONE ||
        entry.comp_size != entry.size)
      return notAnArchive(path, "entry " + quoted(name) + " is compressed or encrypted");
    // No entry overlaps another where all of them fit into the file; the other way round does not
    // matter, since each is bounded by the file.
    if (entry.size > fileSize - together)
      return notAnArchive(path, "its entries are larger together than the file of " +
                                    Twine(fileSize) + " bytes");
    together += entry.size;
    if (!sizes.try_emplace(name, entry.size).second)
      return notAnArchive(path, "it has entry " + quoted(name) + " twice");
    auto [folder, rest] = name.split('/');
    raw_string_ostream(entries) << quoted(rest) << " " << entry.size << " " << entry.crc << "\n";
    if (rest != graph)
      continue;
    if (!root.empty())
      return notAnArchive(path,
                          "it has two graphs, below " + quoted(root) + " and " + quoted(folder));
    root = (folder + "/").str();
  }
  if (root.empty())
    return notAnArchive(path, "it has no entry '" + graph + "' below a folder");
  return Error::success();
}

std::string Archive::identity() const {
  return toHex(SHA256::hash(arrayRefFromStringRef(entries)), /*LowerCase=*/true);
}

Expected<std::string> Archive::read(StringRef entry, uint64_t most) const {
  std::string whole = root + entry.str();
  auto known = sizes.find(whole);
  if (known == sizes.end())
    return makeError(path + ": has no entry '" + entry + "'");
  if (known->second > most)
    return makeError(path + ": entry '" + entry + "' has " + Twine(known->second) +
                     " bytes; expected at most " + Twine(most));
  std::unique_ptr<zip_file_t, int (*)(zip_file_t *)> file(
      zip_fopen(archive.get(), whole.c_str(), ZIP_FL_ENC_RAW), zip_fclose);
  auto failed = [&](StringRef why) {
    return makeError(path + ": entry '" + entry + "' cannot be read: " + why);
  };
  if (!file)
    return failed(zip_strerror(archive.get()));
  std::string content(known->second, '\0');
  // libzip compares the checksum when it meets the end, which the byte more than the content does.
  uint64_t done = 0;
  char more;
  while (true) {
    bool isFull = done == content.size();
    zip_int64_t got = isFull ? zip_fread(file.get(), &more, 1)
                             : zip_fread(file.get(), content.data() + done, content.size() - done);
    if (got < 0)
      return failed(zip_file_strerror(file.get()));
    if (isFull || got == 0)
      break;
    done += got;
  }
  if (done != content.size())
    return failed("it ends after " + std::to_string(done) + " of " +
                  std::to_string(content.size()) + " bytes");
  return content;
}
