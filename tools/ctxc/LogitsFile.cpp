#include "LogitsFile.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"

using namespace ctxc;
using namespace ctxc::driver;

LogitsObserver LogitsFile::observer() {
  return [this](llvm::ArrayRef<double> full, llvm::ArrayRef<double> patched,
                llvm::ArrayRef<double> control) {
    ++steps;
    for (auto [to, from] : {std::pair(&rows[0], full), {&rows[1], patched}, {&rows[2], control}})
      to->insert(to->end(), from.begin(), from.end());
  };
}

llvm::Error LogitsFile::write(llvm::StringRef path) const {
  std::vector<TensorSource> tensors;
  const char *names[] = {"full", "patched", "control"};
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<float> &values = rows[i];
    int64_t width = steps ? values.size() / steps : 0;
    tensors.push_back({names[i], DType::F32, {steps, width}, [&values](llvm::raw_ostream &os) {
                         std::vector<uint8_t> bytes(values.size() * sizeof(float));
                         writeFloats(DType::F32, values, bytes.data());
                         os.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
                         return llvm::Error::success();
                       }});
  }
  return writeSafetensors(path, std::move(tensors), {{"format", "ctxc-logits"}});
}
