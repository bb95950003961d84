// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// What a capture would cost, in lines for people, and why it would be refused where it would. Pure.
std::string FormatPreview(const v1::Capture& capture);

}  // namespace neurontrace::cli
