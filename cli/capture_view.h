// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/certificate_view.h"
#include "cli/command.h"
#include "cli/worker_ranks.h"

// Texts about captures, shared by the commands that show them. Pure functions, except for the calls
// at the end, which block the main thread.
namespace neurontrace::cli {

// Return states as texts; "unknown" for a state of a later version.
std::string WorkerStateName(v1::WorkerState state);
std::string CaptureStateName(v1::CaptureState state);

// Returns whether the capture is in a final state.
bool HasEnded(const v1::Capture& capture);

// Returns "capture", "flight recorder", "snapshot", "continuous" or "preview".
std::string CaptureModeName(v1::CaptureMode mode);
// Returns the tags of a capture: those of its start as KEY=VALUE, then those that were added later.
std::vector<std::string> TagsOf(const v1::Capture& capture);
// Returns them as one text: "ticket=4711, why=slow, baseline".
std::string FormatTags(const v1::Capture& capture);

// How much FormatCapture shows; kWhole includes every job and the whole certificate.
enum class CaptureDetail {
  kShort,  // of a complete capture only the verdict of its certificate
  kWhole,
};

// Returns the facts of a capture, warnings, the outcome of each worker, and its certificate. With
// kWhole also a line for each job; of an ended capture the outcome only of workers with something
// to report, as the certificate has a line for each.
std::string FormatCapture(const v1::Capture& capture, const WorkerRanks& ranks,
                          CaptureDetail detail, const CertificateView& view = {});

// Returns why the aggregator's store takes no data, since when, how much room there is, and where
// the data is meanwhile. One line without its end.
std::string DescribeStoreProblem(const v1::StoreProblem& problem);

// Returns JSON for scripts, without fields that JSON cannot show as people know them (raw ids).
std::string FormatCaptureJson(const v1::Capture& capture);
// Removes these fields: the runtime's capture ids, and the settings of a flight recorder.
v1::Capture WithoutRawIds(v1::Capture capture);

// Returns 1 if the capture matched no worker or did not begin; 3 if something is missing, a
// selected worker has no part in it, or it falls short of what was asked for; else 0. For a running
// capture: by its current state.
ExitCode ExitCodeOf(const v1::Capture& capture);

// Sets the timeout of a unary call, --connect-timeout-ms from now, and makes it wait for a server
// that is just starting. Not for streams.
void SetDeadline(grpc::ClientContext& call, const Context& context);

// Make one call each, with SetDeadline. `id` may be a unique prefix. Return the aggregator's
// status; `capture` is valid only if it is OK.
grpc::Status GetCapture(Context& context, const std::string& id, v1::Capture& capture);
grpc::Status StopCapture(Context& context, const std::string& id, v1::Capture& capture);

}  // namespace neurontrace::cli
