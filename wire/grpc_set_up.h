// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace neurontrace {

// What a program does first, before it or another thread uses gRPC or OpenSSL. From then on what
// gRPC and protobuf have to complain of goes to `write` instead of stderr: at most ten lines a
// second, as every stranger at a port can cause some, and then how many were left out. `write` is
// called on any thread, one at a time; null: nobody hears of it.
using GrpcLogWriter = void (*)(std::string_view line);
void SetUpGrpc(GrpcLogWriter write);

}  // namespace neurontrace
