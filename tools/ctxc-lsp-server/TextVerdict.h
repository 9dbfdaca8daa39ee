// What a check finds in the text of an .mlir file, as an editor shows it.
#ifndef CTXC_TOOLS_LSP_TEXTVERDICT_H
#define CTXC_TOOLS_LSP_TEXTVERDICT_H

#include "ctxc/Report/Findings.h"
#include "ctxc/Report/Place.h"
#include "mlir/IR/DialectRegistry.h"

namespace ctxc::lsp {

/// A text in which a way out was carried out: the lines `line` to `line`, from 0, replaced by
/// `lines`. Its verdict is a success.
struct Fix {
  std::string title; ///< "add a trainable scale after this xf.normalize"
  unsigned line = 0;
  std::string lines;
};

struct TextFinding {
  Place place;
  Severity severity = Severity::Error;
  std::string rule, message, advice;
  std::vector<std::pair<Place, std::string>> notes;
  std::vector<Fix> fixes;
};

struct TextVerdict {
  std::vector<TextFinding> findings;
  /// By the line of an xf.block, from 1: the report of `ctxc check` on it.
  std::vector<std::pair<unsigned, std::string>> reports;
  bool isPatchable = false;
};

/// The verdict on a valid text, with the dialects of `plugins` beside ctxc's own; none where it has
/// no block that can be judged.
std::optional<TextVerdict> judgeText(llvm::StringRef text, const mlir::DialectRegistry &plugins);

} // namespace ctxc::lsp

#endif // CTXC_TOOLS_LSP_TEXTVERDICT_H
