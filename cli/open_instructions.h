// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/command.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// Returns the right way to open an exported trace in one line, which depends on its size too; ""
// for formats other than Perfetto's. `path` is a file or directory of this machine; empty if the
// aggregator wrote to the request's destination. Called on the main thread.
std::string OpenInstructions(const v1::ExportRequest& request, const std::string& path);

// Prints that line after an export of this exit code to where results go, unless it produced
// nothing, went to a device, a pipe or standard output, or a script reads.
void PrintOpenInstructions(const Context& context, int exit_code, const v1::ExportRequest& request,
                           const std::string& path);

}  // namespace neurontrace::cli
