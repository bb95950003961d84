// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "tests/export/seen_capture.h"

namespace neurontrace {

// Makes captures of everything that is allowed and nobody expects: overlaps, spans of no length,
// equal times, spans without an end or a beginning, ids of every kind up to 2^64-1, names and texts
// that are empty, long, in many scripts, full of signs or no text at all, attributes called like
// what formats need themselves; files of frameworks with words for ids, and hosts; cut into chunks
// anywhere.
class HostileCapture {
 public:
  struct Shape {
    uint32_t streams = 5;   // of cores; the last two of a worker
    uint32_t files = 2;     // of frameworks
    uint32_t hosts = 1;     // samplers
    uint32_t threads = 5;   // of each stream
    uint32_t events = 400;  // of each stream: spans and instants
    uint64_t length_ns = 1'000'000;
    uint64_t grid_ns = 1;  // times are multiples of it
  };

  // Fills `source` with one, and says what is in it.
  static CaptureTruth Make(uint64_t seed, const Shape& shape, FakeChunkSource& source);

  static constexpr uint64_t kBase = 1'750'000'000'000'000'000u;

 private:
  using Events = std::vector<EventScript::Event>;

  HostileCapture(uint64_t seed, const Shape& shape) : random_(seed), shape_(shape) {}
  void AddCore(uint32_t number, FakeChunkSource& source);
  void AddFile(uint32_t number, FakeChunkSource& source);
  void AddHost(uint32_t number, FakeChunkSource& source);
  SeenEvent NewEvent(uint32_t stream);
  void AddSpan(SeenEvent seen, uint64_t thread, Events& events);
  void AddInstant(SeenEvent seen, uint64_t thread, Events& events);
  void AddFileEvent(uint32_t number, Events& events);
  void AddArrow(uint32_t number, uint32_t row, Events& events);
  uint64_t AddFileSpan(SeenEvent seen, const EventScript::Event& like, Events& events);
  // In the order of time, in chunks that end anywhere.
  void AddChunks(Events events, uint32_t stream, FakeChunkSource& source);

  EventScript::Attributes Attributes(std::string_view prefix, SeenEvent& seen);
  EventScript::Attributes StopAttributes(SeenEvent& seen);
  // What identifies arrows, collectives and physical cores, where an event of this name has it.
  void AddExecution(std::string_view name, SeenEvent& seen, EventScript::Attributes& attributes);
  void AddAttribute(std::string name, SeenEvent& seen, EventScript::Attributes& attributes);
  EventScript::Value Value(std::string& text);
  std::optional<uint64_t> SequenceId(SeenEvent& seen);
  uint64_t NewId();
  uint64_t Time();
  uint64_t Length();
  const std::string& Text();
  uint64_t Below(uint64_t end) { return random_() % end; }

  std::mt19937_64 random_;
  const Shape shape_;
  static constexpr uint64_t kFirstNumber = 2;  // even; and an id of 0 is none
  uint64_t next_number_ = kFirstNumber;
  CaptureTruth truth_;
};

}  // namespace neurontrace
