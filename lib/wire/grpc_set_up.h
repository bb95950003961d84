// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace neurontrace {

// What a program does first, before it or another thread uses gRPC or OpenSSL. From then on what
// gRPC and protobuf have to complain of goes to `write` instead of stderr: at most ten lines a
// second, as every stranger at a port can cause some, and then how many were left out. `write` is
// called on any thread, one at a time; null: nobody hears of it.
using GrpcLogWriter = void (*)(std::string_view line);
void SetUpGrpc(GrpcLogWriter write);

// Calls `listener` for each TLS handshake that fails, with OpenSSL's words: gRPC 1.51 says so in
// its log alone (ssl_transport_security.cc), and not whose it was. Any thread, one call at a time;
// null: nobody listens, and no call is under way once this returns. Of a program that SetUpGrpc has
// set up.
using HandshakeListener = std::function<void(std::string_view reason)>;
void SetHandshakeListener(HandshakeListener listener);

}  // namespace neurontrace
