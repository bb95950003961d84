// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/trace/event_chunk.h"

namespace neurontrace {

// Writes events in a form that is convenient for tests and appends them to a builder, which must
// outlive the script. Used by one thread at a time.
class EventScript {
 public:
  // A value that is stored with the type JSON. The text need not be valid: tests rely on that.
  struct Json {
    std::string text;
  };
  using Value = std::variant<uint64_t, int64_t, double, bool, std::string, Json>;
  // An attribute with its value, from whose type the column's type follows.
  struct Attribute {
    std::string name;
    Value value;
    KeyScope scope = KeyScope::kData;
  };
  using Attributes = std::vector<Attribute>;
  // An event as EventChunkBuilder takes it. Fields that are 0 or empty are absent, except for the
  // time.
  struct Event {
    std::string type;
    Phase phase = Phase::kInstant;
    uint64_t timestamp_ns = 0;
    uint64_t tracking_id = 0;
    uint64_t thread_id = 0;
    Attributes attributes;
    uint64_t id = 0;
    std::optional<uint64_t> nrta_seq_id = {};
    bool has_thread = true;
  };

  explicit EventScript(EventChunkBuilder& builder) : builder_(builder) {}

  // Aborts where the builder refuses: a test's events are no hostile input.
  void Add(const Event& event);
  void Add(const std::string& type, Phase phase, uint64_t timestamp_ns, uint64_t tracking_id = 0,
           uint64_t thread_id = 0, Attributes attributes = {}, uint64_t id = 0,
           std::optional<uint64_t> nrta_seq_id = {}) {
    Add({type, phase, timestamp_ns, tracking_id, thread_id, std::move(attributes), id,
         nrta_seq_id});
  }
  // Each adds one event of that phase.
  void Start(const std::string& type, uint64_t timestamp_ns, uint64_t tracking_id = 0,
             uint64_t thread_id = 0, Attributes attributes = {}, uint64_t id = 0,
             std::optional<uint64_t> nrta_seq_id = {}) {
    Add(type, Phase::kStart, timestamp_ns, tracking_id, thread_id, std::move(attributes), id,
        nrta_seq_id);
  }
  void Stop(const std::string& type, uint64_t timestamp_ns, uint64_t tracking_id = 0,
            uint64_t thread_id = 0, Attributes attributes = {}, uint64_t id = 0,
            std::optional<uint64_t> nrta_seq_id = {}) {
    Add(type, Phase::kStop, timestamp_ns, tracking_id, thread_id, std::move(attributes), id,
        nrta_seq_id);
  }
  void Instant(const std::string& type, uint64_t timestamp_ns, uint64_t tracking_id = 0,
               uint64_t thread_id = 0, Attributes attributes = {}) {
    Add(type, Phase::kInstant, timestamp_ns, tracking_id, thread_id, std::move(attributes));
  }
  void Complete(const std::string& type, uint64_t timestamp_ns, uint64_t tracking_id = 0,
                uint64_t thread_id = 0, Attributes attributes = {}) {
    Add(type, Phase::kComplete, timestamp_ns, tracking_id, thread_id, std::move(attributes));
  }
  // Adds a start and a stop, one after the other.
  void Span(const std::string& type, uint64_t start_ns, uint64_t end_ns, uint64_t tracking_id,
            uint64_t thread_id = 7, Attributes start = {}, Attributes stop = {}) {
    Add({type, Phase::kStart, start_ns, tracking_id, thread_id, std::move(start)});
    Add({type, Phase::kStop, end_ns, tracking_id, thread_id, std::move(stop)});
  }

 private:
  EventChunkBuilder& builder_;
};

}  // namespace neurontrace
