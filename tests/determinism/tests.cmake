# SPDX-License-Identifier: MIT
# The hashes of a game at every tick, against tests/golden/determinism.txt. scripts/golden.sh does the same for other
# compilers and machines, and for more ticks.
file(GLOB_RECURSE determinism_sources CONFIGURE_DEPENDS determinism/*.c)
nebula_program(determinism ${determinism_sources})
target_link_libraries(determinism PRIVATE m)
set(golden ${CMAKE_CURRENT_SOURCE_DIR}/golden/determinism.txt)

# As many as scripts/golden.sh compares for a configuration. The thread sanitizer makes a tick thirty times as long.
set(ticks 4000)
if(NEBULA_SANITIZE MATCHES "thread")
    set(ticks 300)
endif()

function(nebula_determinism_test name)
    add_test(NAME determinism.${name} COMMAND determinism --ticks ${ticks} --compare ${golden} ${ARGN})
    set_tests_properties(determinism.${name} PROPERTIES TIMEOUT ${NEBULA_TEST_TIMEOUT_S} LABELS program)
endfunction()

nebula_determinism_test(in_time --workers 0 --in-time)
foreach(workers 0 1 2 5)
    nebula_determinism_test(workers_${workers} --workers ${workers})
endforeach()
nebula_determinism_test(slow_frames --workers 2 --frame-rate 17)
nebula_determinism_test(irregular_frames --workers 2 --frame-rate 0)
if(NOT NEBULA_SANITIZE)
    add_test(NAME determinism.refuses
        COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/determinism/refuses.sh $<TARGET_FILE:determinism> ${golden})
    set_tests_properties(determinism.refuses PROPERTIES TIMEOUT ${NEBULA_TEST_TIMEOUT_S} LABELS program)
endif()
