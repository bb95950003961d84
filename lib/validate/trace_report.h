// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/validate/trace_finding.h"

namespace neurontrace {

// What a track descriptor describes; kPlain for a track that is neither of these.
enum class TrackKind : uint8_t { kPlain, kProcess, kThread, kCounter };

// The order of a track's children; the values are Perfetto's.
enum class ChildOrder : uint8_t { kUnknown = 0, kByName = 1, kByTime = 2, kByRank = 3 };

// A track of the file, and the numbers of events on it. Filled by TrackList and EventCheck.
struct TraceTrack {
  // The parent of a track at the top.
  static constexpr uint32_t kNoTrack = 0xffffffffu;

  // Unique in the file; 0 is the root, which only orders processes.
  uint64_t uuid = 0;
  TrackKind kind = TrackKind::kPlain;
  uint32_t parent = kNoTrack;  // index; the process of a thread
  // It has a valid descriptor; otherwise it is known from its events only.
  bool is_described = false;
  // Beginnings of the texts, cleaned for a terminal.
  std::string name;
  std::string description;
  // 0 for other kinds.
  int64_t pid = 0;  // of a process or thread, as the file has it
  int64_t tid = 0;
  int64_t rank = 0;  // order among its siblings
  ChildOrder child_order = ChildOrder::kUnknown;
  // Events that begin slices, instants, and values of counters.
  uint64_t slices = 0;
  uint64_t instants = 0;
  uint64_t counter_values = 0;
  uint64_t open_slices = 0;  // at the end of the file
  // The time of the first event on it, in ns of the trace's clock.
  uint64_t first_ns = UINT64_MAX;
};

// The numbers of a file, as `neurontrace validate` prints them. Counts are of the whole file.
struct TraceSummary {
  // The file's size, and that after uncompressing gzip and zlib.
  uint64_t file_bytes = 0;
  uint64_t uncompressed_bytes = 0;
  bool is_gzip = false;
  uint64_t packets = 0;
  uint64_t compressed_packets = 0;  // packets that contain packets
  uint64_t sequences = 0;
  uint64_t sequence_headers = 0;  // how often a sequence's state was cleared
  // Tracks by kind.
  uint64_t processes = 0;
  uint64_t threads = 0;
  uint64_t counter_tracks = 0;
  uint64_t other_tracks = 0;
  // Events by type.
  uint64_t slices = 0;
  uint64_t open_slices = 0;
  uint64_t instants = 0;
  uint64_t counter_values = 0;
  uint64_t other_events = 0;  // of kinds that are not checked
  uint64_t arguments = 0;
  uint64_t interned_texts = 0;
  uint64_t flow_points = 0;  // arrow ends on slices and instants
  uint64_t flow_arrows = 0;  // from one point of an id to the next
  // Ends of flows to which no arrow leads and from which none starts.
  uint64_t lone_flow_points = 0;
  uint64_t packet_losses = 0;      // packets that report the loss of others before them
  uint64_t loss_instants = 0;      // `events lost`, as neurontrace writes them
  uint64_t lost_events = 0;        // the sum of the events that these report
  bool is_realtime = false;        // times are ns since the Unix epoch
  uint64_t first_ns = UINT64_MAX;  // of an event; greater than last_ns: there is none
  uint64_t last_ns = 0;
};

// The content of a file and what is wrong with it. A plain value, the result of ValidateTrace.
struct TraceReport {
  TraceSummary summary;
  // The kept findings, and the number of all.
  TraceFindingLog findings;
  std::vector<TraceTrack> tracks;                               // in the order of the file
  std::vector<std::pair<std::string, std::string>> attributes;  // of the trace, beginnings
};

// Returns the tracks as Perfetto shows them, one in each line with its numbers of events, children
// indented. Pure.
std::string TrackTree(const TraceReport& report);

}  // namespace neurontrace
