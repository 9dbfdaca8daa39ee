// Chooses and opens a Vulkan device that can run the kernels.
#include "lib/Runtime/GPU/Devices.h"
#include "lib/Runtime/GPU/Vulkan/VulkanDevice.h"
#include <dlfcn.h>

using namespace ctxc;
using namespace ctxc::vulkan;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Expected<std::unique_ptr<Device>> ctxc::openVulkanDevice(StringRef rest, int) {
  int64_t lanes = 0; // any
  if (!rest.empty() && rest.getAsInteger(10, lanes))
    return makeError("vulkan: found '" + rest + "', expected the lanes of a subgroup");
  return VulkanDevice::open(lanes);
}

Expected<std::unique_ptr<Device>> VulkanDevice::open(int64_t lanes) {
  auto library = openDriver("libvulkan.so.1", "vulkan: there is no loader of drivers");
  if (!library)
    return library.takeError();
  auto made = std::make_unique<VulkanDevice>();
  VulkanApi &vk = made->vk;
  vk.GetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(*library, "vkGetInstanceProcAddr"));
  if (vk.GetInstanceProcAddr)
    vk.CreateInstance =
        reinterpret_cast<PFN_vkCreateInstance>(vk.GetInstanceProcAddr(nullptr, "vkCreateInstance"));
  if (!vk.CreateInstance)
    return makeError("vulkan: libvulkan.so.1 is no loader of drivers");
  auto application = ofType<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.apiVersion = VK_API_VERSION_1_1;
  auto info = ofType<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  if (VkResult result = vk.CreateInstance(&info, nullptr, &made->instance))
    return failed("making an instance", result);
  if (!vk.lookUp(made->instance))
    return makeError("vulkan: the driver lacks a function of Vulkan 1.1");
  if (Error error = made->choose(lanes))
    return std::move(error);
  if (Error error = made->open())
    return std::move(error);
  return made;
}

/// What a device lacks; empty where it can be used.
std::string VulkanDevice::refusal(VkPhysicalDevice candidate, int64_t lanes) {
  auto subgroups = ofType<VkPhysicalDeviceSubgroupProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  VkPhysicalDeviceProperties2 all = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroups, {}};
  vk.GetPhysicalDeviceProperties2(candidate, &all);
  VkPhysicalDeviceFeatures features;
  vk.GetPhysicalDeviceFeatures(candidate, &features);
  if (!features.shaderInt64 || !features.shaderFloat64)
    return "has no 64-bit numbers in shaders";
  if (!(subgroups.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) ||
      !(subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
    return "has no shuffles in subgroups";
  if (lanes && lanes != subgroups.subgroupSize)
    return "has subgroups of " + std::to_string(subgroups.subgroupSize) + " lanes";
  if (all.properties.limits.maxComputeWorkGroupInvocations < 512)
    return "has blocks of fewer than 512 threads";
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(candidate, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(candidate, &count, families.data());
  auto found = llvm::find_if(families, [](const VkQueueFamilyProperties &f) {
    return (f.queueFlags & VK_QUEUE_COMPUTE_BIT) && f.timestampValidBits;
  });
  if (found == families.end())
    return "has no queue of compute work with time stamps";
  vk.GetPhysicalDeviceMemoryProperties(candidate, &memories);
  constexpr VkMemoryPropertyFlags shared =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  bool has = false;
  for (VkMemoryPropertyFlags wanted : {shared | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, shared})
    for (uint32_t i = 0; i < memories.memoryTypeCount && !has; ++i)
      if ((memories.memoryTypes[i].propertyFlags & wanted) == wanted) {
        memoryType = i;
        has = true;
      }
  if (!has)
    return "has no memory that both sides see";
  physical = candidate;
  properties = all.properties;
  family = found - families.begin();
  this->lanes = subgroups.subgroupSize;
  return "";
}

Error VulkanDevice::choose(int64_t lanes) {
  uint32_t count = 0;
  vk.EnumeratePhysicalDevices(instance, &count, nullptr);
  std::vector<VkPhysicalDevice> candidates(count);
  vk.EnumeratePhysicalDevices(instance, &count, candidates.data());
  std::string reasons;
  for (VkPhysicalDevice candidate : candidates) {
    std::string reason = refusal(candidate, lanes);
    if (reason.empty())
      return Error::success();
    VkPhysicalDeviceProperties2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, nullptr, {}};
    vk.GetPhysicalDeviceProperties2(candidate, &all);
    reasons += "; " + std::string(all.properties.deviceName) + " " + reason;
  }
  return makeError("vulkan: no device can run kernels" +
                   (reasons.empty() ? std::string(": the drivers show none") : reasons));
}

Error VulkanDevice::open() {
  float priority = 1;
  auto queues = ofType<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queues.queueFamilyIndex = family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  VkPhysicalDeviceFeatures features = {};
  features.shaderInt64 = features.shaderFloat64 = VK_TRUE;
  auto info = ofType<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queues;
  info.pEnabledFeatures = &features;
  if (VkResult result = vk.CreateDevice(physical, &info, nullptr, &device))
    return failed("opening " + name(), result);
  vk.GetDeviceQueue(device, family, 0, &queue);
  auto pool = ofType<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = family;
  if (VkResult result = vk.CreateCommandPool(device, &pool, nullptr, &commands))
    return failed("making a command pool", result);
  auto queries = ofType<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
  queries.queryCount = 2;
  if (VkResult result = vk.CreateQueryPool(device, &queries, nullptr, &times))
    return failed("making time stamps", result);
  return Error::success();
}
