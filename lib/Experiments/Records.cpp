#include "ctxc/Experiments/Records.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/GoOn.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;
using llvm::json::Value;

/// The format that the first line names.
static constexpr StringRef Format = "ctxc-experiment";
static constexpr int64_t Version = 1;
/// How the first line begins, so that one that was cut off is known for what it is.
static constexpr StringRef Opening = "{\"format\":\"ctxc-experiment\",";
/// Far above what any experiment records.
static constexpr uint64_t largestFile = uint64_t(4) << 30;

Value experiments::number(double value) {
  return std::isfinite(value) ? Value(value) : Value(nullptr);
}

Object experiments::metricsJson(const TokenMetrics &metrics) {
  return Object{{"match", metrics.match},
                {"linf", number(metrics.linf)},
                {"totalVariation", number(metrics.totalVariation)},
                {"hellinger", number(metrics.hellinger)},
                {"rankCorrelation", number(metrics.rankCorrelation)},
                {"top1Difference", number(metrics.top1Difference)},
                {"finite", metrics.finite}};
}

void experiments::merge(Object &to, Object from) {
  for (auto &[name, value] : from)
    to[name] = std::move(value);
}

static std::string compact(const Value &value) { return llvm::formatv("{0}", value).str(); }

/// Whether `text`, which has no complete first line, is the beginning of one of ours. A file system
/// that allocates first leaves zeros.
static bool isCutOff(StringRef text) {
  text = text.rtrim('\0');
  return text.starts_with(Opening) || Opening.starts_with(text);
}

/// Reads the complete lines of `text`, which are `whole` bytes.
Error Records::read(StringRef text, const Object &settings, size_t &whole) {
  whole = 0;
  auto notOurs = [&] {
    return makeError(file + ": is not a file of an experiment's records, version " +
                     llvm::Twine(Version) + "; name another directory with -o");
  };
  for (int64_t line = 1; whole < text.size(); ++line) {
    size_t end = text.find('\n', whole);
    if (end == StringRef::npos) {
      if (line == 1 && !isCutOff(text))
        return notOurs();
      break; // cut off while it was written
    }
    auto parsed =
        parseStrictJson(text.slice(whole, end), (file + ": line " + llvm::Twine(line)).str());
    if (!parsed && end + 1 == text.size()) {
      llvm::consumeError(parsed.takeError()); // also cut off, on a file system that allocates first
      if (line == 1 && !isCutOff(text))
        return notOurs();
      break;
    }
    if (!parsed)
      return makeError(llvm::toString(parsed.takeError()) +
                       "; mend it, or name another directory with -o");
    const Object *object = parsed->getAsObject();
    if (line == 1) {
      const Object *stored = object ? object->getObject("settings") : nullptr;
      if (!stored || object->getString("format") != Format ||
          object->getInteger("version") != Version)
        return notOurs();
      if (Error error = compareSettings(file, *stored, settings))
        return error;
    } else if (object) {
      if (auto key = object->getString("key"))
        keys.insert(*key);
    }
    whole = end + 1;
  }
  return Error::success();
}

Expected<std::unique_ptr<Records>> Records::open(StringRef directory, Object settings,
                                                 Object about) {
  if (std::error_code code = llvm::sys::fs::create_directories(directory))
    return makeError("-o: " + directory + ": " + code.message());
  std::unique_ptr<Records> records(new Records());
  records->file = (directory + "/records.jsonl").str();
  Expected<int> descriptor = openLocked(records->file);
  if (!descriptor)
    return descriptor.takeError();
  records->os = std::make_unique<llvm::raw_fd_ostream>(*descriptor, /*shouldClose=*/true);
  Expected<std::string> text = readSmallFile(records->file, largestFile);
  if (!text)
    return text.takeError();
  size_t whole = 0;
  if (Error error = records->read(*text, settings, whole))
    return std::move(error);
  records->foundBefore = records->keys.size();
  if (std::error_code code = llvm::sys::fs::resize_file(*descriptor, whole))
    return makeError(records->file + ": " + code.message());
  if (whole == 0) {
    Object first{{"version", Version}, {"settings", std::move(settings)}};
    merge(first, std::move(about));
    if (Error error = records->append(Opening.str() + compact(std::move(first)).substr(1)))
      return std::move(error);
  }
  return records;
}

Error Records::append(StringRef line) {
  *os << (line + "\n").str();
  os->flush();
  if (!os->has_error())
    return Error::success();
  std::string message = os->error().message();
  os->clear_error();
  return makeError(file + ": " + message);
}

Error Records::add(StringRef key, Object record) {
  if (!keys.insert(key).second)
    return Error::success();
  record["key"] = key;
  return append(compact(std::move(record)));
}

Error Records::note(Object line) { return append(compact(std::move(line))); }
