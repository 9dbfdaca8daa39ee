// A GPU, or Mesa's lavapipe on the processor, through Vulkan. Buffers are memory that both sides
// see, and stay mapped; a sequence is a command buffer with a barrier after each launch.
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/Devices.h"
#include "lib/Runtime/GPU/Vulkan/VulkanApi.h"
#include "llvm/ADT/StringMap.h"
#include <cstring>
#include <dlfcn.h>

using namespace ctxc;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

Error failed(StringRef what, VkResult result) {
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
  static Expected<std::unique_ptr<Device>> open(int64_t lanes);
  ~VulkanDevice() override;

  std::string name() const override { return properties.deviceName; }
  std::string target() const override { return "vulkan:" + std::to_string(lanes); }
  size_t memory() const override {
    return memories.memoryHeaps[memories.memoryTypes[memoryType].heapIndex].size;
  }
  size_t largestBuffer() const override { return properties.limits.maxStorageBufferRange; }
  Error load(StringRef code) override;
  Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) override;
  Error upload(Buffer &to, size_t offset, ArrayRef<char> from) override {
    memcpy(static_cast<VulkanBuffer &>(to).mapped + offset, from.data(), from.size());
    return Error::success();
  }
  Error download(llvm::MutableArrayRef<char> to, const Buffer &from, size_t offset) override {
    memcpy(to.data(), static_cast<const VulkanBuffer &>(from).mapped + offset, to.size());
    return Error::success();
  }
  Expected<std::unique_ptr<Sequence>> record(ArrayRef<Launch> launches) override;
  Expected<double> run(Sequence &sequence) override;

private:
  Error choose(int64_t lanes);
  Error open();
  std::string refusal(VkPhysicalDevice candidate, int64_t lanes);
  Expected<Pipeline *> pipelineOf(const Launch &launch);
  Error write(VulkanSequence &sequence, ArrayRef<Launch> launches);
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

} // namespace

Expected<std::unique_ptr<Device>> ctxc::openVulkanDevice(StringRef rest) {
  int64_t lanes = 0; // any
  if (!rest.empty() && rest.getAsInteger(10, lanes))
    return makeError("vulkan: found '" + rest + "', expected the lanes of a subgroup");
  return VulkanDevice::open(lanes);
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

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

VulkanDevice::~VulkanDevice() {
  if (device) {
    vk.DeviceWaitIdle(device);
    for (Code &code : codes) {
      for (auto &entry : code.pipelines) {
        vk.DestroyPipeline(device, entry.second.pipeline, nullptr);
        vk.DestroyPipelineLayout(device, entry.second.layout, nullptr);
        vk.DestroyDescriptorSetLayout(device, entry.second.set, nullptr);
      }
      vk.DestroyShaderModule(device, code.module, nullptr);
    }
    vk.DestroyQueryPool(device, times, nullptr);
    vk.DestroyCommandPool(device, commands, nullptr);
    vk.DestroyDevice(device, nullptr);
  }
  if (vk.DestroyInstance)
    vk.DestroyInstance(instance, nullptr);
}

//===----------------------------------------------------------------------===//
// Memory and code
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<Device::Buffer>> VulkanDevice::allocate(size_t bytes) {
  // Elements of 16 bits are read in whole words.
  size_t size = (std::max<size_t>(bytes, 1) + 15) / 16 * 16;
  std::string what = "vulkan: " + std::to_string(size) + " bytes on " + name();
  if (size > properties.limits.maxStorageBufferRange)
    return makeError(what + ": a buffer is of at most " +
                     std::to_string(properties.limits.maxStorageBufferRange));
  auto made = std::make_unique<VulkanBuffer>();
  made->vk = &vk;
  made->device = device;
  made->bytes = bytes;
  auto info = ofType<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  if (VkResult result = vk.CreateBuffer(device, &info, nullptr, &made->buffer))
    return failed(what, result);
  VkMemoryRequirements needs;
  vk.GetBufferMemoryRequirements(device, made->buffer, &needs);
  auto allocation = ofType<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = memoryType;
  if (VkResult result = vk.AllocateMemory(device, &allocation, nullptr, &made->memory))
    return failed(what + ", which has " + std::to_string(memory()), result);
  if (VkResult result = vk.BindBufferMemory(device, made->buffer, made->memory, 0))
    return failed(what, result);
  void *mapped = nullptr;
  if (VkResult result = vk.MapMemory(device, made->memory, 0, VK_WHOLE_SIZE, 0, &mapped))
    return failed(what, result);
  made->mapped = static_cast<char *>(mapped);
  memset(mapped, 0, size);
  return made;
}

Error VulkanDevice::load(StringRef binary) {
  std::vector<uint32_t> words(binary.size() / 4);
  memcpy(words.data(), binary.data(), words.size() * 4);
  auto info = ofType<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  info.codeSize = words.size() * 4;
  info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  if (VkResult result = vk.CreateShaderModule(device, &info, nullptr, &module))
    return failed("loading the kernels", result);
  codes.push_back({module, {}});
  return Error::success();
}

Expected<Pipeline *> VulkanDevice::pipelineOf(const Launch &launch) {
  if (launch.code >= codes.size())
    return makeError("vulkan: kernel '" + launch.function + "' is of code that was not loaded");
  Code &code = codes[launch.code];
  auto [entry, isNew] = code.pipelines.try_emplace(launch.function);
  Pipeline &made = entry->second;
  if (!isNew)
    return &made;
  std::vector<VkDescriptorSetLayoutBinding> bindings(launch.buffers.size());
  for (size_t i = 0; i < bindings.size(); ++i)
    bindings[i] = {uint32_t(i), VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                   nullptr};
  auto set =
      ofType<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  set.bindingCount = bindings.size();
  set.pBindings = bindings.data();
  std::string what = "kernel '" + launch.function + "'";
  if (bindings.size() > properties.limits.maxPerStageDescriptorStorageBuffers)
    return makeError("vulkan: " + what + " has " + std::to_string(bindings.size()) +
                     " buffers; the device has room for " +
                     std::to_string(properties.limits.maxPerStageDescriptorStorageBuffers));
  if (VkResult result = vk.CreateDescriptorSetLayout(device, &set, nullptr, &made.set))
    return failed(what, result);
  auto layout = ofType<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &made.set;
  if (VkResult result = vk.CreatePipelineLayout(device, &layout, nullptr, &made.layout))
    return failed(what, result);
  auto info = ofType<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = code.module;
  info.stage.pName = launch.function.c_str();
  info.layout = made.layout;
  if (VkResult result =
          vk.CreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &made.pipeline))
    return failed(what, result);
  return &made;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

VkDescriptorSet VulkanDevice::bindingsOf(VulkanSequence &sequence, const Pipeline &pipeline,
                                         const Launch &launch) {
  auto info = ofType<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  info.descriptorPool = sequence.sets;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &pipeline.set;
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (vk.AllocateDescriptorSets(device, &info, &set))
    return VK_NULL_HANDLE;
  std::vector<VkDescriptorBufferInfo> buffers(launch.buffers.size());
  std::vector<VkWriteDescriptorSet> writes(launch.buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    buffers[i] = {static_cast<VulkanBuffer *>(launch.buffers[i])->buffer, 0, VK_WHOLE_SIZE};
    writes[i] = ofType<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
  }
  vk.UpdateDescriptorSets(device, writes.size(), writes.data(), 0, nullptr);
  return set;
}

Error VulkanDevice::write(VulkanSequence &sequence, ArrayRef<Launch> launches) {
  auto begin = ofType<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  vk.BeginCommandBuffer(sequence.buffer, &begin);
  vk.CmdResetQueryPool(sequence.buffer, times, 0, 2);
  vk.CmdWriteTimestamp(sequence.buffer, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, times, 0);
  VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                             VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                 VK_ACCESS_HOST_READ_BIT};
  for (const Launch &launch : launches) {
    auto pipeline = pipelineOf(launch);
    if (!pipeline)
      return pipeline.takeError();
    VkDescriptorSet set = bindingsOf(sequence, **pipeline, launch);
    if (!set)
      return makeError("vulkan: there is no room for the buffers of kernel '" + launch.function +
                       "'");
    constexpr auto compute = VK_PIPELINE_BIND_POINT_COMPUTE;
    vk.CmdBindPipeline(sequence.buffer, compute, (*pipeline)->pipeline);
    vk.CmdBindDescriptorSets(sequence.buffer, compute, (*pipeline)->layout, 0, 1, &set, 0, nullptr);
    vk.CmdDispatch(sequence.buffer, launch.blocks, 1, 1);
    vk.CmdPipelineBarrier(sequence.buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                          VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                          &barrier, 0, nullptr, 0, nullptr);
    sequence.functions.push_back(launch.function);
  }
  vk.CmdWriteTimestamp(sequence.buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times, 1);
  if (VkResult result = vk.EndCommandBuffer(sequence.buffer))
    return failed("recording " + std::to_string(launches.size()) + " launches", result);
  return Error::success();
}

Expected<std::unique_ptr<Device::Sequence>> VulkanDevice::record(ArrayRef<Launch> launches) {
  auto sequence = std::make_unique<VulkanSequence>();
  sequence->vk = &vk;
  sequence->device = device;
  sequence->commands = commands;
  uint32_t buffers = 1;
  for (const Launch &launch : launches)
    buffers += launch.buffers.size();
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, buffers};
  auto pool = ofType<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  pool.maxSets = launches.size() + 1;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  if (VkResult result = vk.CreateDescriptorPool(device, &pool, nullptr, &sequence->sets))
    return failed("making room for descriptors", result);
  auto info = ofType<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = commands;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  if (VkResult result = vk.AllocateCommandBuffers(device, &info, &sequence->buffer))
    return failed("making a command buffer", result);
  if (Error error = write(*sequence, launches))
    return std::move(error);
  return sequence;
}

Expected<double> VulkanDevice::run(Sequence &sequence) {
  auto &recorded = static_cast<VulkanSequence &>(sequence);
  if (recorded.functions.empty())
    return 0;
  auto submit = ofType<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &recorded.buffer;
  VkResult result = vk.QueueSubmit(queue, 1, &submit, VK_NULL_HANDLE);
  if (!result)
    result = vk.QueueWaitIdle(queue);
  if (result)
    return failed("running kernels '" + recorded.functions.front() + "' to '" +
                      recorded.functions.back() + "'",
                  result);
  uint64_t ticks[2] = {0, 0};
  vk.GetQueryPoolResults(device, times, 0, 2, sizeof ticks, ticks, sizeof(uint64_t),
                         VK_QUERY_RESULT_64_BIT);
  return double(ticks[1] - ticks[0]) * properties.limits.timestampPeriod * 1e-9;
}
