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

// How the transfer of an export ended.
struct Transferred {
  bool is_whole() const { return written.ok() && call.ok() && done.has_value(); }

  absl::Status written;  // of the destination
  grpc::Status call;
  std::optional<v1::ExportDone> done;
  bool is_interrupted = false;
  bool can_go_on = false;  // this may pass, and then the rest can be had
  uint64_t bytes = 0;      // that are there
};

// Receives an export into a destination, over as many calls as it takes: where the aggregator or
// the way to it goes away it asks again and continues behind what is there, for
// Context::export_retry_ms after the last new byte. Where what is there is not how the export
// begins any more, it restarts and says so on stderr. One thread; blocks.
class ExportTransfer {
 public:
  // All outlive it. `draws`: progress is shown on a terminal.
  ExportTransfer(Context& context, const v1::ExportRequest& request, ExportDestination& destination,
                 ExportInterrupt& interrupt, bool draws);

  Transferred Run();

 private:
  Transferred Call();
  // Looks at what is there, and has the next call go on behind it.
  absl::Status GoOn();
  // False when it is to end as it is.
  bool TryAgain(Transferred& ended);
  absl::Status BeginAnew();
  absl::Status Take(const v1::ExportReply& reply);
  void Draw(const v1::ExportProgress& progress);
  void Note(const std::string& words);

  Context& context_;
  ExportDestination& destination_;
  ExportInterrupt& interrupt_;
  v1::ExportRequest asked_;
  ProgressLine line_;
  uint64_t held_bytes_ = 0;   // of the call at hand: there before
  uint64_t fresh_bytes_ = 0;  // of the call at hand
  bool has_answered_ = false;
  std::string differs_;  // the file, where one is not as it is held
  int begun_anew_ = 0;
  std::optional<std::chrono::steady_clock::time_point> broken_at_;  // without a new byte since
  std::chrono::milliseconds pause_{};
};

}  // namespace neurontrace::cli
