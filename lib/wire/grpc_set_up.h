// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace neurontrace {

// Called with each line of the libraries' logs.
using GrpcLogWriter = void (*)(std::string_view line);
// Called first by a program, before it or another thread uses gRPC or OpenSSL. Afterwards messages
// of gRPC and protobuf go to `write` instead of stderr: at most limits::kGrpcLogLinesPerSecond, as
// any client of a port can cause some, then the number of suppressed ones. `write` is called on any
// thread, one call at a time; null: messages are dropped.
void SetUpGrpc(GrpcLogWriter write);

// Called with OpenSSL's reason of a failure.
using HandshakeListener = std::function<void(std::string_view reason)>;
// Calls `listener` for each TLS handshake that fails, with OpenSSL's reason. gRPC 1.51 reports a
// failure only in its log (ssl_transport_security.cc), and without the peer. Called on any thread,
// one call at a time. With null no listener is called any more once this returns. Requires
// SetUpGrpc.
void SetHandshakeListener(HandshakeListener listener);

}  // namespace neurontrace
