#include "tools/CommandLine/Shard.h"
#include "ctxc/Runtime/Shard/ShardedExecutor.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Installed.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// Rank 0 has ended, and with it what this rank does.
class RanksEnded : public llvm::ErrorInfo<RanksEnded> {
public:
  static char ID;
  explicit RanksEnded(int code) : code(code) {}
  void log(llvm::raw_ostream &os) const override { os << "rank 0 has ended"; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  int code;
};
char RanksEnded::ID;

} // namespace

static std::unique_ptr<Ranks> joined;
static RankGrid grid;
static std::string commandLine;

Ranks *driver::joinedRanks() { return joined.get(); }
int driver::joinedTensor() { return int(grid.tensor); }
bool driver::isServing() { return joined && joined->rank() != 0; }

OptionSpec driver::shardOption() {
  return {"--shard", "RANKS",
          "tensor=T,pipeline=P, where one may be left out: split one model over the T × P ranks\n"
          "of `mpirun -n TP`. Each of P groups has consecutive layers, and the T ranks of a\n"
          "group share the matrices and heads of each layer (docs/clusters.md)"};
}

Expected<RankGrid> driver::parseRanks(StringRef text) {
  RankGrid ranks;
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',');
  bool isBad = false;
  llvm::StringSet<> seen;
  for (StringRef part : parts) {
    auto [kind, number] = part.split('=');
    int64_t *to = kind == "tensor" ? &ranks.tensor : kind == "pipeline" ? &ranks.pipeline : nullptr;
    isBad |= !to || !seen.insert(kind).second || number.getAsInteger(10, *to) || *to < 1 ||
             *to > (1 << 16);
  }
  if (isBad)
    return makeError("--shard: found '" + text + "', expected tensor=T,pipeline=P, or one of them");
  return ranks;
}

Error driver::joinRanks(const Command &command, const Arguments &arguments,
                        llvm::ArrayRef<StringRef> words) {
  const OptionSpec own = shardOption();
  auto text = arguments.get(own.name);
  // `ctxc compile` has another option of that name, and runs nothing.
  if (!text || llvm::none_of(command.options, [&](const OptionSpec &each) {
        return each.name == own.name && each.value == own.value;
      }))
    return Error::success();
  Expected<RankGrid> asked = parseRanks(*text);
  if (!asked)
    return asked.takeError();
  grid = *asked;
  if (arguments.has("--trace"))
    return makeError(
        "--shard: does not go with --trace, which is of one process; leave one of them "
        "out");
  if (arguments.get("--backend", "compiled") != "compiled")
    return makeError("--shard: does not go with --backend reference, which runs the model in one "
                     "process; leave one of them out");
  auto ranks = Ranks::join(installation() + "/" CTXC_MPI_FOLDER);
  if (!ranks)
    return ranks.takeError();
  joined = std::move(*ranks);
  commandLine = llvm::join(words, " ");
  const int64_t count = grid.tensor * grid.pipeline;
  if (joined->count() == count)
    return Error::success();
  return makeError("--shard: found " + *text + ", which are " + llvm::Twine(count) +
                   " ranks, and mpirun started " + llvm::Twine(joined->count()) +
                   "; expected as many ranks as parts");
}

/// Identifies the program.
static Expected<std::string> digestOfProgram() {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  auto file = llvm::MemoryBuffer::getFile(self, /*IsText=*/false, /*NullTerminated=*/false);
  if (!file)
    return makeError(self + ": cannot be read: " + file.getError().message());
  llvm::BLAKE3 hash;
  hash.update((*file)->getBuffer());
  return llvm::toHex(hash.final<8>(), /*LowerCase=*/true);
}

Error driver::meetRanks(Model &model) {
  if (!joined)
    return Error::success();
  Expected<std::string> build = digestOfProgram();
  if (!build)
    return build.takeError();
  Expected<std::string> weights = model.hash();
  if (!weights)
    return weights.takeError();
  if (Error error = agree(*joined, {{"build of ctxc", *build},
                                    {"command line", commandLine},
                                    {"weights' digest", *weights}}))
    return error;
  if (!isServing())
    return Error::success();
  Expected<int> code = model.serve();
  return code ? llvm::make_error<RanksEnded>(*code) : code.takeError();
}

/// Where ranks are lost: what it says of that.
static std::string lossIn(const Error &error) {
  std::string reason;
  llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &info) {
    if (info.isA<RanksLost>())
      reason = info.message();
  });
  return reason;
}

/// The exit code of a rank that serves.
static Expected<int> endServing(Error error) {
  if (error.isA<RanksEnded>()) {
    int code = ExitGood;
    llvm::handleAllErrors(std::move(error), [&](const RanksEnded &end) { code = end.code; });
    return code;
  }
  if (!lossIn(error).empty())
    return std::move(error);
  // Rank 0 prints it.
  if (Error lost = refuse(*joined, llvm::toString(std::move(error))))
    return std::move(lost);
  return awaitEnd(*joined);
}

int driver::endCommand(Expected<int> code) {
  if (!joined)
    return code ? *code : reportError(code.takeError());
  if (isServing()) {
    code = endServing(code ? Error::success() : code.takeError());
    if (code)
      if (Error error = joined->leave())
        code = std::move(error);
    if (code)
      return *code;
  }
  int value = ExitGood;
  std::string loss;
  if (code) {
    value = *code;
  } else {
    Error error = code.takeError();
    loss = lossIn(error);
    if (isServing())
      error = makeError("rank " + llvm::Twine(joined->rank()) + ": " +
                        llvm::toString(std::move(error)));
    value = reportError(std::move(error));
  }
  value = flushed(value);
  if (loss.empty())
    if (Error error = endRanks(*joined, value)) {
      loss = lossIn(error);
      reportError(std::move(error));
    }
  if (!loss.empty())
    joined->abort(loss);
  return value;
}
