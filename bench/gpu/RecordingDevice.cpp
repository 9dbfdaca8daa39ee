#include "bench/gpu/RecordingDevice.h"
#include "ctxc/Support/Error.h"
#include <sys/mman.h>

using namespace ctxc;
using namespace ctxc::bench;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

DrawnWeights::DrawnWeights() {
  void *made = mmap(nullptr, kinds * poolBytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  pools = made == MAP_FAILED ? nullptr : static_cast<char *>(made);
}
DrawnWeights::~DrawnWeights() {
  if (pools)
    munmap(pools, kinds * poolBytes);
}

Expected<const void *> DrawnWeights::get(StringRef name, mlir::RankedTensorType type) {
  const DType dtype = storageOf(type.getElementType());
  std::optional<Numbers> kind;
  switch (dtype) {
  case DType::F32:
    kind = type.getRank() < 2 ? Numbers::VectorF32 : Numbers::MatrixF32;
    break;
  case DType::BF16:
    kind = type.getRank() < 2 ? Numbers::VectorBF16 : Numbers::MatrixBF16;
    break;
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES)                                     \
  case DType::NAME:                                                                                \
    kind = Numbers::NAME;                                                                          \
    break;
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)
#include "ctxc/Support/BlockFormats.def"
  default:
    break;
  }
  if (!pools || !kind)
    return makeError("'" + name + "': drawn weights are f32, bf16 or in blocks");
  if (size_t(bytesOf(dtype, type.getNumElements())) > poolBytes)
    return makeError("'" + name + "': is larger than drawn weights are");
  return pools + uint64_t(*kind) * poolBytes;
}

std::optional<Numbers> DrawnWeights::kindOf(const void *address) const {
  size_t offset = static_cast<const char *>(address) - pools;
  if (!pools || address < pools || offset >= kinds * poolBytes)
    return std::nullopt;
  return Numbers(offset / poolBytes);
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

struct RecordingDevice::RecordedBuffer : Buffer {
  RecordingDevice *device = nullptr;
  uint64_t id = 0;
  std::unique_ptr<Buffer> inner;
  ~RecordedBuffer() override {
    device->writer.call(Call::Free);
    device->writer.number(id);
  }
};
struct RecordingDevice::RecordedSequence : Sequence {
  uint64_t id = 0;
  std::unique_ptr<Sequence> inner;
};

RecordingDevice::RecordingDevice(std::string target, std::unique_ptr<Device> inner,
                                 const DrawnWeights *drawn, llvm::raw_ostream &os)
    : codeTarget(std::move(target)), inner(std::move(inner)), drawn(drawn), writer(os) {
  writer.call(Call::Target);
  writer.text(codeTarget);
}

Error RecordingDevice::load(StringRef code) {
  writer.call(Call::Load);
  writer.text(code);
  return inner ? inner->load(code) : Error::success();
}

Expected<std::unique_ptr<Device::Buffer>> RecordingDevice::allocate(size_t bytes) {
  auto made = std::make_unique<RecordedBuffer>();
  made->device = this;
  made->id = buffers++;
  made->bytes = bytes;
  writer.call(Call::Allocate);
  writer.number(made->id);
  writer.number(bytes);
  if (inner) {
    auto real = inner->allocate(bytes);
    if (!real)
      return real.takeError();
    made->inner = std::move(*real);
  }
  return made;
}

Error RecordingDevice::upload(Buffer &to, size_t offset, ArrayRef<char> from) {
  auto &buffer = static_cast<RecordedBuffer &>(to);
  if (auto numbers = drawn ? drawn->kindOf(from.data()) : std::nullopt) {
    writer.call(Call::Draw);
    writer.number(buffer.id);
    writer.number(offset);
    writer.number(from.size());
    writer.number(uint64_t(*numbers));
    return Error::success();
  }
  writer.call(Call::Upload);
  writer.number(buffer.id);
  writer.number(offset);
  writer.text({from.data(), from.size()});
  return inner ? inner->upload(*buffer.inner, offset, from) : Error::success();
}

Error RecordingDevice::download(llvm::MutableArrayRef<char> to, const Buffer &from, size_t offset) {
  auto &buffer = static_cast<const RecordedBuffer &>(from);
  if (!inner) // distinct integers, so that no selection repeats one
    for (uint32_t i = 0; i < to.size() / sizeof i; ++i)
      memcpy(to.data() + i * sizeof i, &i, sizeof i);
  if (inner)
    if (Error error = inner->download(to, *buffer.inner, offset))
      return error;
  writer.call(Call::Download);
  writer.number(buffer.id);
  writer.number(offset);
  writer.number(to.size());
  writer.text(inner ? StringRef(to.data(), to.size()) : StringRef());
  writer.text(label);
  return Error::success();
}

Expected<std::unique_ptr<Device::Sequence>> RecordingDevice::record(ArrayRef<Launch> launches) {
  auto made = std::make_unique<RecordedSequence>();
  made->id = sequences++;
  writer.call(Call::Record);
  writer.number(made->id);
  writer.number(launches.size());
  std::vector<Launch> real(launches);
  for (Launch &launch : real) {
    writer.text(launch.function);
    writer.text(launch.source);
    writer.number(launch.blocks);
    writer.number(launch.threads);
    writer.number(launch.code);
    writer.number(launch.buffers.size());
    for (Buffer *&buffer : launch.buffers) {
      auto *recorded = static_cast<RecordedBuffer *>(buffer);
      writer.number(recorded->id);
      buffer = recorded->inner.get();
    }
  }
  if (inner) {
    auto sequence = inner->record(real);
    if (!sequence)
      return sequence.takeError();
    made->inner = std::move(*sequence);
  }
  return made;
}

Expected<double> RecordingDevice::run(Sequence &sequence) {
  auto &recorded = static_cast<RecordedSequence &>(sequence);
  writer.call(Call::Run);
  writer.number(recorded.id);
  writer.text(label);
  if (!inner)
    return 0;
  return inner->run(*recorded.inner);
}

void RecordingDevice::note(StringRef what, StringRef why) {
  writer.call(Call::Note);
  writer.text(what);
  writer.text(why);
}
