// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/store/database.h"
#include "aggregator/store/store_check.h"
#include "aggregator/store/stream_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Looks at all that is stored of one stream: its chunks one after the other, then the index against
// them, then the record against their sums. Used once; one thread.
class StreamCheck {
 public:
  // Told each fault: the sequence where it concerns one chunk, and what is wrong.
  using OnFault = std::function<void(std::optional<uint64_t> sequence, std::string what)>;

  StreamCheck(const Database& database, const CaptureId& capture, const StreamRecord& record,
              const ExamineChunk& examine, OnFault on_fault)
      : database_(database),
        capture_(capture),
        record_(record),
        examine_(examine),
        on_fault_(std::move(on_fault)) {}

  // `step` is called for each chunk.
  void Run(const std::function<void()>& step);

  uint64_t events() const { return sums_.events; }
  uint64_t bytes() const { return sums_.bytes; }
  uint64_t chunks() const { return sums_.chunks; }

 private:
  // What the index has to say of a chunk that was read.
  struct Expected {
    uint64_t last_timestamp_ns = 0;
    uint64_t sequence = 0;
    uint32_t value_crc32c = 0;
    auto operator<=>(const Expected&) const = default;
  };

  void Chunks(const std::function<void()>& step);
  void Chunk(uint64_t sequence, std::string_view value);
  absl::StatusOr<ReceivedChunk> Examined(uint64_t sequence, std::string_view value) const;
  void Holes();
  void Index();
  void Sums();
  void Compare(std::string_view what, uint64_t stored, uint64_t from_chunks);

  const Database& database_;
  const CaptureId capture_;
  const StreamRecord& record_;
  const ExamineChunk& examine_;
  const OnFault on_fault_;
  StreamRecord sums_;
  bool all_read_ = true;
  std::vector<std::pair<uint64_t, uint64_t>> holes_;  // sequences without a chunk, the end excluded
  std::vector<Expected> expected_;
};

}  // namespace neurontrace
