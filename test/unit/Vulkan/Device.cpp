// The device of this program's tests: test/unit/GPU/Device.h.
namespace ctxc::test {

extern const char *const testDevice;
const char *const testDevice = "vulkan";

} // namespace ctxc::test
