//===- Note.h - what the exporter says beside the program -----------------===//
//
// 'python -m ctxc.export' adds the entry extra/ctxc.json: what the inputs are, which names are one
// tensor, which parameters are parts of others, and which values, as masks, let a token see
// another. In a file without it the inputs' names and types say what they are, and the stored
// weights which share their memory.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_NOTE_H
#define CTXC_IMPORT_NOTE_H

#include "Archive.h"
#include "ctxc/Checkpoint/JsonTree.h"
#include "ctxc/Import/Import.h"
#include "llvm/ADT/StringSet.h"

namespace ctxc::pt2 {

struct Note {
  llvm::StringMap<std::string> roles;   ///< of inputs, by name
  llvm::StringMap<std::string> aliases; ///< of a stored name: the one that stands for it
  llvm::StringSet<> visible;            ///< values
  std::vector<StoredPart> parts;        ///< without their shapes
  std::string taken;                    ///< which result is taken for the logits, if others may be
};

/// The note of `archive`, or what takes its place.
llvm::Expected<Note> readNote(const Archive &archive);

/// An entry of `archive` as a JSON object.
llvm::Expected<JsonTree> readJson(const Archive &archive, llvm::StringRef entry);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_NOTE_H
