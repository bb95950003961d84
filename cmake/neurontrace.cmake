# SPDX-License-Identifier: Apache-2.0
# One library, one test binary, one fuzzer and one benchmark a folder, with explicit dependencies.

# What ccache needs to tell one precompiled header from another.
function(nt_precompiled_options name scope)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${name} ${scope} "SHELL:-Xclang -fno-pch-timestamp")
  else()
    target_compile_options(${name} ${scope} -fpch-preprocess)
  endif()
endfunction()

# Precompiled headers for what is heavy and included everywhere: GoogleTest by every unit test (2.5 s a file),
# gRPC, Protocol Buffers and our services by the folders that talk (6 s a file), the standard library, Abseil's Status and
# hash maps by all others (1.5 s a file).
# ccache needs CCACHE_SLOPPINESS=pch_defines,time_macros to cache what uses them (scripts/build sets it).
# Where what is cold has flags of its own (nt_optimize_cold), NAME_cold is made too.
function(nt_precompiled_headers name)
  cmake_parse_arguments(ARG "EXECUTABLE" "" "HEADERS;DEPS" ${ARGN})
  if(ARG_EXECUTABLE)  # an executable's code is position independent in another way (-fPIE), and so is its header
    nt_precompiled_header(${name} EXECUTABLE HEADERS ${ARG_HEADERS} DEPS ${ARG_DEPS})
    target_compile_options(${name} PRIVATE -O0)
    return()
  endif()
  nt_precompiled_header(${name} HEADERS ${ARG_HEADERS} DEPS ${ARG_DEPS})
  nt_count_edges(${name})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    nt_precompiled_header(${name}_cold HEADERS ${ARG_HEADERS} DEPS ${ARG_DEPS})
    nt_optimize_cold(${name}_cold)
  endif()
endfunction()

function(nt_precompiled_header name)
  cmake_parse_arguments(ARG "EXECUTABLE" "" "HEADERS;DEPS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/gen/${name}.cc)
  if(ARG_EXECUTABLE)
    file(GENERATE OUTPUT ${source} CONTENT "int main() {}\n")
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
  else()
    file(GENERATE OUTPUT ${source} CONTENT "// Compiled for its precompiled header.\n")
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  endif()
  target_link_libraries(${name} PRIVATE nt_options ${ARG_DEPS})
  nt_precompiled_options(${name} PUBLIC)
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# nt_reuse_precompiled(TARGET PCH_TARGET [COLD]): COLD for what nt_optimize_cold was called for.
function(nt_reuse_precompiled name precompiled)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "COLD" "" "")
  if(ARG_COLD AND TARGET ${precompiled}_cold)
    set(precompiled ${precompiled}_cold)
  endif()
  if(TARGET ${precompiled})
    nt_precompiled_options(${name} PRIVATE)
    target_precompile_headers(${name} REUSE_FROM ${precompiled})
  endif()
endfunction()

# Adds the counters that guide libFuzzer. The unoptimised build, for unit tests and replays of kept inputs, does not need them.
function(nt_count_edges name)
  if(NEURONTRACE_FUZZERS AND NOT NEURONTRACE_SANITIZE_OPTIMIZE STREQUAL "-O0")
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

function(nt_optimize_hot name)
  if(NEURONTRACE_SANITIZE AND NEURONTRACE_SANITIZE_OPTIMIZE STREQUAL "-O0")
    target_compile_options(${name} PRIVATE -O1)
  endif()
endfunction()

# A quarter of the time that -O2 takes.
function(nt_optimize_cold name)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE -O1)
  endif()
endfunction()

# nt_library(NAME [HOT | COLD] SRCS a.cc … DEPS target … [INTERFACE] [GRPC] [APART])
# HOT: its tests work through so much that sanitizers' builds compile it with -O1; not together with GRPC.
# COLD: it handles commands, requests and settings, and no events: release builds compile it with -O1.
# GRPC: most of its files include gRPC, so compile them on top of the precompiled gRPC headers.
# APART: without precompiled headers, because it is compiled with other flags or does not link fmt.
function(nt_library name)
  cmake_parse_arguments(ARG "INTERFACE;GRPC;HOT;COLD;APART" "" "SRCS;DEPS" ${ARGN})
  if(ARG_INTERFACE)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE nt_options ${ARG_DEPS})
  else()
    add_library(${name} STATIC ${ARG_SRCS})
    target_link_libraries(${name} PUBLIC nt_options ${ARG_DEPS})
    nt_count_edges(${name})
  endif()
  if(ARG_HOT)
    nt_optimize_hot(${name})
  endif()
  if(ARG_COLD)
    nt_optimize_cold(${name})
  endif()
  if(ARG_INTERFACE OR ARG_APART OR (ARG_HOT AND NEURONTRACE_SANITIZE))  # what is hot has other flags
    return()
  endif()
  set(precompiled nt_precompiled_std)
  if(ARG_GRPC)
    set(precompiled nt_precompiled_grpc)
  endif()
  set(cold)
  if(ARG_COLD)
    set(cold COLD)
  endif()
  nt_reuse_precompiled(${name} ${precompiled} ${cold})
endfunction()

# ctest takes two tests of one name, in two folders, and gives the first one's labels to both.
function(nt_test_name name)
  get_property(names GLOBAL PROPERTY NEURONTRACE_TEST_NAMES)
  if(name IN_LIST names)
    message(FATAL_ERROR "There are two tests named ${name}: rename one of them")
  endif()
  set_property(GLOBAL APPEND PROPERTY NEURONTRACE_TEST_NAMES ${name})
endfunction()

# nt_test(NAME [HOT] [LONG] [THREADS] [RELEASE] SRCS a_test.cc … DEPS target …): a GoogleTest binary, one CTest entry, label
# "unit", built by the target unit_tests. It is not optimised unless it is HOT, which does hard work itself.
# LONG: under sanitizers it takes half a minute or more, and begins early.
# THREADS: it starts threads. ThreadSanitizer's build has no other tests.
# RELEASE: continuous integration runs it in the release build too (step unit_release): it needs a library that has no build
# with sanitizers, or draws more cases there.
function(nt_test name)
  cmake_parse_arguments(ARG "HOT;LONG;THREADS;RELEASE" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  if(ARG_HOT)
    nt_optimize_hot(${name})
  else()
    target_compile_options(${name} PRIVATE -O0)
    nt_reuse_precompiled(${name} nt_precompiled_test)
  endif()
  if(NEURONTRACE_SANITIZE MATCHES "thread")
    if(NOT ARG_THREADS)
      return()
    endif()
    target_link_libraries(${name} PRIVATE nt_visible_hand_over)
  endif()
  nt_test_name(${name})
  add_test(NAME ${name} COMMAND ${name})
  set(timeout 300)
  if(NEURONTRACE_SANITIZE)  # several times slower, on a machine that may do other things
    set(timeout 900)
  endif()
  set(labels unit)
  if(ARG_RELEASE)
    list(APPEND labels unit_release)
    set_property(GLOBAL APPEND PROPERTY NEURONTRACE_RELEASE_TEST_TARGETS ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout})
  if(ARG_HOT OR ARG_LONG)  # the long ones first, so that none of them runs alone at the end
    set_tests_properties(${name} PROPERTIES COST 50)
  endif()
  set_property(GLOBAL APPEND PROPERTY NEURONTRACE_UNIT_TEST_TARGETS ${name})
endfunction()

# nt_fuzzer(NAME DEPS target …): libFuzzer target made of NAME.cc (NAME may begin with a folder) in the preset asan-ubsan,
# nothing elsewhere.
# Its kept inputs are tests/fuzz_corpus/NAME.tar.zst: scripts/fuzz_corpus.
function(nt_fuzzer name)
  if(NOT NEURONTRACE_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  set(source ${name}.cc)
  get_filename_component(name ${name} NAME)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_property(GLOBAL APPEND PROPERTY NEURONTRACE_FUZZER_TARGETS ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
endfunction()

# nt_benchmark(NAME [OWN_MAIN] SRCS x_bench.cc DEPS target …): a program under bench/, built by the target all_benchmarks
# and never run by CTest. It uses Google Benchmark unless it has a main function of its own.
function(nt_benchmark name)
  if(NEURONTRACE_FUZZERS OR NEURONTRACE_SANITIZE)
    return()
  endif()
  cmake_parse_arguments(ARG "OWN_MAIN" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  if(NOT ARG_OWN_MAIN)
    target_link_libraries(${name} PRIVATE benchmark::benchmark_main)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  set_property(GLOBAL APPEND PROPERTY NEURONTRACE_BENCHMARK_TARGETS ${name})
endfunction()

# nt_program(NAME [GRPC] SRCS main.cc … DEPS target …): an installed program in bin/. GRPC as for nt_library.
function(nt_program name)
  if(NEURONTRACE_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "GRPC" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  if(ARG_GRPC)
    target_compile_options(${name} PRIVATE -fPIC)  # instead of -fPIE: as the precompiled headers are
    nt_reuse_precompiled(${name} nt_precompiled_grpc)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# nt_aggregate_targets(): call last. Targets for a whole kind, so that a sanitizer or fuzz build makes no more than it runs.
function(nt_aggregate_targets)
  get_property(release_tests GLOBAL PROPERTY NEURONTRACE_RELEASE_TEST_TARGETS)
  add_custom_target(release_tests DEPENDS ${release_tests})
  get_property(unit_tests GLOBAL PROPERTY NEURONTRACE_UNIT_TEST_TARGETS)
  get_property(fuzzers GLOBAL PROPERTY NEURONTRACE_FUZZER_TARGETS)
  get_property(benchmarks GLOBAL PROPERTY NEURONTRACE_BENCHMARK_TARGETS)
  add_custom_target(unit_tests DEPENDS ${unit_tests})
  add_custom_target(all_fuzzers DEPENDS ${fuzzers})
  add_custom_target(all_benchmarks DEPENDS ${benchmarks})
endfunction()
