// A GPU, or Mesa's lavapipe on the processor, through Vulkan. Buffers are memory that both sides
// see, and stay mapped; a sequence is a command buffer with a barrier after each launch.
#ifndef CTXC_LIB_RUNTIME_GPU_VULKAN_VULKANDEVICE_H
#define CTXC_LIB_RUNTIME_GPU_VULKAN_VULKANDEVICE_H

#include "ctxc/Runtime/GPU/Device.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/Vulkan/VulkanApi.h"
#include "llvm/ADT/StringMap.h"
#include <cstring>

namespace ctxc::vulkan {

inline llvm::Error failed(llvm::StringRef what, VkResult result) {
  return makeError("vulkan: " + what + " failed: " +
                   (result == VK_ERROR_DEVICE_LOST          ? "the device is lost"
                    : result == VK_ERROR_OUT_OF_HOST_MEMORY ? "out of memory"
                    : result == VK_ERROR_OUT_OF_DEVICE_MEMORY
                        ? "out of device memory"
                        : "error " + std::to_string(int(result))));
}

/// A structure of Vulkan's, with all other members zero.
template <typename T> T ofType(VkStructureType type) {
  T made = {};
  made.sType = type;
  return made;
}

struct VulkanBuffer : Device::Buffer {
  const VulkanApi *vk = nullptr;
  VkDevice device = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  char *mapped = nullptr;
  ~VulkanBuffer() override {
    vk->DestroyBuffer(device, buffer, nullptr);
    vk->FreeMemory(device, memory, nullptr);
  }
};

struct VulkanSequence : Device::Sequence {
  const VulkanApi *vk = nullptr;
  VkDevice device = VK_NULL_HANDLE;
  VkCommandPool commands = VK_NULL_HANDLE;
  VkDescriptorPool sets = VK_NULL_HANDLE;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  std::vector<std::string> functions; ///< of the launches, to name where one fails
  ~VulkanSequence() override {
    vk->FreeCommandBuffers(device, commands, 1, &buffer);
    vk->DestroyDescriptorPool(device, sets, nullptr);
  }
};

struct Pipeline {
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
};

class VulkanDevice : public Device {
public:
  static llvm::Expected<std::unique_ptr<Device>> open(int64_t lanes);
  ~VulkanDevice() override;

  std::string name() const override { return properties.deviceName; }
  std::string target() const override { return "vulkan:" + std::to_string(lanes); }
  size_t memory() const override {
    return memories.memoryHeaps[memories.memoryTypes[memoryType].heapIndex].size;
  }
  size_t largestBuffer() const override { return properties.limits.maxStorageBufferRange; }
  llvm::Error load(llvm::StringRef code) override;
  llvm::Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) override;
  llvm::Error upload(Buffer &to, size_t offset, llvm::ArrayRef<char> from) override {
    memcpy(static_cast<VulkanBuffer &>(to).mapped + offset, from.data(), from.size());
    return llvm::Error::success();
  }
  llvm::Error download(llvm::MutableArrayRef<char> to, const Buffer &from, size_t offset) override {
    memcpy(to.data(), static_cast<const VulkanBuffer &>(from).mapped + offset, to.size());
    return llvm::Error::success();
  }
  llvm::Expected<std::unique_ptr<Sequence>> record(llvm::ArrayRef<Launch> launches) override;
  llvm::Expected<double> run(Sequence &sequence) override;

private:
  llvm::Error choose(int64_t lanes);
  llvm::Error open();
  std::string refusal(VkPhysicalDevice candidate, int64_t lanes);
  llvm::Expected<Pipeline *> pipelineOf(const Launch &launch);
  llvm::Error write(VulkanSequence &sequence, llvm::ArrayRef<Launch> launches);
  VkDescriptorSet bindingsOf(VulkanSequence &sequence, const Pipeline &pipeline,
                             const Launch &launch);

  VulkanApi vk;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceMemoryProperties memories = {};
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkCommandPool commands = VK_NULL_HANDLE;
  VkQueryPool times = VK_NULL_HANDLE;
  uint32_t family = 0, memoryType = 0;
  int64_t lanes = 0;
  /// The result of a load.
  struct Code {
    VkShaderModule module = VK_NULL_HANDLE;
    llvm::StringMap<Pipeline> pipelines;
  };
  std::vector<Code> codes;
};

} // namespace ctxc::vulkan

#endif // CTXC_LIB_RUNTIME_GPU_VULKAN_VULKANDEVICE_H
