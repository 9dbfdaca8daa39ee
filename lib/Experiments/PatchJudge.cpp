#include "PatchJudge.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Unfinished.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Program.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;

/// The objects in `text`, one on each line.
static Expected<std::vector<Object>> objectsOf(StringRef text, StringRef command) {
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::vector<Object> objects;
  for (StringRef line : lines) {
    auto parsed = parseStrictJson(line, command);
    if (!parsed)
      return makeError("judge: " + command + ": printed '" + line.take_front(80) +
                       "', expected a JSON object a patch: " + llvm::toString(parsed.takeError()));
    if (!parsed->getAsObject())
      return makeError("judge: " + command + ": printed '" + line.take_front(80) +
                       "', expected a JSON object a patch");
    objects.push_back(std::move(*parsed->getAsObject()));
  }
  return objects;
}

Expected<std::vector<Object>> experiments::judgePatches(StringRef command, StringRef model,
                                                        llvm::ArrayRef<std::string> files,
                                                        StringRef directory) {
  Expected<Unfinished> scratch = Unfinished::temporaryDirectory();
  if (!scratch)
    return scratch.takeError();
  std::string list = (scratch->path() + "/list.json").str();
  if (Error error = writeFileAtomically(list, [&](llvm::raw_pwrite_stream &os) {
        os << llvm::formatv("{0}\n", llvm::json::Value(llvm::json::Array(files)));
        return Error::success();
      }))
    return std::move(error);
  llvm::SmallVector<StringRef> words;
  command.split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  if (words.empty())
    return makeError("judge: found no program, expected one that judges patch files");
  auto program = llvm::sys::findProgramByName(words[0]);
  if (!program)
    return makeError("judge: " + words[0] + ": " + program.getError().message());
  words.append({model, "--batch", list});
  std::string output = (directory + "/judge-output.jsonl").str();
  std::string log = (directory + "/judge-log.txt").str();
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(output), StringRef(log)};
  std::string message;
  int code = llvm::sys::ExecuteAndWait(*program, words, std::nullopt, redirects, 0, 0, &message);
  if (code != 0 && code != 1)
    return makeError("judge: " + command + ": exit code " + llvm::Twine(code) +
                     (message.empty() ? "" : " (" + message + ")") + "; its messages are in " +
                     log);
  auto text = readSmallFile(output, 64 << 20);
  if (!text)
    return text.takeError();
  auto objects = objectsOf(*text, command);
  if (objects && objects->size() != files.size())
    return makeError("judge: " + command + ": told of " + llvm::Twine(objects->size()) +
                     " patches, expected " + llvm::Twine(files.size()) + "; its messages are in " +
                     log);
  return objects;
}
