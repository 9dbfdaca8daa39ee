// A libamdhip64.so.7 for tests: the fake of NVIDIA's driver under HIP's names, with devices of
// AMD's architectures (0x942 is gfx942). It reads code objects for the names, arguments and block
// sizes of their kernels; the kernels do nothing.
#include "State.h"
#include "lib/Runtime/GPU/HIP/HipApi.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELFObjectFile.h"
#include <algorithm>
#include <cstdlib>

using namespace fake_gpu;

#include "GraphFunctions.inc"

static std::string architectureOf(int device) {
  char text[16];
  snprintf(text, sizeof text, "gfx%x", unsigned(state().options.devices.at(device)));
  return text;
}

/// Reads the metadata of a code object; false where `image` is none.
static bool readMetadata(llvm::StringRef image, llvm::msgpack::Document &metadata) {
  auto file = llvm::object::ELF64LEFile::create(image);
  auto sections = file ? file->sections() : file.takeError();
  if (!sections) {
    llvm::consumeError(sections.takeError());
    return false;
  }
  for (const auto &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_NOTE)
      continue;
    llvm::Error error = llvm::Error::success();
    for (auto note : file->notes(section, error))
      if (note.getType() == llvm::ELF::NT_AMDGPU_METADATA) {
        llvm::consumeError(std::move(error));
        return metadata.readFromBlob(note.getDescAsStringRef(section.sh_addralign), false);
      }
    llvm::consumeError(std::move(error));
  }
  return false;
}

extern "C" {

Result cuGetErrorName(Result result, const char **name) {
  *name = result == kOutOfMemory      ? "hipErrorOutOfMemory"
          : result == kNoDevice       ? "hipErrorNoDevice"
          : result == 209             ? "hipErrorNoBinaryForGpu"
          : result == kInvalidCode    ? "hipErrorInvalidKernelFile"
          : result == kIllegalAddress ? "hipErrorIllegalAddress"
                                      : nullptr;
  return *name ? 0 : kInvalidValue;
}

Result cuModuleLoadDataEx(Module *module, const void *image, unsigned, JitOption *, void **) {
  ENTER();
  auto *header = static_cast<const llvm::ELF::Elf64_Ehdr *>(image);
  llvm::msgpack::Document metadata;
  if (!header->checkMagic() ||
      !readMetadata({static_cast<const char *>(image),
                     header->e_shoff + header->e_shnum * header->e_shentsize},
                    metadata))
    return kInvalidCode;
  auto &root = metadata.getRoot().getMap();
  if (!root["amdhsa.target"].getString().ends_with("--" + architectureOf(0)))
    return 209;
  auto made = std::make_shared<ModuleObject>();
  for (auto &node : root["amdhsa.kernels"].getArray()) {
    auto &kernel = node.getMap();
    ptx::Kernel &read = made->code.kernels[kernel[".name"].getString().str()];
    read.name = kernel[".name"].getString().str();
    read.parameters.resize(kernel[".kernarg_segment_size"].getUInt() / 8);
    read.mostThreads = kernel[".max_flat_workgroup_size"].getUInt();
    read.body.emplace_back();
    read.body.back().code = ptx::Instruction::Return;
  }
  *module = give(std::move(made), "module");
  return 0;
}

Result hipSetDevice(Ordinal device) {
  Result result = enter(__func__, false);
  if (!result && size_t(device) >= state().options.devices.size())
    return 101; // no such device
  current = &state().context;
  return result;
}

Result hipDeviceReset() {
  State &s = state();
  s.calls.push_back(__func__);
  freeAll(s.memory);
  freeAll(s.pinned);
  s.handles.clear();
  return 0;
}

Result hipGetDevicePropertiesR0600(ctxc::hip::Properties *properties, Ordinal device) {
  ENTER(, false);
  memset(properties, 0x55, sizeof *properties); // no other member is read
  snprintf(properties->architecture, sizeof properties->architecture, "%s:sramecc+:xnack-",
           architectureOf(device).c_str());
  return 0;
}

#define ALIAS(FIELD, CUDA, HIP, PARAMETERS) Result HIP PARAMETERS __attribute__((alias(#CUDA)));
CTXC_GRAPH_FUNCTIONS(ALIAS)

} // extern "C"
