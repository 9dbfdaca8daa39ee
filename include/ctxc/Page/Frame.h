//===- Frame.h - the frame of a self-contained HTML page -------------------===//
//
// One HTML file that loads nothing: its content security policy allows its own style and its one
// script, by digest. The script shows on hover and on focus what pictures say of their parts.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PAGE_FRAME_H
#define CTXC_PAGE_FRAME_H

#include "llvm/Support/raw_ostream.h"
#include <string>

namespace ctxc::page {

/// What a page is filled with, as HTML; what comes from a model or a user is escaped (Html.h).
struct Content {
  std::string command; ///< that wrote it: "ctxc inspect"
  std::string title, heading, lead, figures, footer;
};

void writePage(llvm::raw_ostream &os, const Content &content);

} // namespace ctxc::page

#endif // CTXC_PAGE_FRAME_H
