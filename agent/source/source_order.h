// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// What a source is to do with one capture, other than to stop it. Orders are idempotent: a repeated
// one has no effect except that its cursors, or the executions of a begin, replace those known
// before. A plain value; the static functions make one of each kind. Made by ControlSession and
// passed to each Source::ApplyOrder on the agent's sequence.
struct SourceOrder {
  enum class Kind : uint8_t {
    // Records what `spec` selects, from now on.
    kStart,
    // Reports for everything that `spec` selects whether it could take part (kArmed, or kRefused
    // with the obstacle), and again when that changes. Nothing begins before kBegin or kStart.
    kArm,
    // Begins what is armed at the moment of `begin`, or cuts a snapshot there. What could not be
    // armed begins when it can. Has neither `spec` nor `cursors`. No effect if the capture is
    // unknown.
    kBegin,
    // Takes part in a capture that has begun at `begin` elsewhere, and perhaps here: as kStart, but
    // what begins now is late.
    kJoin,
    // Continues what records a capture of the agent before this one, while the aggregator cannot
    // be asked about it, and begins nothing. kStart, kJoin, kFinish or Forget follows once the
    // aggregator is reached. Sources that lose nothing by waiting for those ignore it.
    kContinue,
    // Finishes what was begun of a capture that was told to stop while the agent was away, perhaps
    // days ago, and begins nothing. `begin`, if it had begun, says which executions were to be
    // recorded. Stop follows.
    kFinish,
  };
  // Copied by the functions below.
  using Cursors = std::span<const StreamCursor>;

  // `spec` is empty for kBegin alone, and `begin` is set for kBegin, kJoin and perhaps kFinish.
  Kind kind = Kind::kStart;
  CaptureId capture_id;
  CaptureSpec spec;
  // What the store holds of this agent's streams in this capture: those streams continue there.
  std::vector<StreamCursor> cursors;
  std::optional<CaptureBegin> begin;

  // One function for each kind, so that no order lacks what its kind needs.
  static SourceOrder Start(const CaptureId& id, CaptureSpec spec, Cursors cursors) {
    return {Kind::kStart, id, std::move(spec), {cursors.begin(), cursors.end()}, {}};
  }
  static SourceOrder Arm(const CaptureId& id, CaptureSpec spec, Cursors cursors) {
    return {Kind::kArm, id, std::move(spec), {cursors.begin(), cursors.end()}, {}};
  }
  static SourceOrder Begin(const CaptureId& id, const CaptureBegin& begin) {
    return {Kind::kBegin, id, {}, {}, begin};
  }
  static SourceOrder Join(const CaptureId& id, CaptureSpec spec, Cursors cursors,
                          const CaptureBegin& begin) {
    return {Kind::kJoin, id, std::move(spec), {cursors.begin(), cursors.end()}, begin};
  }
  static SourceOrder Continue(const CaptureId& id, CaptureSpec spec, Cursors cursors) {
    return {Kind::kContinue, id, std::move(spec), {cursors.begin(), cursors.end()}, {}};
  }
  static SourceOrder Finish(const CaptureId& id, CaptureSpec spec, Cursors cursors,
                            const std::optional<CaptureBegin>& begin) {
    return {Kind::kFinish, id, std::move(spec), {cursors.begin(), cursors.end()}, begin};
  }
};

}  // namespace neurontrace
