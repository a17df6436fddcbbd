// SPDX-License-Identifier: MIT
// Shared libraries where they are opened with dlopen.

#include "vulkan_load.h"

#include <dlfcn.h>
#include <string.h>

void *nbi_vulkan_library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

void (*nbi_vulkan_library_symbol(void *library, const char *name))(void) {
    void *symbol = dlsym(library, name);
    void (*function)(void) = NULL;
    // ISO C has no cast from an object's pointer to a function's; POSIX says that they are alike.
    NB_STATIC_ASSERT(sizeof symbol == sizeof function, "POSIX");
    memcpy(&function, &symbol, sizeof function);
    return function;
}

void nbi_vulkan_library_close(void *library) {
    if (library != NULL) dlclose(library);
}
