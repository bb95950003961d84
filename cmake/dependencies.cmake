# SPDX-License-Identifier: Apache-2.0
# Debian 12's packages; see docs/developer/dependencies.md for why each is here.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_package(Protobuf REQUIRED)
endif()
find_package(gRPC CONFIG REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(RocksDB REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(simdjson REQUIRED)
# What the header has for some x86 processors only, and would be compiled in vain: code for any x86-64 does not call it.
# The library itself picks what fits the processor.
target_compile_definitions(simdjson::simdjson INTERFACE
  SIMDJSON_IMPLEMENTATION_ICELAKE=0 SIMDJSON_IMPLEMENTATION_HASWELL=0 SIMDJSON_IMPLEMENTATION_WESTMERE=0)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

# Parquet exports. Arrow is not instrumented, so that sanitizers would see half of what happens; programs without it are
# complete but for that format.
set(NEURONTRACE_PARQUET AUTO CACHE STRING "Parquet exports: AUTO (where Apache Arrow C++ is found), ON or OFF")
set(NEURONTRACE_HAS_PARQUET OFF)
if(NEURONTRACE_PARQUET STREQUAL "ON" OR
   (NEURONTRACE_PARQUET STREQUAL "AUTO" AND NOT NEURONTRACE_FUZZERS AND NOT NEURONTRACE_SANITIZE))
  list(APPEND CMAKE_MODULE_PATH ${CMAKE_SOURCE_DIR}/cmake)
  if(NEURONTRACE_PARQUET STREQUAL "ON")
    find_package(ArrowParquet 20.0 REQUIRED)
  else()
    find_package(ArrowParquet 20.0)
  endif()
  if(ArrowParquet_FOUND)
    set(NEURONTRACE_HAS_PARQUET ON)
  else()
    message(STATUS "no Apache Arrow C++: built without Parquet exports; scripts/setup package provides it")
  endif()
endif()

# Debian's own Python: it is the one that python3-yaml is installed for.
set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Python with PyYAML, for tools and tests")

nt_precompiled_headers(nt_precompiled_test EXECUTABLE
  HEADERS <gmock/gmock.h> <gtest/gtest.h> <functional> <map> <memory> <string> <utility> <vector>
  DEPS GTest::gmock Threads::Threads)
if(NEURONTRACE_UNITY)  # elsewhere each file has to include what it uses
  set(std_headers
    <algorithm> <array> <chrono> <condition_variable> <cstdint> <deque> <filesystem> <fstream> <functional> <map>
    <memory> <mutex> <numeric> <optional> <queue> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map>
    <unordered_set> <utility> <variant> <vector> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>)
  nt_precompiled_headers(nt_precompiled_std HEADERS ${std_headers} <absl/status/statusor.h> <fmt/format.h>
    DEPS fmt::fmt absl::flat_hash_map absl::flat_hash_set absl::statusor Threads::Threads)
  # proto/ generates them.
  set(service_headers <neurontrace/v1/agent_gateway.grpc.pb.h> <neurontrace/v1/operator_service.grpc.pb.h>)
endif()
nt_precompiled_headers(nt_precompiled_grpc
  HEADERS <grpcpp/grpcpp.h> <google/protobuf/reflection_ops.h> <google/protobuf/wire_format.h> ${service_headers}
    <absl/status/statusor.h> ${std_headers}
  DEPS gRPC::grpc++ absl::flat_hash_map absl::flat_hash_set absl::statusor Threads::Threads)

if(NEURONTRACE_SANITIZE MATCHES "thread")
  add_library(nt_visible_hand_over OBJECT ${CMAKE_SOURCE_DIR}/tests/tsan/visible_hand_over.cc)
endif()
