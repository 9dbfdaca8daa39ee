// Finds everything in a request that cannot be run.
#include "ctxc/Support/Error.h"
#include "ctxc/Verify/Verify.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using llvm::Error;

/// Checks the positions to patch, where there are several.
static Error checkPositions(const RunRequest &request, const Executor &executor) {
  if (request.positions.empty())
    return Error::success();
  Error errors = Error::success();
  auto fail = [&](const llvm::Twine &message) {
    errors = llvm::joinErrors(std::move(errors), makeError(message));
  };
  int64_t last = static_cast<int64_t>(request.tokens.size()) - 1, before = 0;
  for (int64_t position : request.positions) {
    if (position == 0)
      fail("positions: found 0, whose token has no context; expected positions from 1 to " +
           llvm::Twine(last));
    else if (position < 0 || position > last)
      fail("positions: found " + llvm::Twine(position) + ", expected positions from 1 to " +
           llvm::Twine(last) + ", the last token's");
    else if (position <= before)
      fail("positions: " + llvm::Twine(position) + " follows " + llvm::Twine(before) +
           ", expected ascending positions");
    before = std::max(before, position);
  }
  if (request.materialize)
    fail("positions: patches of several are kept beside the weights; expected none of them "
         "materialized");
  if (executor.isBidirectional())
    fail("positions: the model is bidirectional: every token sees all others, so that no two of "
         "them can be patched in one pass; expected the last token alone");
  return errors;
}

/// Checks an embedding in place of token `i`.
static Error checkEmbedding(const Input &input, size_t i, const Executor &executor) {
  std::optional<int64_t> width = executor.embeddingWidth();
  if (!width)
    return makeError("tokens: a row stands in place of token " + llvm::Twine(i) +
                     ", and the model has no place for one: it reads the token for more than its "
                     "embedding");
  if (int64_t(input.embedding().size()) != *width)
    return makeError("tokens: the row in place of token " + llvm::Twine(i) + " has " +
                     llvm::Twine(input.embedding().size()) + " numbers, expected " +
                     llvm::Twine(*width) + ", as many as a token's embedding");
  return Error::success();
}

Error ctxc::checkRequest(const RunRequest &request, const Executor &executor, int64_t count) {
  Error errors = Error::success();
  auto fail = [&](const llvm::Twine &message) {
    errors = llvm::joinErrors(std::move(errors), makeError(message));
  };
  int64_t vocabulary = executor.vocabulary(), layers = executor.layers();
  int64_t last = static_cast<int64_t>(request.tokens.size()) - 1;
  if (last < 1)
    fail("tokens: found " + llvm::Twine(last + 1) +
         ", expected at least two: a context, and the last token that is run after it");
  for (auto [i, input] : llvm::enumerate(request.tokens))
    if (input.isEmbedding()) {
      if (Error error = checkEmbedding(input, i, executor))
        errors = llvm::joinErrors(std::move(errors), std::move(error));
    } else if (int64_t token = input.token(); token < 0 || token >= vocabulary)
      fail("tokens: token " + llvm::Twine(i) + " is " + llvm::Twine(token) +
           ", expected an id from 0 to " + llvm::Twine(vocabulary - 1));
  int64_t before = -1;
  for (int64_t position : request.kept) {
    if (position < 0 || position >= last)
      fail("kept positions: found " + llvm::Twine(position) +
           ", expected positions of the context, from 0 to " + llvm::Twine(last - 1));
    else if (position <= before)
      fail("kept positions: " + llvm::Twine(position) + " follows " + llvm::Twine(before) +
           ", expected ascending positions");
    before = position;
  }
  if (request.startLayer < 0 || request.startLayer >= layers)
    fail("start layer: found " + llvm::Twine(request.startLayer) + ", expected a layer from 0 to " +
         llvm::Twine(layers - 1));
  if (executor.isBidirectional() && !request.kept.empty())
    fail("kept positions: found some, and the model is bidirectional: kept tokens would see the "
         "patched one, and change with it; expected none");
  if (executor.isBidirectional() && count > 1)
    fail("tokens to generate: found " + llvm::Twine(count) +
         ", and the model is bidirectional: a token more would change the runs of those before it; "
         "expected 1");
  return llvm::joinErrors(std::move(errors), checkPositions(request, executor));
}
