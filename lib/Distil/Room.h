// Whether there is memory for what is asked, before anything of it is computed.
#ifndef CTXC_LIB_DISTIL_ROOM_H
#define CTXC_LIB_DISTIL_ROOM_H

#include "Sequences.h"
#include "ctxc/Distil/Entries.h"
#include "ctxc/Distil/Evaluate.h"

namespace ctxc {

/// For the closed form, of both runs' sequences, and for the request's passes of gradient.
llvm::Error checkRoomToFit(const SplitModel &model, const DistilRequest &request,
                           llvm::ArrayRef<PassageSequence> full,
                           llvm::ArrayRef<PassageSequence> reduced);

/// The same for virtual entries.
llvm::Error checkRoomToFitEntries(const SplitModel &model, const DistilRequest &request,
                                  llvm::ArrayRef<PassageSequence> full,
                                  llvm::ArrayRef<PassageSequence> adapted);

/// To read texts after `front`, and to compute the logits of so many tokens at once.
llvm::Error checkRoomToRead(const SplitModel &model, const Front &front,
                            llvm::ArrayRef<TextSequence> texts, size_t logits);

/// To write texts after `front` that keep `kept` bytes of their tokens.
llvm::Error checkRoomToSample(const SplitModel &model, const Front &front, size_t texts,
                              uint64_t kept);

/// As checkRoomToEvaluate; `keeps`: the full model's logits, for the next adapter.
llvm::Error checkRoomToEvaluate(const SplitModel &model, const EvaluateRequest &request, bool keeps,
                                const Adapter *adapter);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_ROOM_H
