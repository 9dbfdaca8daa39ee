#include "tools/CommandLine/Streams.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/StandardStreams.h"
#include "ctxc/Support/Unfinished.h"
#include "ctxc/Support/UserCache.h"
#include "tools/CommandLine/CommandLine.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

namespace {

/// Passes lines on, in which control characters are written out.
class TerminalStream : public llvm::raw_ostream {
public:
  /// Whoever writes to the stream decides when what is written is shown, unless `isPrompt`.
  TerminalStream(llvm::raw_ostream &to, bool isPrompt) : raw_ostream(isPrompt), to(to) {
    const char *wish = std::getenv("NO_COLOR");
    enable_colors(to.has_colors() && !(wish && *wish));
  }

  raw_ostream &changeColor(Colors colour, bool bold, bool background) override {
    if (has_colors()) {
      flushAll();
      to.changeColor(colour, bold, background);
    }
    return *this;
  }
  raw_ostream &resetColor() override {
    if (has_colors()) {
      flushAll();
      to.resetColor();
    }
    return *this;
  }
  bool is_displayed() const override { return to.is_displayed(); }
  bool has_colors() const override { return colors_enabled(); }

  /// What is not a whole line yet, too.
  void flushAll() {
    flush();
    to << printable(line);
    line.clear();
    to.flush();
  }

private:
  void write_impl(const char *data, size_t size) override {
    position += size;
    line.append(data, size);
    if (size_t end = line.rfind('\n'); end != std::string::npos) {
      to << printable(StringRef(line).take_front(end + 1));
      line.erase(0, end + 1);
      to.flush();
    }
  }
  uint64_t current_pos() const override { return position; }

  llvm::raw_ostream &to;
  std::string line;
  uint64_t position = 0;
};

TerminalStream &output() {
  static TerminalStream stream(llvm::outs(), llvm::outs().is_displayed());
  return stream;
}
TerminalStream &messages() {
  static TerminalStream stream(llvm::errs(), /*isPrompt=*/true);
  return stream;
}

} // namespace

llvm::raw_ostream &driver::out() { return output(); }

void driver::printJson(const llvm::json::Value &value) {
  // JSON's writer leaves DEL and U+0080 to U+009F as they are.
  std::string plain = llvm::formatv("{0:2}\n", value).str(), text;
  for (size_t i = 0; i < plain.size(); ++i) {
    auto byte = static_cast<unsigned char>(plain[i]);
    bool isC1 = byte == 0xc2 && static_cast<unsigned char>(plain[i + 1]) < 0xa0;
    if (isC1)
      byte = plain[++i];
    if (isC1 || byte == 0x7f)
      text += "\\u00" + llvm::utohexstr(byte, /*LowerCase=*/true, /*Width=*/2);
    else
      text += plain[i];
  }
  out() << text;
}

void driver::flushOutput() { output().flushAll(); }

llvm::raw_ostream &driver::err() {
  output().flushAll(); // what was printed before a message comes before it
  return messages();
}

/// OpenMP's library keeps a file in shared memory while it runs, named by the process, and ends the
/// program where such a file is there and empty. A process that was killed may have left one, and
/// numbers of processes come again.
static void removeFileOfOpenMP() {
  std::string name =
      llvm::formatv("/__KMP_REGISTERED_LIB_{0}_{1}", int64_t(::getpid()), int64_t(::getuid()));
  ::shm_unlink(name.c_str());
}

void driver::beginProgram() {
  openStandardStreams();
  removeFileOfOpenMP();
  installMappedFileGuard();
  removeUnfinishedOnSignals();
  setCacheNotice([](StringRef line) { err() << "ctxc: note: " << line << "\n"; });
}

int driver::flushed(int code) {
  output().flushAll();
  if (llvm::outs().has_error()) {
    std::string message = llvm::outs().error().message();
    llvm::outs().clear_error();
    err() << "ctxc: error: standard output: " << message << "\n";
    code = ExitBadInput;
  }
  messages().flushAll();
  llvm::errs().clear_error(); // there is nowhere to say so, and it is not the command's failure
  return code;
}
