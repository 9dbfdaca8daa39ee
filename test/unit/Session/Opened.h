#ifndef CTXC_TEST_SESSION_OPENED_H
#define CTXC_TEST_SESSION_OPENED_H

#include "ctxc/Session/Model.h"
#include "gtest/gtest.h"

namespace ctxc::test {

/// The model; ends the program with the reason where it cannot be opened.
inline std::unique_ptr<Model> opened(llvm::StringRef path, LoadOptions options = {}) {
  auto model = Model::load(path, std::move(options));
  if (!model) {
    ADD_FAILURE() << llvm::toString(model.takeError());
    std::abort();
  }
  return std::move(*model);
}

} // namespace ctxc::test

#endif // CTXC_TEST_SESSION_OPENED_H
