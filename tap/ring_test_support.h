// SPDX-License-Identifier: Apache-2.0
// For tests: a header and a ring in plain memory with a guard behind it, and a reader that checks
// everything the format promises.
#pragma once

#include <string.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/crc32c.h"
#include "tap/buffer_format.h"

namespace neurontrace::tap {

struct TapTestRecord {
  TapRecordHeader header;
  std::string payload;
};

// Reads from `*position` to the writer's, checking every record; moves `*position`.
inline std::vector<TapTestRecord> ReadTapRecords(const TapBufferHeader& header, const uint8_t* ring,
                                                 uint64_t ring_bytes, uint64_t* position) {
  std::vector<TapTestRecord> records;
  const auto copy = [&](uint64_t from, size_t size) {
    std::string out(size, '\0');
    for (size_t i = 0; i < size; ++i) {
      out[i] = static_cast<char>(ring[(from + i) % ring_bytes]);
    }
    return out;
  };
  const uint64_t end = header.write_pos.load();
  while (*position < end) {
    TapTestRecord record;
    const std::string head = copy(*position, sizeof record.header);
    memcpy(&record.header, head.data(), head.size());
    EXPECT_GE(record.header.length, sizeof record.header);
    EXPECT_LE(*position + TapRecordSpan(record.header.length), end);
    if (::testing::Test::HasFailure()) break;
    const std::string all = copy(*position, record.header.length);
    EXPECT_EQ(record.header.crc32c,
              Crc32c(all.data() + kTapRecordCrcOffset, all.size() - kTapRecordCrcOffset));
    record.payload = all.substr(sizeof record.header);
    *position += TapRecordSpan(record.header.length);
    records.push_back(record);
  }
  return records;
}

class TapRingFixture {
 public:
  explicit TapRingFixture(uint64_t ring_bytes)
      : bytes_(ring_bytes), memory_(ring_bytes + kGuardBytes, 0) {
    memset(memory_.data() + ring_bytes, 0x5a, kGuardBytes);
    header_.ring_bytes = ring_bytes;
  }

  TapBufferHeader* header() { return &header_; }
  uint8_t* ring() { return memory_.data(); }
  uint64_t bytes() const { return bytes_; }
  uint64_t write_pos() const { return header_.write_pos.load(); }

  // Reads and commits everything.
  std::vector<TapTestRecord> ReadAll() {
    uint64_t position = header_.read_pos.load();
    std::vector<TapTestRecord> records = ReadTapRecords(header_, ring(), bytes_, &position);
    header_.read_pos.store(position);
    return records;
  }

  bool GuardIsIntact() const {
    for (uint64_t i = bytes_; i < memory_.size(); ++i) {
      if (memory_[i] != 0x5a) return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kGuardBytes = 4096;
  uint64_t bytes_;
  TapBufferHeader header_ = {};
  std::vector<uint8_t> memory_;
};

}  // namespace neurontrace::tap
