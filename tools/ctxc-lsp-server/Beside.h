// Verdicts beside what MLIR's language server says.
#ifndef CTXC_TOOLS_LSP_BESIDE_H
#define CTXC_TOOLS_LSP_BESIDE_H

#include "Messages.h"
#include "TextVerdict.h"
#include <condition_variable>
#include <map>
#include <set>

namespace ctxc::lsp {

/// Stands between an editor and MLIR's server, and hands on all messages. To what the server says
/// of a valid document it adds the verdict: as diagnostics, of which each has its rule's page on
/// hover and the ways out that were tried with success as code actions.
class Beside {
public:
  Beside(Sender &toEditor, Sender &toServer, const mlir::DialectRegistry &plugins)
      : toEditor(toEditor), toServer(toServer), plugins(plugins) {}

  void fromEditor(llvm::json::Object message);
  void fromServer(llvm::json::Object message);
  /// Judges documents as they become valid, until `end`. Runs in a thread of its own.
  void judgeDocuments();
  void end();

private:
  struct Document {
    int64_t version = 0;
    std::string text;
    llvm::json::Array told; ///< the server's diagnostics
    std::optional<TextVerdict> verdict;
  };
  void follow(llvm::StringRef method, const llvm::json::Object &params);
  bool takeDiagnostics(const llvm::json::Object &params);
  void addTo(llvm::json::Object &answer, llvm::StringRef method, const llvm::json::Object &params);
  void publish(const std::string &uri, const Document &document);

  Sender &toEditor, &toServer;
  const mlir::DialectRegistry &plugins;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Document> documents; ///< by their URI
  std::set<std::string> valid;               ///< of these documents, those to be judged
  bool ends = false;
  /// Requests without an answer, by their id as JSON: the method, and its parameters.
  std::map<std::string, std::pair<std::string, llvm::json::Object>> requests;
};

} // namespace ctxc::lsp

#endif // CTXC_TOOLS_LSP_BESIDE_H
