# SPDX-License-Identifier: MIT
# The module net: nebula_net, also known as nebula::net, with nothing but libc.
option(NEBULA_BUILD_NET "Build the module net" ON)
if(NEBULA_BUILD_NET)
    nebula_module(net)
endif()
