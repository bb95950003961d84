// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Bits of SpanColumns::flags. Part of the format, docs/formats/view_api.md.
inline constexpr uint8_t kViewOpen = 1;
inline constexpr uint8_t kViewStartLost = 2;
inline constexpr uint8_t kViewInstant = 4;
inline constexpr uint8_t kViewMerged = 8;
inline constexpr uint8_t kViewClippedLeft = 16;
inline constexpr uint8_t kViewClippedRight = 32;
inline constexpr uint8_t kViewDeviceClock = 64;
inline constexpr uint8_t kViewNoBound = 128;

// The items of one row as columns of one length, sorted by start. An item is a span or an instant,
// or several that are narrower than a pixel.
struct SpanColumns {
  std::vector<uint32_t> start;     // units after the window's begin
  std::vector<uint32_t> duration;  // units; of merged items the stretch from first to last
  std::vector<uint32_t> count;     // events that the item stands for
  std::vector<uint16_t> name;      // index into SpanAnswer::names; of the longest if merged
  std::vector<uint8_t> depth;      // level of nesting, from 0
  std::vector<uint8_t> flags;      // kView…

  size_t size() const { return start.size(); }
  // Copies an item to an earlier place.
  void Move(size_t from, size_t to) {
    start[to] = start[from];
    duration[to] = duration[from];
    count[to] = count[from];
    name[to] = name[from];
    depth[to] = depth[from];
    flags[to] = flags[from];
  }
  // Drops the items behind the first `items`.
  void Resize(size_t items) {
    start.resize(items);
    duration.resize(items);
    count.resize(items);
    name.resize(items);
    depth.resize(items);
    flags.resize(items);
  }
};

// The values of one counter, reduced to the maximum of each pixel.
struct CounterColumns {
  std::vector<uint32_t> start;  // units after the window's begin
  std::vector<float> value;

  size_t size() const { return start.size(); }
};

// One row of the page within one window.
struct SpanRow {
  uint32_t stream = 0;  // StreamDescription::number
  uint64_t id = 0;      // the same in every window of the capture
  std::string name;
  std::string source;   // "runtime", "hardware", "framework" or "counter"
  uint32_t order = 0;   // among the rows of the stream
  uint32_t depth = 0;   // levels of nesting
  uint64_t events = 0;  // that overlap the window; `spans.count` adds up to it
  bool is_merged = false;
  SpanColumns spans;        // empty for a counter
  CounterColumns counters;  // empty for anything else
  float counter_max = 0;
  std::string_view unit;  // of a counter: "B", "%", "ns", or empty if its name tells none
};

// What a window shows: the answer to one question of the page. A plain value.
struct SpanAnswer {
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  uint64_t unit_ns = 1;  // of the columns: 1 unless the window needs more than 32 bits
  std::vector<std::string> names;
  std::vector<std::string> categories;
  std::vector<uint16_t> name_category;  // index into `categories` for each name
  std::vector<SpanRow> rows;
  // What the answer omits or coarsens because of a limit; empty: nothing.
  std::string cut;
  uint64_t chunks_read = 0;
  uint64_t digested_chunks = 0;  // whose events come from digests
  uint64_t unreadable_chunks = 0;
  std::vector<std::string> warnings;
};

// Identifies a row in every window of a capture: a number that a browser holds exactly. A collision
// would give two rows one memory of being pinned or hidden, which is harmless.
uint64_t ViewRowId(std::string_view process, std::string_view name);

// Returns the beginning of a binary answer: "NTV1", the header, and the padding after which columns
// are aligned.
std::string ViewFrame(std::string_view json_header);

// Encodes the answer as docs/formats/view_api.md defines it: "NTV1", a JSON header, columns.
// `version` is that of the capture's layout.
std::string EncodeSpans(const SpanAnswer& answer, uint64_t version);

}  // namespace neurontrace
