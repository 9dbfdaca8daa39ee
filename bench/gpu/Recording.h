//===- Recording.h - a model's work on a GPU, to be replayed elsewhere ---------===//
//
// A recording is a model's work on a GPU as a file: its code, its memory, its launches, and what
// was uploaded and downloaded. It is made where ctxc is built (ctxc-gpu-record) and replayed where
// a GPU is (ctxc-gpu-replay). Replaying needs neither LLVM nor weights: large weights are described
// as random numbers.
//
// A file is a magic word, followed by calls: a byte for the kind of call, then its fields. Numbers
// are 8 bytes, little-endian; texts and arrays begin with their length.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_BENCH_GPU_RECORDING_H
#define CTXC_BENCH_GPU_RECORDING_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <cstring>

namespace ctxc::bench {

constexpr char recordingMagic[] = "ctxcgpu4";

enum class Call : char {
  Target,   ///< text: the code's target
  Load,     ///< text: the code
  Allocate, ///< buffer, bytes
  Free,     ///< buffer
  Upload,   ///< buffer, offset, bytes as a text
  Draw,     ///< buffer, offset, bytes, Numbers: random numbers
  Download, ///< buffer, offset, count, bytes as a text: what came, or nothing where none did; text:
            ///< the label of the work that it is of, if it has one
  Record,   ///< sequence, launches: function, source, blocks, threads, load, buffers
  Run,      ///< sequence, text: what its time is called, if it is to be measured
  Note,     ///< text, text: what is not there, and why
};

/// The distribution of random numbers: small ones for matrices, numbers near 1 for vectors; and
/// blocks of quantised matrices.
enum class Numbers : uint64_t {
  MatrixF32,
  VectorF32,
  MatrixBF16,
  VectorBF16,
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES) NAME,
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)
#include "ctxc/Support/BlockFormats.def"
  Kinds
};

class RecordingWriter {
public:
  explicit RecordingWriter(llvm::raw_ostream &os) : os(os) {
    os << llvm::StringRef(recordingMagic);
  }
  void call(Call which) { os << char(which); }
  void number(uint64_t value) { os.write(reinterpret_cast<const char *>(&value), sizeof value); }
  void text(llvm::StringRef value) {
    number(value.size());
    os << value;
  }

private:
  llvm::raw_ostream &os;
};

/// Reads the file. isGood() is false after an attempt to read what is not there.
class RecordingReader {
public:
  explicit RecordingReader(llvm::StringRef content)
      : rest(content), good(rest.consume_front(recordingMagic)) {}
  bool isGood() const { return good; }
  bool atEnd() const { return rest.empty() || !good; }
  Call call() { return Call(take(1).front()); }
  uint64_t number() {
    uint64_t value = 0;
    llvm::StringRef bytes = take(sizeof value);
    memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  llvm::StringRef text() { return take(number()); }

private:
  llvm::StringRef take(uint64_t count) {
    static constexpr char zeros[8] = {};
    if (count > rest.size()) {
      good = false;
      rest = "";
      return llvm::StringRef(zeros, count <= sizeof zeros ? count : 0);
    }
    llvm::StringRef taken = rest.take_front(count);
    rest = rest.drop_front(count);
    return taken;
  }

  llvm::StringRef rest;
  bool good;
};

} // namespace ctxc::bench

#endif // CTXC_BENCH_GPU_RECORDING_H
