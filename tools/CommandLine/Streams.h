//===- Streams.h - all that a tool says ------------------------------------===//
//
// Tools write to these two streams, and to no others. Whatever names a model, a file or a shell
// gave them, a terminal gets text: what controls it is written as \xNN.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_STREAMS_H
#define CTXC_TOOLS_COMMANDLINE_STREAMS_H

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc::driver {

/// Standard output, and messages. In colours where a terminal has them, unless NO_COLOR says
/// otherwise.
llvm::raw_ostream &out();
llvm::raw_ostream &err();

/// Writes a value to out(), in lines. Control characters of its texts are JSON's own escapes.
void printJson(const llvm::json::Value &value);

/// Shows what was written to out(), also a line that has not ended.
void flushOutput();

/// For main(), first of all: what a program of ours asks of the system. Standard streams are open;
/// a mapped file that is cut short, and a signal that ends the program, leave no unfinished output;
/// a cache that is not believed is told of.
void beginProgram();

/// For the end of main(): `code`, or ExitBadInput, with a message, where writing to standard output
/// failed: a script would otherwise take half of the output for all of it.
int flushed(int code);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_STREAMS_H
