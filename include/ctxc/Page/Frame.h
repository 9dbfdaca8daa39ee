//===- Frame.h - the frame of a self-contained HTML page -------------------===//
//
// One HTML file that loads nothing: its content security policy allows its own style and its one
// script, by digest. The script shows the descriptions of a picture's parts on hover and on focus.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PAGE_FRAME_H
#define CTXC_PAGE_FRAME_H

#include "llvm/Support/raw_ostream.h"
#include <string>

namespace ctxc::page {

/// The content of a page, as HTML; text from a model or a user is escaped (Html.h).
struct Content {
  std::string command; ///< the command that wrote it: "ctxc inspect"
  std::string title, heading, lead, figures, footer;
};

void writePage(llvm::raw_ostream &os, const Content &content);

} // namespace ctxc::page

#endif // CTXC_PAGE_FRAME_H
