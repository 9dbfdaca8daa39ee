// Finds everything in a request that cannot be run.
#include "ctxc/Support/Error.h"
#include "ctxc/Verify/Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <functional>

using namespace ctxc;
using llvm::Error;

/// The numbers of a list that are out of place, as a message shows them: a few, and how many more.
static std::string shortList(llvm::ArrayRef<int64_t> numbers) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < std::min(numbers.size(), most); ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  if (numbers.size() > most)
    text += " and " + std::to_string(numbers.size() - most) + " more";
  return text;
}

/// Those of `positions` that are below `first` or beyond `last`.
static llvm::SmallVector<int64_t> outside(llvm::ArrayRef<int64_t> positions, int64_t first,
                                          int64_t last) {
  llvm::SmallVector<int64_t> found;
  for (int64_t position : positions)
    if (position < first || position > last)
      found.push_back(position);
  return found;
}

/// The first position that is not after the one before it; −1 where there is none.
static int64_t firstOutOfOrder(llvm::ArrayRef<int64_t> positions) {
  auto found = std::adjacent_find(positions.begin(), positions.end(), std::greater_equal<>());
  return found == positions.end() ? -1 : found - positions.begin() + 1;
}

/// Checks the positions to patch, where there are several.
static Error checkPositions(const RunRequest &request, const Executor &executor) {
  if (request.positions.empty())
    return Error::success();
  Error errors = Error::success();
  auto fail = [&](const llvm::Twine &message) {
    errors = llvm::joinErrors(std::move(errors), makeError(message));
  };
  int64_t last = static_cast<int64_t>(request.tokens.size()) - 1;
  llvm::ArrayRef<int64_t> positions = request.positions;
  if (llvm::is_contained(positions, 0))
    fail("positions: found 0, whose token has no context; expected positions from 1 to " +
         llvm::Twine(last));
  if (auto wrong = outside(positions, 0, last); !wrong.empty())
    fail("positions: found " + shortList(wrong) + ", expected positions from 1 to " +
         llvm::Twine(last) + ", the last token's");
  if (int64_t at = firstOutOfOrder(positions); at > 0)
    fail("positions: " + llvm::Twine(positions[at]) + " follows " + llvm::Twine(positions[at - 1]) +
         ", expected ascending positions");
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
    return makeError("tokens: an embedding stands in place of token " + llvm::Twine(i) +
                     ", and the model has no place for one: it reads the token for more than its "
                     "embedding");
  if (int64_t(input.embedding().size()) != *width)
    return makeError("tokens: the embedding in place of token " + llvm::Twine(i) + " has " +
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
  llvm::SmallVector<int64_t> foreign, places;
  for (auto [i, input] : llvm::enumerate(request.tokens))
    if (input.isEmbedding()) {
      if (Error error = checkEmbedding(input, i, executor)) {
        errors = llvm::joinErrors(std::move(errors), std::move(error));
        break; // all embeddings are rows of one matrix
      }
    } else if (int64_t token = input.token(); token < 0 || token >= vocabulary) {
      foreign.push_back(token);
      places.push_back(i);
    }
  if (!foreign.empty())
    fail((foreign.size() == 1 ? "tokens: token " : "tokens: tokens ") + shortList(places) +
         (foreign.size() == 1 ? " is " : " are ") + shortList(foreign) +
         ", expected ids from 0 to " + llvm::Twine(vocabulary - 1));
  llvm::ArrayRef<int64_t> kept = request.kept;
  if (auto wrong = outside(kept, 0, last - 1); !wrong.empty())
    fail("kept positions: found " + shortList(wrong) +
         ", expected positions of the context, from 0 to " + llvm::Twine(last - 1));
  if (int64_t at = firstOutOfOrder(kept); at > 0)
    fail("kept positions: " + llvm::Twine(kept[at]) + " follows " + llvm::Twine(kept[at - 1]) +
         ", expected ascending positions");
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
