// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"

namespace neurontrace {

// One span or instant, as whatever reads an export sees it: the form in which formats are compared.
// Text is valid UTF-8 (ValidUtf8).
struct SeenEvent {
  uint64_t id = 0;  // of the event: no two of a capture have the same
  std::string name;
  std::string instance_id;
  uint64_t pid = 0;
  uint64_t nc_idx = 0;
  uint64_t thread_id = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // of an instant: start_ns
  bool is_instant = false;
  bool is_open = false;
  bool is_start_lost = false;
  std::map<std::string, std::string> attributes;  // those whose names begin with kAttributePrefix
  friend bool operator==(const SeenEvent&, const SeenEvent&) = default;
};
void PrintTo(const SeenEvent& event, std::ostream* out);

// So begin the names of what a hostile capture's events have for attributes, so that they can be
// told from those that a format adds.
inline constexpr std::string_view kAttributePrefix = "p.";

// What is no UTF-8 replaced by U+FFFD, each byte by one.
std::string ValidUtf8(std::string_view text);

// Makes captures of everything that is allowed and nobody expects: overlaps, spans of no length,
// equal times, spans without an end or a beginning, ids up to 2^64-1, names and texts that are
// empty, long, in many scripts, full of signs or no text at all; cut into chunks anywhere.
class HostileCapture {
 public:
  struct Shape {
    uint32_t streams = 4;
    uint32_t threads = 5;   // of each stream
    uint32_t events = 600;  // of each stream: spans and instants
    uint64_t length_ns = 1'000'000;
    uint64_t grid_ns = 1;  // times are multiples of it
  };

  // Fills `source` with one, and says what is in it, by id.
  static std::map<uint64_t, SeenEvent> Make(uint64_t seed, const Shape& shape,
                                            FakeChunkSource& source);

  static constexpr uint64_t kBase = 1'750'000'000'000'000'000u;

 private:
  struct Raw {
    EventScript::Event event;
  };

  HostileCapture(uint64_t seed, const Shape& shape) : random_(seed), shape_(shape) {}
  void AddStream(uint32_t number, FakeChunkSource& source);
  void AddSpan(SeenEvent seen, std::vector<Raw>& raw);
  EventScript::Attributes Attributes(std::string_view prefix, SeenEvent& seen);
  SeenEvent NewEvent(uint32_t stream);
  uint64_t Time();
  std::string Text();
  uint64_t Below(uint64_t end) { return random_() % end; }

  std::mt19937_64 random_;
  const Shape shape_;
  uint64_t next_id_ = 0;
  std::map<uint64_t, SeenEvent> truth_;
};

}  // namespace neurontrace
