// Writes a drawing to a file: graphviz's language, or a picture that graphviz makes of it.
#include "GraphStyle.h"
#include "ctxc/Report/Graph.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/OwnFile.h"
#include "ctxc/Support/Unfinished.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace ctxc;
using llvm::Error;
using llvm::StringRef;

/// The picture of `text`, by the program `dot`.
static llvm::Expected<std::string> draw(StringRef dot, StringRef text) {
  llvm::Expected<Unfinished> folder = Unfinished::temporaryDirectory();
  if (!folder)
    return folder.takeError();
  std::string in = (folder->path() + "/in.dot").str(), out = (folder->path() + "/out.svg").str(),
              err = (folder->path() + "/err.txt").str();
  std::error_code error;
  {
    llvm::raw_fd_ostream os(in, error);
    os << text;
  }
  std::string why;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(""), StringRef(err)};
  int code = error ? -1
                   : llvm::sys::ExecuteAndWait(dot, {dot, "-Tsvg", in, "-o", out}, std::nullopt,
                                               redirects, /*SecondsToWait=*/120, 0, &why);
  auto picture = llvm::MemoryBuffer::getFile(out);
  if (code == 0 && picture)
    return (*picture)->getBuffer().str();
  if (auto said = llvm::MemoryBuffer::getFile(err); said && why.empty())
    why = (*said)->getBuffer().split('\n').first.str();
  return makeError(dot + " failed" + (why.empty() ? "" : ": " + why));
}

llvm::Expected<std::string> ctxc::drawGraph(llvm::ArrayRef<VerdictGroup> groups) {
  auto dot = llvm::sys::findProgramByName("dot");
  if (!dot)
    return makeError("needs graphviz's 'dot', which is not in PATH; install graphviz");
  std::string text;
  llvm::raw_string_ostream os(text);
  printGraph(os, groups);
  auto picture = draw(*dot, text);
  if (!picture)
    return picture.takeError();
  if (size_t start = picture->find("<svg"); start != std::string::npos)
    picture->insert(picture->find('>', start) + 1, "\n" + graph::darkStyle());
  return picture;
}

Error ctxc::writeGraph(StringRef path, llvm::ArrayRef<VerdictGroup> groups) {
  std::string text;
  StringRef ending = llvm::sys::path::extension(path);
  if (ending == ".svg") {
    auto picture = drawGraph(groups);
    if (!picture)
      return makeError(path + ": " + llvm::toString(picture.takeError()) +
                       " (a .dot file needs nothing)");
    text = std::move(*picture);
    if (size_t start = text.find("<svg"); start != std::string::npos)
      text.insert(text.find('>', start) + 1, ("\n<!-- " + ownMark + " check. -->").str());
  } else if (ending == ".dot") {
    llvm::raw_string_ostream os(text);
    os << "// " << ownMark << " check.\n";
    printGraph(os, groups);
  } else {
    return makeError(path + ": expected a name that ends in .dot or .svg");
  }
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &file) {
    file << text;
    return Error::success();
  });
}
