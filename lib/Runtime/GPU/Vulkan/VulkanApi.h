// Vulkan's functions, looked up in the loader's library.
#ifndef CTXC_LIB_RUNTIME_GPU_VULKAN_VULKANAPI_H
#define CTXC_LIB_RUNTIME_GPU_VULKAN_VULKANAPI_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#define CTXC_VULKAN_FUNCTIONS(F)                                                                   \
  F(DestroyInstance)                                                                               \
  F(EnumeratePhysicalDevices)                                                                      \
  F(GetPhysicalDeviceProperties2)                                                                  \
  F(GetPhysicalDeviceFeatures)                                                                     \
  F(GetPhysicalDeviceMemoryProperties)                                                             \
  F(GetPhysicalDeviceQueueFamilyProperties)                                                        \
  F(CreateDevice)                                                                                  \
  F(DestroyDevice)                                                                                 \
  F(GetDeviceQueue)                                                                                \
  F(DeviceWaitIdle)                                                                                \
  F(CreateBuffer)                                                                                  \
  F(DestroyBuffer)                                                                                 \
  F(GetBufferMemoryRequirements)                                                                   \
  F(AllocateMemory)                                                                                \
  F(FreeMemory)                                                                                    \
  F(BindBufferMemory)                                                                              \
  F(MapMemory)                                                                                     \
  F(CreateShaderModule)                                                                            \
  F(DestroyShaderModule)                                                                           \
  F(CreateDescriptorSetLayout)                                                                     \
  F(DestroyDescriptorSetLayout)                                                                    \
  F(CreatePipelineLayout)                                                                          \
  F(DestroyPipelineLayout)                                                                         \
  F(CreateComputePipelines)                                                                        \
  F(DestroyPipeline)                                                                               \
  F(CreateDescriptorPool)                                                                          \
  F(DestroyDescriptorPool)                                                                         \
  F(AllocateDescriptorSets)                                                                        \
  F(UpdateDescriptorSets)                                                                          \
  F(CreateCommandPool)                                                                             \
  F(DestroyCommandPool)                                                                            \
  F(AllocateCommandBuffers)                                                                        \
  F(FreeCommandBuffers)                                                                            \
  F(BeginCommandBuffer)                                                                            \
  F(EndCommandBuffer)                                                                              \
  F(CmdBindPipeline)                                                                               \
  F(CmdBindDescriptorSets)                                                                         \
  F(CmdDispatch)                                                                                   \
  F(CmdPipelineBarrier)                                                                            \
  F(CreateQueryPool)                                                                               \
  F(DestroyQueryPool)                                                                              \
  F(CmdResetQueryPool)                                                                             \
  F(CmdWriteTimestamp)                                                                             \
  F(GetQueryPoolResults)                                                                           \
  F(QueueSubmit)                                                                                   \
  F(QueueWaitIdle)

namespace ctxc {

struct VulkanApi {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  PFN_vkCreateInstance CreateInstance = nullptr;
#define CTXC_FIELD(NAME) PFN_vk##NAME NAME = nullptr;
  CTXC_VULKAN_FUNCTIONS(CTXC_FIELD)
#undef CTXC_FIELD

  /// Looks up the functions that need an instance; false where one is missing.
  bool lookUp(VkInstance instance) {
#define CTXC_LOOK_UP(NAME)                                                                         \
  NAME = reinterpret_cast<PFN_vk##NAME>(GetInstanceProcAddr(instance, "vk" #NAME));                \
  if (!NAME)                                                                                       \
    return false;
    CTXC_VULKAN_FUNCTIONS(CTXC_LOOK_UP)
#undef CTXC_LOOK_UP
    return true;
  }
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_VULKAN_VULKANAPI_H
