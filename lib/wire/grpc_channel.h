// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "lib/trace/access_limits.h"
#include "lib/wire/channel_security.h"

// gRPC as every program of neurontrace configures it: message limits of lib/trace/limits.h,
// keepalive so that a peer that vanished silently is noticed within half a minute, no HTTP proxies.
namespace neurontrace {

// Returns a channel to HOST:PORT, which connects with its first call and reconnects by itself.
// `security` must have passed CheckSecurity. Any thread.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelSecurity& security);

// Sets the limits of a server; its port is a ServerPort. A connection accepts no further calls
// after `connection_age_ms`, which gRPC varies by a tenth so that connections do not end together.
void ConfigureServer(grpc::ServerBuilder& builder,
                     int connection_age_ms = limits::kGrpcConnectionAgeMsMax);

}  // namespace neurontrace
