// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/given_way.h"
#include "trace/ids.h"
#include "trace/loss.h"

namespace neurontrace {

// Since when and until when a continuous capture has nothing of a worker because another capture
// had its tap, as losses of no events for the account of the worker. Said at once, so that the
// agent that takes over knows when it began, and again while it goes on. All times are realtime.
class GivenWay {
 public:
  // How old what was said of a stretch that goes on gets.
  static constexpr uint64_t kTellNs = 2'000'000'000;

  // It gives way to `other`; its trace is about to end, or had none.
  void GiveWay(const CaptureId& other, uint64_t now_ns);
  // A trace of it ended by command, and the capture did not; what to say of it.
  Loss TraceStopped(uint64_t at_ns);
  // A trace of it began.
  std::optional<Loss> TraceStarted(uint64_t at_ns);
  // What has to be said now, a few times a second; with `is_last` all that there is.
  std::vector<Loss> Take(uint64_t now_ns, bool is_last = false);

 private:
  std::vector<Loss> due_;
  std::optional<uint64_t> since_ns_;
  uint64_t told_ns_ = 0;  // up to here; 0: nothing
  CaptureId other_;
  std::string words_ = GivenWayWords(CaptureId());
};

}  // namespace neurontrace
