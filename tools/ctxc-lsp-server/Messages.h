// JSON-RPC messages as the language server protocol frames them.
#ifndef CTXC_TOOLS_LSP_MESSAGES_H
#define CTXC_TOOLS_LSP_MESSAGES_H

#include "llvm/Support/JSON.h"
#include <cstdio>
#include <mutex>
#include <optional>

namespace ctxc::lsp {

/// The next message of a stream; none at its end, or where what comes is no message.
std::optional<llvm::json::Object> readMessage(FILE *from);

/// Writes messages to a descriptor, each as a whole, from any thread. A reader that is gone is no
/// error.
class Sender {
public:
  explicit Sender(int descriptor) : descriptor(descriptor) {}
  void send(const llvm::json::Object &message);
  /// No message follows.
  void end();

private:
  int descriptor;
  std::mutex mutex;
};

} // namespace ctxc::lsp

#endif // CTXC_TOOLS_LSP_MESSAGES_H
