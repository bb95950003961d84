// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "trace/capture_begin.h"
#include "trace/capture_spec.h"
#include "trace/ids.h"

namespace neurontrace {

// What an agent is told to do: the fields of the messages of the same names. Plain values.
struct StartOrder {
  CaptureId capture_id;
  CaptureSpec spec;
  bool arm = false;                   // and begin nothing before a BeginOrder
  std::optional<CaptureBegin> begin;  // without `arm`: when; nothing: at once
};
struct BeginOrder {
  CaptureId capture_id;
  CaptureBegin begin;
};
struct StopOrder {
  CaptureId capture_id;
  uint64_t host_raw_ns = 0;  // 0: at once
};
using CaptureOrder = std::variant<StartOrder, BeginOrder, StopOrder>;

// A capture that an agent which has just connected has a part in.
struct ResumedCapture {
  StartOrder start;
  bool stopping = false;
  std::vector<WorkerIdentity> workers;  // of this agent, which have not come to an end in it
};

}  // namespace neurontrace
