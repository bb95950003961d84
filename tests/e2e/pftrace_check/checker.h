// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace::pftrace_check {

// One slice or instant, resolved: names instead of numbers, absolute times.
struct Slice {
  std::string name;
  std::string category;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // of instants: start_ns
  size_t depth = 0;
  std::map<std::string, std::string> arguments;  // values as text
  std::vector<uint64_t> flows;                   // also of an arrow that ends here
  uint64_t correlation_id = 0;                   // 0: none
  std::vector<uint64_t> terminating_flows;
};

struct Track {
  uint64_t uuid = 0;
  std::string name;
  std::string process;  // name of the process it is in; empty: none
  std::string ranks;    // of a process: the end of its name that lists them: "[gid0-3]"
  std::string parent;   // name of the track it hangs from; empty: none
  std::string row;      // of a lane: the name of its row; of others, its own
  std::string description;
  std::string axis;  // of counters that are drawn to one scale
  int32_t rank = 0;  // among those of its parent
  bool is_thread = false;
  bool is_counter = false;
  int64_t tid = 0;
  std::vector<Slice> slices;  // in the order of their begin
  std::vector<Slice> instants;
  std::vector<std::pair<uint64_t, double>> counter;
};

// A slice of a report.
struct SlicePlace {
  size_t track = 0;  // index
  size_t slice = 0;  // index
};

// What Perfetto draws from one slice to another: always from the one that began first.
struct Arrow {
  uint64_t flow = 0;
  SlicePlace from;
  SlicePlace to;
};

// The contents of a file, and what is wrong with it.
struct Report {
  std::vector<std::string> errors;  // the first 100
  uint64_t error_count = 0;
  std::vector<std::string> processes;
  std::vector<Track> tracks;  // in the order of their description
  std::map<std::string, std::string> attributes;
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t slices = 0;
  uint64_t instants = 0;
  uint64_t counters = 0;
  uint64_t arguments = 0;
  std::map<std::string, std::set<std::string>>
      argument_types;        // int, text, … by the argument's name
  uint64_t flow_arrows = 0;  // arrows.size(), and those that touch instants
  std::vector<Arrow> arrows;
  uint64_t flow_points = 0;       // arrow ends on slices and instants
  uint64_t lone_flow_points = 0;  // ids that only one slice has
  uint64_t generations = 0;       // sequence headers

  const Track* FindRow(std::string_view name) const;
  // Slices of a row and its lanes, by begin.
  std::vector<const Slice*> SlicesOfRow(std::string_view row) const;
};

// Reads a trace with protobuf's own decoder and checks what Perfetto's importer would silently put
// up with or drop: packet framing, sequences and their state, times that run backwards, tracks used
// before they are described or hung from nothing, numbers of nothing, ends without begins and
// begins without ends, slices that overlap on a track, depth, flows.
Report Check(std::string_view trace);

// For people, and for scripts.
std::string ToText(const Report& report);
std::string ToJson(const Report& report);

}  // namespace neurontrace::pftrace_check
