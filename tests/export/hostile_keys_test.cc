// SPDX-License-Identifier: Apache-2.0
// Goal: keys that are all alike cost no more than what is written of them. Method: spans of 64 such
// keys with long texts, their stops in another chunk. With a search through the object for each key
// and each name that it might get instead this takes minutes.
#include <gtest/gtest.h>

#include <string>

#include "lib/base/fuzz_seed.h"
#include "lib/trace/raw_columns_test_support.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

constexpr uint64_t kSpans = 4;  // of 4 MiB of text each
constexpr uint32_t kKeys = limits::kAttributesPerEventMax;

class HostileKeys : public ExportFixture {
 protected:
  static std::string Chunk(Phase phase) {
    RawColumns columns;
    columns.strings = {"nrt_execute", "name", std::string(limits::kStringBytesMax, '{')};
    const RawKey key{.name = 1, .type = ValueType::kString, .value = 2};
    columns.shapes = {{.phase = phase, .keys = std::vector<RawKey>(kKeys, key)}};
    columns.shapes.front().present |= FieldBit(Field::kTrackingId);
    const uint64_t first_ns = phase == Phase::kStart ? kBase : kBase + 1'000'000;
    for (uint64_t i = 0; i < kSpans; ++i) columns.events.push_back({first_ns + i, 0, i});
    return columns.Bytes();
  }
  void AddSpans() {
    const uint32_t stream = AddCore("i-a", 1, 0, 0);
    source_.AddColumns(stream, Chunk(Phase::kStart));
    source_.AddColumns(stream, Chunk(Phase::kStop));
  }
};

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST_F(HostileKeys, EachGetsANameOfItsOwn) {
  AddSpans();
  const std::string text = Export("json");
  std::string key = "name\":\"{";
  for (uint32_t i = 1; i <= kKeys; ++i) {
    key.insert(0, "data.");
    EXPECT_EQ(Count(text, '"' + key), kSpans) << key;
  }
}

TEST_F(HostileKeys, NoFormatTakesLonger) {
  AddSpans();
  for (const ExportFormat& format : ExportFormats()) {
    StringFiles files;
    const auto summary = ExportCapture(source_, format, {}, files, {});
    const bool is_absent =
        absl::IsFailedPrecondition(summary.status()) || absl::IsUnimplemented(summary.status());
    EXPECT_TRUE(summary.ok() || is_absent) << format.name << ": " << summary.status();
  }
}

// Not a test: see lib/base/fuzz_seed.h. One for each format: spans, points and names of a
// framework.
TEST_F(HostileKeys, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  for (size_t format = 0; format < ExportFormats().size(); ++format) {
    std::string recipe(1, static_cast<char>(format));
    recipe += std::string("\0\1\1", 3);  // a core's stream, then a framework's
    for (const char phase : {'\1', '\x08'}) {
      recipe += std::string("\1\1x", 3);   // one further string, of 300 x
      recipe += std::string("\1\x0f", 2);  // two shapes, of "nrt_execute"
      recipe += phase;
      recipe += std::string("\x7f\2", 2);  // all fields, keys of two kinds
      recipe += std::string("\x0b\2\0\7\5\1\5\0\x18\7", 10);
      recipe += std::string("\1\x0f\2\x7f\0\0", 6);
      recipe += std::string("\2\1\5\0\0\2\1\5\1\0\3\1", 12);
    }
    WriteFuzzSeed("timeline_fuzzer", "format_" + std::to_string(format), recipe);
  }
}

}  // namespace
}  // namespace neurontrace
