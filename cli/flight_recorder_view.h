// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/worker_ranks.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// A flight recorder: which workers keep their rings, how large these are, since when, and what
// suspends it on some. Those where something is wrong come first. Pure.
std::string FormatFlightRecorder(const v1::Capture& capture, const WorkerRanks& ranks);

}  // namespace neurontrace::cli
