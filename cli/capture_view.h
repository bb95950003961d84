// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/statusor.h"
#include "cli/certificate_view.h"
#include "cli/command.h"
#include "cli/worker_ranks.h"

// How captures read, shared by the commands that show them.
namespace neurontrace::cli {

std::string WorkerStateName(v1::WorkerState state);
std::string CaptureStateName(v1::CaptureState state);

bool HasEnded(const v1::Capture& capture);

// "capture", "flight recorder", "snapshot" …
std::string CaptureModeName(v1::CaptureMode mode);
// "ticket=4711 why=slow"
std::string FormatLabels(const v1::CaptureSpec& spec);

enum class CaptureDetail {
  kShort,  // of a complete capture only the verdict of its certificate
  kWhole,
};

// What it is, warnings, the outcome of each worker, and its certificate. kWhole: also a line for
// each job; of an ended capture the outcome only of workers with something to say about, as the
// certificate has a line for each.
std::string FormatCapture(const v1::Capture& capture, const WorkerRanks& ranks,
                          CaptureDetail detail, const CertificateView& view = {});

// For scripts: fields that JSON cannot show as people know them (raw ids) are left out.
std::string FormatCaptureJson(const v1::Capture& capture);
v1::Capture WithoutRawIds(v1::Capture capture);

// 1: it matched no worker, or did not begin. 3: something is missing, a worker that was selected
// has no part in it, or falls short of what was asked for. Else 0. Of one that
// continues: as it is so far.
ExitCode ExitCodeOf(const v1::Capture& capture);

// Every unary call is given this long.
void SetDeadline(grpc::ClientContext& call, const Context& context);

grpc::Status GetCapture(Context& context, const std::string& id, v1::Capture& capture);
grpc::Status StopCapture(Context& context, const std::string& id, v1::Capture& capture);

}  // namespace neurontrace::cli
