// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/view/capture_layout.h"
#include "aggregator/view/event_links.h"
#include "aggregator/view/link_collector.h"

namespace neurontrace {

// What a reading found about its own completeness.
struct ViewReading {
  bool is_complete = true;
  uint64_t chunks_scanned = 0;  // of the window
  uint64_t chunks_read = 0;     // from the store, those before the window included
  uint64_t chunks_refused = 0;  // because of the limit
};

// Reads a part of a capture for a collector. Used by one thread at a time.
class WindowReader {
 public:
  virtual ~WindowReader() = default;
  // Passes the events that overlap [from_ns, to_ns) of these streams to `collector`. Fails with
  // errors of the store, and with CANCELLED.
  virtual absl::StatusOr<ViewReading> Read(uint64_t from_ns, uint64_t to_ns,
                                           const std::vector<uint32_t>& streams,
                                           ViewCollector& collector) = 0;
};

// Answers what an event is connected to: its links, and the chain of what it depended on or of what
// depended on it. Each event costs a reading of its surroundings, and one of all ranks if it is a
// part of a collective. Used by one thread at a time.
class EventLinker {
 public:
  struct Options {
    std::optional<LinkDirection> direction;  // of the chain; nullopt: none is followed
    uint32_t depth = 8;
    uint32_t breadth = 3;     // links of one event that the chain follows
    uint64_t chunks_max = 0;  // the chain ends once all readings together have read as many
  };
  // Both must outlive this.
  EventLinker(const CaptureLayout& layout, WindowReader& reader)
      : layout_(layout), reader_(reader) {}

  // Returns the answer of `links` in docs/formats/view_api.md. Fails with NOT_FOUND if the capture
  // has no such event, and as WindowReader::Read does.
  absl::StatusOr<std::string> Json(const EventId& id, const Options& options);

 private:
  // An event of the chain and the link that led to it.
  struct Step {
    uint32_t distance = 0;
    EventId from;
    EventLink link;
  };
  struct Window {
    uint64_t from_ns = 0;
    uint64_t to_ns = 1;
  };

  absl::StatusOr<LinkedEvent> Find(const EventId& id);
  absl::StatusOr<EventLinks> LinksOf(const LinkedEvent& event);
  // Reads one window for the collector and adds its links to `out`.
  absl::Status Read(const Window& window, const std::vector<uint32_t>& streams,
                    LinkCollector& collector, EventLinks& out);
  // Follows the links of `first`, breadth first.
  absl::StatusOr<std::vector<Step>> Follow(const EventLinks& first, const Options& options);
  // Streams that may hold causes and effects of an event of `stream`, and those of all ranks.
  std::vector<uint32_t> StreamsNear(const StreamDescription& stream) const;
  std::vector<uint32_t> StreamsOfCores() const;
  const StreamDescription* FindStream(uint32_t number) const;
  static Window WindowAround(const LinkedEvent& event, uint64_t reach_ns);
  // Adds a sentence about what a limit left out, once.
  void AddCut(std::string sentence);

  const CaptureLayout& layout_;
  WindowReader& reader_;
  bool is_complete_ = true;
  uint64_t chunks_read_ = 0;
  std::vector<std::string> cuts_;
};

}  // namespace neurontrace
