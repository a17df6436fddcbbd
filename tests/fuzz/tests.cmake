# SPDX-License-Identifier: MIT
# Readers of foreign bytes, each with a corpus in tests/fuzz/corpus/<name>. With clang libFuzzer drives them, with other
# compilers fuzz_main.c, which knows no coverage. A longer run by hand, which adds to the corpus:
#     build/debug-clang/tests/fuzz_recording -max_total_time=600 tests/fuzz/corpus/recording
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

set(NEBULA_FUZZ_RUNS 20000 CACHE STRING "Inputs of each fuzz target in a test")

# nebula_fuzz(NAME PART READER...): the readers are compiled again, to be seen by the fuzzer. Targets that make a world or
# an engine for each input get a part of the runs.
function(nebula_fuzz name part)
    math(EXPR runs "${NEBULA_FUZZ_RUNS} / ${part}")
    set(sources fuzz/fuzz_${name}.c ${ARGN})
    if(NOT NEBULA_HAS_LIBFUZZER)
        list(APPEND sources fuzz/fuzz_main.c)
    endif()
    add_executable(fuzz_${name} ${sources})
    nebula_private_flags(fuzz_${name})
    target_include_directories(fuzz_${name} PRIVATE
        ${PROJECT_SOURCE_DIR}/modules ${PROJECT_SOURCE_DIR}/modules/record/include ${PROJECT_SOURCE_DIR}/modules/net/include)
    target_link_libraries(fuzz_${name} PRIVATE nebula Threads::Threads)
    if(NEBULA_HAS_LIBFUZZER)
        target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    endif()
    # The first folder is where libFuzzer puts what it finds: not the sources'.
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fuzz/${name})
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} -runs=${runs} -seed=1 -max_len=4096
        fuzz/${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT ${NEBULA_TEST_TIMEOUT_S} LABELS unit)
endfunction()

set(state_readers ${PROJECT_SOURCE_DIR}/src/frame/state/state.c ${PROJECT_SOURCE_DIR}/src/frame/world/world_save.c
    ${PROJECT_SOURCE_DIR}/src/base/handle.c)
nebula_fuzz(world 10 ${state_readers})
nebula_fuzz(states 5 ${state_readers})
nebula_fuzz(correction 20 ${state_readers})

if(TARGET nebula_record)
    file(GLOB record_readers ${PROJECT_SOURCE_DIR}/modules/record/*.c)
    foreach(name recording save)
        nebula_fuzz(${name} 1 ${record_readers})
        target_link_libraries(fuzz_${name} PRIVATE nebula::zstd)
    endforeach()
endif()
if(TARGET nebula_net)
    file(GLOB net_readers ${PROJECT_SOURCE_DIR}/modules/net/*.c)
    nebula_fuzz(netplay 4 ${net_readers})
endif()
