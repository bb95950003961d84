// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "agent/source/framework/xspace_wire.h"

namespace neurontrace {

// Times before 2001-01-01 are not of the wall clock: that is long before any of these profilers.
inline constexpr uint64_t kWallClockMinNs = 978'307'200'000'000'000;

// Returns true if a file of `size` bytes begins as an XSpace does: with a plane that fits into it.
// Pure. Protocol buffers have no magic, so other files may look like one by chance.
bool LooksLikeXSpace(std::string_view first_bytes, uint64_t size);

// What an XSpace states about its session as a whole.
struct XSpaceFacts {
  bool complete = false;  // ends where its last plane does
  std::string problem;    // why not
  // CLOCK_REALTIME when the session began: stat profile_start_time of the plane Task Environment.
  // Times of lines count from it.
  std::optional<uint64_t> start_ns;
  std::optional<uint32_t> process_id;     // stat process_id, of the plane /host:CPU before others
  std::optional<uint64_t> first_line_ns;  // of the first line, as the file says it

  // Returns the time of its first line by the wall clock, or since a moment that is not known.
  uint64_t first_time_ns() const;
  // Returns true if neither the session's begin is known nor its lines have times of the wall
  // clock.
  bool has_own_time() const;
};

// Reads the facts of an XSpace in steps. Skips lines, and so nearly all of the file.
class XSpaceScan {
 public:
  explicit XSpaceScan(XSpaceInput input);
  ~XSpaceScan();
  XSpaceScan(XSpaceScan&&) noexcept;
  XSpaceScan& operator=(XSpaceScan&&) noexcept;

  // Does a bounded piece of work; returns true when there is nothing more to read. Never fails: a
  // broken file has facts too.
  bool Step();
  const XSpaceFacts& facts() const;
  // Returns the error of the input, if it failed.
  absl::Status status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
