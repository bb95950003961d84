// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/export_destination.h"
#include "cli/export_interrupt.h"
#include "cli/progress_line.h"

namespace neurontrace::cli {

// How the transfer of an export ended. If both statuses are OK and `done` is empty, the aggregator
// ended the stream too early.
struct Transferred {
  bool is_whole() const { return written.ok() && call.ok() && done.has_value(); }

  absl::Status written;  // of the destination
  grpc::Status call;
  std::optional<v1::ExportDone> done;
  bool is_interrupted = false;
  bool can_resume = false;  // the cause may pass, and then the rest can be transferred
  uint64_t bytes = 0;       // that exist at the destination
};

// Draws the share of the capture's chunks that are read; without a total there is no bar. Until the
// aggregator has repeated the `held_bytes` that exist here, the line ends with their number.
void DrawExportProgress(ProgressLine& line, const v1::ExportProgress& progress,
                        uint64_t held_bytes);

// Receives an export into a destination, in as many calls as necessary. If the aggregator or the
// network fails, it calls again and continues after the existing bytes, for
// Context::export_retry_ms after the last new byte. If the export has changed since, it restarts
// and reports that on stderr.
//
// The aggregator makes the export again for each call, compares its beginning with the hashes of
// the held files, and sends only the rest. One thread; blocks.
class ExportTransfer {
 public:
  // All of them must outlive it. `draws`: progress is shown on a terminal.
  ExportTransfer(Context& context, const v1::ExportRequest& request, ExportDestination& destination,
                 ExportInterrupt& interrupt, bool draws);

  // Transfers everything, or as much as possible. Called once.
  Transferred Run();

 private:
  // Makes one call and reads it to its end.
  Transferred Call();
  // Examines the existing files, so that the next call continues after them. Fails as
  // ExportDestination::Resume does.
  absl::Status Resume();
  // Decides after a call whether another one follows, and waits before it. Returns false if the
  // transfer must end in its state.
  bool TryAgain(Transferred& ended);
  // Removes what was received, because the export has changed.
  absl::Status Restart();
  // Passes one reply to the destination.
  absl::Status Take(const v1::ExportReply& reply);
  // Prints a remark on stderr, unless --quiet or JSON was asked for.
  void ReportProgress(const std::string& words);

  Context& context_;
  ExportDestination& destination_;
  ExportInterrupt& interrupt_;
  // The request with the held files of the next call.
  v1::ExportRequest asked_;
  ProgressLine line_;
  uint64_t held_bytes_ = 0;   // that existed before the current call
  uint64_t fresh_bytes_ = 0;  // of the current call
  // An aggregator has answered at least once, so its address is right.
  bool has_answered_ = false;
  std::string differs_;  // a file that has changed since it was received
  // Number of restarts because the export changed.
  int restart_count_ = 0;
  std::optional<std::chrono::steady_clock::time_point> broken_at_;  // no new byte since
  // The pause before the next call; doubles up to a limit.
  std::chrono::milliseconds pause_{};
};

}  // namespace neurontrace::cli
