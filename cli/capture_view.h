// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"

// How captures read, shared by the commands that show them.
namespace neurontrace::cli {

std::string WorkerStateName(v1::WorkerState state);
std::string CaptureStateName(v1::CaptureState state);

bool HasEnded(const v1::Capture& capture);

// What it is, warnings, and its certificate.
std::string FormatCapture(const v1::Capture& capture);

// For scripts: fields that JSON cannot show as people know them (raw ids) are left out.
std::string FormatCaptureJson(const v1::Capture& capture);

// 0, 1 or 3: a capture that matched no worker failed; one that ended with something missing is
// incomplete.
ExitCode ExitCodeOf(const v1::Capture& capture);

// Every unary call is given this long.
void SetDeadline(grpc::ClientContext& call, const Context& context);

grpc::Status GetCapture(Context& context, const std::string& id, v1::Capture& capture);

}  // namespace neurontrace::cli
