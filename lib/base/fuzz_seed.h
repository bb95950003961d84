// SPDX-License-Identifier: Apache-2.0
// For tests that make inputs for a fuzzer's kept corpus out of what they test: with
// NEURONTRACE_WRITE_FUZZ_CORPUS=build/fuzz/kept they write them, else they are skipped. One test
// of a program at a time. scripts/fuzz_corpus unpack before and pack afterwards.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace neurontrace {

inline constexpr char kFuzzCorpusVariable[] = "NEURONTRACE_WRITE_FUZZ_CORPUS";

inline bool WantsFuzzSeeds() { return std::getenv(kFuzzCorpusVariable) != nullptr; }

// Writes an input as FUZZER/NAME of the corpus. Fails the test if it cannot. Called on the test's
// thread.
inline void WriteFuzzSeed(const std::string& fuzzer, const std::string& name,
                          std::string_view bytes) {
  const std::filesystem::path directory =
      std::filesystem::path(std::getenv(kFuzzCorpusVariable)) / fuzzer;
  std::filesystem::create_directories(directory);
  std::ofstream file(directory / name, std::ios::binary);
  file << bytes;
  ASSERT_TRUE(file.flush()) << directory / name;
}

}  // namespace neurontrace

// The first statement of a test that writes seeds.
#define NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED()                           \
  if (!::neurontrace::WantsFuzzSeeds()) {                                \
    GTEST_SKIP() << ::neurontrace::kFuzzCorpusVariable << " is not set"; \
  }
