#include "lib/Runtime/GPU/Vulkan/VulkanDevice.h"

using namespace ctxc;
using namespace ctxc::vulkan;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

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
