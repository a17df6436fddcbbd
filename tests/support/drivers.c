// SPDX-License-Identifier: MIT
// What the sanitizers leave out in programs that load drivers, layers and a window system: none of these is built for
// sanitizers, so what is seen of their threads and memory is only a part. Our own memory is counted by the tests,
// Vulkan's objects by the validation layer. The layer has a thread of its own for each queue, which may still hold the
// lock of a swapchain's state while another thread frees that state.
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race:libvulkan_lvp.so\nrace:libVkLayer_khronos_validation.so\ndeadlock:libVkLayer_khronos_validation.so\n"
           "race:libSDL2\nrace:libX11\n";
}

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libVkLayer_khronos_validation.so\nleak:libvulkan_lvp.so\n";
}
