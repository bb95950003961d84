// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/command.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// The right way to open what an export has written, in one line; by its size, too. Empty where
// there is none to tell: of other formats than Perfetto's. `path` is a file or directory of this
// machine; empty where the aggregator wrote to the request's destination.
std::string HowToOpen(const v1::ExportRequest& request, const std::string& path);

// Says so behind an export of this exit code to where results go, unless nothing came of it, it
// went to a device, a pipe or standard output, or a script reads.
void SayHowToOpen(const Context& context, int exit_code, const v1::ExportRequest& request,
                  const std::string& path);

}  // namespace neurontrace::cli
