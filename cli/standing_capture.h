// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "cli/capture_watch.h"
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

// Options of `off` and `status`.
struct StandingOptions {
  std::string id;         // of `off`
  std::string job;        // of `off`
  std::string shown_job;  // of `status`
};
void AddStandingOptions(const StandingKind& kind, CLI::App& off, CLI::App& status,
                        StandingOptions& options);

// Starts one, waits until its workers record, and prints it with --output json. Returns the exit
// code if nothing is left to print.
std::optional<int> StartStanding(Context& context, CaptureWatch& watch, const v1::CaptureSpec& spec,
                                 v1::Capture& capture);

// Lists those of a kind that are on; if a job is named, only those that record it. Returns the
// status of the call.
grpc::Status ListStanding(Context& context, const StandingKind& kind, const std::string& job,
                          v1::ListCapturesReply& found);

// Turns one off: the one with this id, or that of this job alone, or the only one. Refuses captures
// of another kind, which an id could name by mistake. Returns the exit code.
int TurnOffStanding(Context& context, const StandingKind& kind, const StandingOptions& options);

// Prints those that are on, each as `format` returns it. Returns kExitFailed if none is on,
// kExitIncomplete if one lacks a worker.
int ShowStanding(Context& context, const StandingKind& kind, const std::string& job,
                 absl::FunctionRef<std::string(const v1::Capture&)> format);

}  // namespace neurontrace::cli
