// Models and messages for the tests of this room.
#ifndef CTXC_TEST_UNIT_DISTIL_MODELS_H
#define CTXC_TEST_UNIT_DISTIL_MODELS_H

#include "ctxc/Session/Model.h"
#include "test/unit/Goldens.h"
#include "test/unit/Session/Opened.h"

namespace ctxc::test {

inline std::unique_ptr<Model> modelOf(llvm::StringRef name, int threads = 0) {
  LoadOptions options;
  options.storage = DType::F32;
  options.threads = threads;
  return opened(golden(name), options);
}

inline std::string messageOf(llvm::Error error) { return llvm::toString(std::move(error)); }

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_DISTIL_MODELS_H
