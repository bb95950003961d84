// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neurontrace {

// One span or instant, as whatever reads an export sees it: the form in which formats are compared.
// Text is valid UTF-8 (ValidUtf8); numbers that can be words in a framework's file are text.
struct SeenEvent {
  uint64_t id = 0;  // of the event: no two of a capture have the same
  std::string name;
  std::string category;  // of a framework's events
  std::string instance_id;
  std::string process_id;
  std::string nc_idx;  // empty: it has no core
  std::string thread_id;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // of an instant: start_ns
  bool is_instant = false;
  bool is_open = false;
  bool is_start_lost = false;
  std::string nrta_seq_id;  // empty: none
  // Name and value, as text: those that IsHostileAttribute knows, under BareName.
  std::multiset<std::pair<std::string, std::string>> attributes;
  friend bool operator==(const SeenEvent&, const SeenEvent&) = default;
};
void PrintTo(const SeenEvent& event, std::ostream* out);

// An arrow of a framework's file, by the ids of the spans at its ends.
using SeenArrow = std::pair<uint64_t, uint64_t>;

// One value of a host's sampler.
struct SeenSample {
  std::string instance_id;
  std::string series;  // "cpu 0", "cpu average" (percent), "memory" (bytes)
  uint64_t at_ns = 0;
  double value = 0;
  friend auto operator<=>(const SeenSample&, const SeenSample&) = default;
};
void PrintTo(const SeenSample& sample, std::ostream* out);

// What was found in an export.
struct SeenCapture {
  std::vector<SeenEvent> events;
  std::multiset<SeenArrow> arrows;
  uint64_t arrows_not_drawn = 0;  // as the export says
  std::multiset<SeenSample> samples;
  uint64_t stops_not_shown = 0;  // spans that it marks as lacking their stop's attributes
};

// What a capture holds.
struct CaptureTruth {
  std::map<uint64_t, SeenEvent> events;  // by id
  std::multiset<SeenArrow> arrows;
  std::multiset<SeenSample> samples;
};

// The prefix of the names of a hostile capture's attributes, by which they differ from those that a
// format adds; or else, of a name that a format needs itself, of the value.
inline constexpr std::string_view kAttributePrefix = "p.";
inline constexpr std::string_view kValuePrefix = "p.~";
// And so the names of those that a span's stop has.
inline constexpr std::string_view kStopAttributePrefix = "p.stop";

// Attributes that are compared besides: formats make other things of them as well.
inline constexpr std::array<std::string_view, 3> kExecutionNames = {"exec_id", "op_id",
                                                                    "device_core_idx"};

// A name without what a format puts before it where it is taken: "data.", "top.", "stop_". That no
// two attributes of an event have the same name with it is for whoever reads to see to.
std::string_view BareName(std::string_view name);
bool IsHostileAttribute(std::string_view name, std::string_view value);
void ReadAttribute(std::string_view name, std::string_view value, SeenEvent& seen);

// What is no UTF-8 replaced by U+FFFD, each byte by one.
std::string ValidUtf8(std::string_view text);

}  // namespace neurontrace
