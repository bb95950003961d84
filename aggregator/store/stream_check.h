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

// Checks everything stored of one stream: each chunk, then the index against the chunks, then the
// record against their sums. Used once, on one thread. Everything passed in must outlive it.
class StreamCheck {
 public:
  // Receives each fault: the sequence, if it concerns one chunk, and what is wrong.
  using OnFault = std::function<void(std::optional<uint64_t> sequence, std::string what)>;

  StreamCheck(const Database& database, const CaptureId& capture, const StreamRecord& record,
              const ExamineChunk& examine, OnFault on_fault)
      : database_(database),
        capture_(capture),
        record_(record),
        examine_(examine),
        on_fault_(std::move(on_fault)) {}

  // Runs the check; calls `step` for each chunk.
  void Run(const std::function<void()>& step);

  // Sums over the chunks that could be read, after Run.
  uint64_t events() const { return sums_.events; }
  uint64_t bytes() const { return sums_.bytes; }
  uint64_t chunks() const { return sums_.chunks; }

 private:
  // The index entry that a chunk requires. The value is compared by its checksum, to save memory.
  struct Expected {
    uint64_t last_timestamp_ns = 0;
    uint64_t sequence = 0;
    uint32_t value_crc32c = 0;
    auto operator<=>(const Expected&) const = default;
  };

  // Perform the steps of Run, in this order. Each reports its own faults.
  void Chunks(const std::function<void()>& step);
  void Chunk(uint64_t sequence, std::string_view value);
  // Returns the validated chunk, or what is wrong with it.
  absl::StatusOr<ReceivedChunk> Examined(uint64_t sequence, std::string_view value) const;
  void Holes();
  void Index();
  // Only if every chunk could be read.
  void Sums();
  // Reports a sum in the record that differs from that of the chunks.
  void Compare(std::string_view what, uint64_t stored, uint64_t from_chunks);

  const Database& database_;
  const CaptureId capture_;
  const StreamRecord& record_;
  const ExamineChunk& examine_;
  const OnFault on_fault_;
  StreamRecord sums_;     // the record as the chunks give it
  bool all_read_ = true;  // else sums are not compared: they would repeat the fault
  std::vector<std::pair<uint64_t, uint64_t>> holes_;  // sequences without a chunk, [from, to)
  std::vector<Expected> expected_;
};

}  // namespace neurontrace
