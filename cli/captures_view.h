// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "neurontrace/v1/operator_service.pb.h"

// Captures as lists for people. Pure functions.
namespace neurontrace::cli {

// One line each, of the newest `shown`; how many older ones there are.
std::string FormatCaptures(const v1::ListCapturesReply& reply, int shown);

// One line for each stream of a capture.
std::string FormatStreams(const v1::Capture& capture);

}  // namespace neurontrace::cli
