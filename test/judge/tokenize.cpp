// judge-tokenize DIRECTORY LINES OUT: runs a directory's tokenizer over a file of texts, for
// tokenizers_judge.py. LINES holds each text as its length in bytes (32 bits, little endian) and
// its bytes. OUT gets for each text its ids with and without the special tokens, and the texts that
// the latter decode to: all of them, all but the first, all but the last; and the bytes that each
// of them stands for, one after the other; behind the last text, the tokens that end a text.
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace ctxc;

static void write(raw_ostream &os, ArrayRef<int64_t> ids) {
  support::endian::write<uint32_t>(os, ids.size(), endianness::little);
  for (int64_t id : ids)
    support::endian::write<uint32_t>(os, id, endianness::little);
}

static void write(raw_ostream &os, StringRef text) {
  support::endian::write<uint32_t>(os, text.size(), endianness::little);
  os << text;
}

static Error run(StringRef directory, StringRef lines, StringRef out) {
  Expected<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(directory);
  if (!tokenizer)
    return tokenizer.takeError();
  Expected<std::string> texts = readSmallFile(lines, 1 << 30);
  if (!texts)
    return texts.takeError();
  std::error_code ec;
  raw_fd_ostream os(out, ec);
  if (ec)
    return errorCodeToError(ec);
  StringRef rest = *texts;
  while (rest.size() >= 4) {
    size_t size = support::endian::read32le(rest.data());
    StringRef text = rest.substr(4, size);
    rest = rest.drop_front(std::min(rest.size(), 4 + size));
    for (bool special : {true, false}) {
      auto ids = (*tokenizer)->encode(text, special);
      if (!ids)
        return ids.takeError();
      write(os, *ids);
      if (special)
        continue;
      ArrayRef<int64_t> all = *ids;
      for (ArrayRef<int64_t> part :
           {all, all.drop_front(!all.empty()), all.drop_back(!all.empty())}) {
        Expected<std::string> decoded = (*tokenizer)->decode(part);
        if (!decoded)
          return decoded.takeError();
        write(os, *decoded);
      }
      std::string bytes;
      for (int64_t id : all)
        bytes += (*tokenizer)->bytes(id);
      write(os, bytes);
    }
  }
  write(os, (*tokenizer)->ends);
  return Error::success();
}

int main(int argc, char **argv) {
  if (argc != 4) {
    errs() << "usage: judge-tokenize DIRECTORY LINES OUT\n";
    return 2;
  }
  if (Error error = run(argv[1], argv[2], argv[3])) {
    errs() << "judge-tokenize: error: " << toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
