# SPDX-License-Identifier: MIT
# Readers of foreign bytes, each with a corpus: named inputs in tests/fuzz/corpus/<name>, the others in <name>.tar.gz beside it.
# With clang libFuzzer drives them, with other compilers fuzz_main.c, which knows no coverage. A longer run by hand, and what
# it found added to the corpus:
#     scripts/corpus.sh --unpack recording build/found
#     build/debug-clang/tests/fuzz_recording -max_total_time=600 build/found
#     scripts/corpus.sh recording build/found
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
check_c_source_compiles("int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size);
    int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return data && size > 99999; }"
    NEBULA_HAS_LIBFUZZER)
unset(CMAKE_REQUIRED_FLAGS)
# Readers have one thread: where threads are watched there is nothing to see, and it takes minutes.
if(NEBULA_SANITIZE MATCHES "thread")
    return()
endif()

# Inputs are the same in each preset. The slowest two take a part of them, asan-ubsan and the plain builds take all.
set(fuzz_runs 20000)
if(NEBULA_SANITIZE MATCHES "^(undefined|memory)$")
    set(fuzz_runs 5000)
endif()
set(NEBULA_FUZZ_RUNS ${fuzz_runs} CACHE STRING "Inputs of each fuzz target in a test")

# nebula_fuzz_readers(NAME SOURCE...): what targets read with, compiled once more with libFuzzer's counters. Other compilers
# have none, so there the targets use the library.
function(nebula_fuzz_readers name)
    add_library(fuzz_readers_${name} OBJECT EXCLUDE_FROM_ALL ${ARGN})
    nebula_private_flags(fuzz_readers_${name})
    target_include_directories(fuzz_readers_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include
        ${PROJECT_SOURCE_DIR}/modules ${PROJECT_SOURCE_DIR}/modules/record/include ${PROJECT_SOURCE_DIR}/modules/net/include)
    target_compile_options(fuzz_readers_${name} PRIVATE -fsanitize=fuzzer)
endfunction()

# nebula_fuzz(NAME PART READERS LIBRARY...): targets that make a world or an engine for each input get a part of the runs.
function(nebula_fuzz name part readers)
    math(EXPR runs "${NEBULA_FUZZ_RUNS} / ${part}")
    add_executable(fuzz_${name} fuzz/fuzz_${name}.c)
    nebula_private_flags(fuzz_${name})
    target_include_directories(fuzz_${name} PRIVATE
        ${PROJECT_SOURCE_DIR}/modules ${PROJECT_SOURCE_DIR}/modules/record/include ${PROJECT_SOURCE_DIR}/modules/net/include)
    if(NEBULA_HAS_LIBFUZZER)
        target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        target_sources(fuzz_${name} PRIVATE $<TARGET_OBJECTS:fuzz_readers_${readers}>)
        target_link_libraries(fuzz_${name} PRIVATE m) # libFuzzer's own
    else()
        target_sources(fuzz_${name} PRIVATE fuzz/fuzz_main.c)
    endif()
    target_link_libraries(fuzz_${name} PRIVATE ${ARGN} nebula Threads::Threads)
    # The first folder is where libFuzzer puts what it finds: not the sources'.
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fuzz/${name})
    set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
    set(inputs)
    if(IS_DIRECTORY ${corpus})
        list(APPEND inputs ${corpus})
    endif()
    if(EXISTS ${corpus}.tar.gz)
        set(unpacked ${CMAKE_CURRENT_BINARY_DIR}/fuzz/corpus/${name})
        file(REMOVE_RECURSE ${unpacked})
        file(ARCHIVE_EXTRACT INPUT ${corpus}.tar.gz DESTINATION ${unpacked})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${corpus}.tar.gz)
        list(APPEND inputs ${unpacked})
    endif()
    if(NOT inputs)
        message(FATAL_ERROR "nebula: no corpus of fuzz_${name} in ${corpus} or ${corpus}.tar.gz")
    endif()
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} -runs=${runs} -seed=1 -max_len=4096 fuzz/${name} ${inputs})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT ${NEBULA_TEST_TIMEOUT_S} LABELS unit)
endfunction()

nebula_fuzz_readers(state ${PROJECT_SOURCE_DIR}/src/frame/state/state.c ${PROJECT_SOURCE_DIR}/src/frame/store/store_save.c
    ${PROJECT_SOURCE_DIR}/src/base/handle.c)
nebula_fuzz(store 10 state)
nebula_fuzz(states 5 state)
nebula_fuzz(correction 20 state)

if(TARGET nebula_record)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/modules/record/*.c)
    nebula_fuzz_readers(record ${sources})
    foreach(name recording save)
        nebula_fuzz(${name} 1 record nebula_record nebula::zstd)
    endforeach()
endif()
if(TARGET nebula_net)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/modules/net/*.c)
    nebula_fuzz_readers(net ${sources})
    nebula_fuzz(netplay 4 net nebula_net)
endif()
