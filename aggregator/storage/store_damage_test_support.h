// SPDX-License-Identifier: Apache-2.0
// A store on disk with real chunks, and ways to hurt it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "aggregator/aggregator_test_support.h"
#include "aggregator/ingest/chunk_admission.h"
#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_test_support.h"

namespace neurontrace {

class StoreDamageTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kEventsPerChunk = 8;

  const std::string& path() const { return directory_.path(); }
  ChunkAdmission& door() { return door_; }

  std::unique_ptr<Store> OpenStore() {
    auto store =
        Store::Open(path(), {.examine = ExamineThrough(door_), .aggregator_id = "aggregator-1"});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  ReceivedChunk RealChunk(uint8_t capture, uint32_t nc_idx, uint64_t sequence, bool end = false) {
    v1::ChunkEnvelope envelope =
        TestEnvelope(TestCaptureId(capture), "a", nc_idx, sequence, end, end ? 0 : kEventsPerChunk);
    auto chunk = door_.Admit(envelope, "a");
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    return *std::move(chunk);
  }

  // Captures 1 to `captures`, each with streams of so many chunks, one write a sequence.
  void Fill(uint8_t captures, uint32_t streams, uint64_t chunks) {
    const auto store = OpenStore();
    for (uint8_t capture = 1; capture <= captures; ++capture) {
      EXPECT_TRUE(store->captures().Put(TestCapture(capture), true).ok());
      for (uint64_t sequence = 0; sequence < chunks; ++sequence) {
        std::vector<ReceivedChunk> group;
        for (uint32_t stream = 0; stream < streams; ++stream) {
          group.push_back(RealChunk(capture, stream, sequence));
        }
        EXPECT_TRUE(store->chunks().PutBatch(group).ok());
      }
    }
  }

  void EditStore(const std::function<void(Database&)>& edit) {
    const auto database = Database::Open(path(), nullptr);
    ASSERT_TRUE(database.ok()) << database.status();
    edit(**database);
  }
  // Everything goes out of the log into files.
  void Flush() {
    EditStore([](Database& database) {
      for (size_t i = 0; i < kFamilyCount; ++i) {
        EXPECT_TRUE(database.db().Flush({}, database.family(static_cast<Family>(i))).ok());
      }
    });
    // Opening once more lets go of the logs that are not needed any more.
    EditStore([](Database&) {});
  }
  static std::string FirstIndexKey(const Database& database, const CaptureId& id, uint32_t stream) {
    std::string first;
    EXPECT_TRUE(database
                    .ForEach(Family::kChunkIndex, keys::Stream(id, stream),
                             [&](std::string_view key, std::string_view) {
                               if (first.empty()) first = std::string(key);
                               return absl::OkStatus();
                             })
                    .ok());
    return first;
  }

  static std::string ReadFile(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void WriteFile(const std::filesystem::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::vector<std::filesystem::path> Files(const std::string& kind) const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      const std::string name = entry.path().filename().string();
      const bool fits = kind[0] == '.' ? name.ends_with(kind) : name.starts_with(kind);
      if (fits && entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  static void FlipAt(const std::filesystem::path& file, size_t at) {
    std::string bytes = ReadFile(file);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ 0x5a);
    WriteFile(file, bytes);
  }
  // In the middle of the columns of this chunk, wherever they lie.
  bool FlipInFileWith(const std::string& kind, uint8_t capture, uint32_t stream,
                      uint64_t sequence) {
    const std::string header = RealChunk(capture, stream, sequence).header_bytes;
    for (const auto& file : Files(kind)) {
      const size_t at = ReadFile(file).find(header);
      if (at == std::string::npos) continue;
      FlipAt(file, at + header.size() + 10);
      return true;
    }
    return false;
  }
  void FlipInBlobOf(uint8_t capture, uint32_t stream, uint64_t sequence) {
    EXPECT_TRUE(FlipInFileWith(".blob", capture, stream, sequence));
  }
  void FlipInLogOf(uint8_t capture, uint32_t stream, uint64_t sequence) {
    EXPECT_TRUE(FlipInFileWith(".log", capture, stream, sequence));
  }
  void FlipInLargest(const std::string& kind) {
    std::filesystem::path largest;
    for (const auto& file : Files(kind)) {
      if (largest.empty() ||
          std::filesystem::file_size(file) > std::filesystem::file_size(largest)) {
        largest = file;
      }
    }
    ASSERT_FALSE(largest.empty());
    FlipAt(largest, 20);
  }
  // All files with what is in them.
  std::map<std::string, std::string> Snapshot() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      if (entry.is_regular_file()) files[entry.path().filename()] = ReadFile(entry.path());
    }
    return files;
  }

 private:
  const TemporaryDirectory directory_;
  ChunkAdmission door_;
};

}  // namespace neurontrace
