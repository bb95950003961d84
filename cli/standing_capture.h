// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <string_view>

#include "cli/command.h"

// Flight recorders and watches: captures that are turned on and off by commands of their own.
namespace neurontrace::cli {

// A kind of them. The texts are static.
struct StandingKind {
  std::string_view noun;     // "flight recorder"
  std::string_view command;  // "flight-recorder"
  v1::CaptureMode mode = v1::CAPTURE_MODE_STREAM;
  bool is_watch = false;
};
inline constexpr StandingKind kFlightRecorderKind{"flight recorder", "flight-recorder",
                                                  v1::CAPTURE_MODE_FLIGHT_RECORDER, false};
inline constexpr StandingKind kWatchKind{"watch", "watch", v1::CAPTURE_MODE_CONTINUOUS, true};

// Lists those of a kind that are on; if a job is named, only those that record it. Returns the
// status of the call.
grpc::Status ListStanding(Context& context, const StandingKind& kind, const std::string& job,
                          v1::ListCapturesReply& found);

// Turns one off: the one with this id, or that of this job alone, or the only one. Refuses captures
// of another kind, which an id could name by mistake. Returns the exit code.
int TurnOffStanding(Context& context, const StandingKind& kind, const std::string& job,
                    const std::string& id);

}  // namespace neurontrace::cli
