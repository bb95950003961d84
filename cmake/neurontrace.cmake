# SPDX-License-Identifier: Apache-2.0
# One library, one test binary, one fuzzer and one benchmark a folder, with explicit dependencies.

# nt_library(NAME SRCS a.cc … DEPS target … [INTERFACE])
function(nt_library name)
  cmake_parse_arguments(ARG "INTERFACE" "" "SRCS;DEPS" ${ARGN})
  if(ARG_INTERFACE)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE nt_options ${ARG_DEPS})
  else()
    add_library(${name} STATIC ${ARG_SRCS})
    target_link_libraries(${name} PUBLIC nt_options ${ARG_DEPS})
  endif()
endfunction()

# nt_test(NAME SRCS a_test.cc … DEPS target …): a GoogleTest binary, one CTest entry, label "unit".
function(nt_test name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
  set_property(GLOBAL APPEND PROPERTY NEURONTRACE_UNIT_TEST_TARGETS ${name})
endfunction()

# nt_fuzzer(NAME SRCS x_fuzzer.cc DEPS target …): libFuzzer target in the fuzz preset, nothing elsewhere.
# The kept corpus is tests/fuzz_corpus/NAME/.
function(nt_fuzzer name)
  if(NOT NEURONTRACE_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_property(GLOBAL APPEND PROPERTY NEURONTRACE_FUZZER_TARGETS ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
endfunction()

# nt_benchmark(NAME SRCS x_bench.cc DEPS target …): Google Benchmark binary under bench/, never run by CTest.
function(nt_benchmark name)
  if(NEURONTRACE_FUZZERS OR NEURONTRACE_SANITIZE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  set_property(GLOBAL APPEND PROPERTY NEURONTRACE_BENCHMARK_TARGETS ${name})
endfunction()

# nt_program(NAME SRCS main.cc … DEPS target …): an installed program in bin/.
function(nt_program name)
  if(NEURONTRACE_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# nt_aggregate_targets(): call last. Targets for a whole kind, so that a sanitizer or fuzz build makes no more than it runs.
function(nt_aggregate_targets)
  get_property(unit_tests GLOBAL PROPERTY NEURONTRACE_UNIT_TEST_TARGETS)
  get_property(fuzzers GLOBAL PROPERTY NEURONTRACE_FUZZER_TARGETS)
  get_property(benchmarks GLOBAL PROPERTY NEURONTRACE_BENCHMARK_TARGETS)
  add_custom_target(unit_tests DEPENDS ${unit_tests})
  add_custom_target(all_fuzzers DEPENDS ${fuzzers})
  add_custom_target(all_benchmarks DEPENDS ${benchmarks})
endfunction()
