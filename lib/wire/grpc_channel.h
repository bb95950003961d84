// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "lib/trace/access_limits.h"
#include "lib/wire/channel_security.h"

// gRPC as every program of neurontrace sets it up: message limits of lib/trace/limits.h, keepalive
// so that a peer that vanished without a word is noticed within half a minute, no HTTP proxies.
namespace neurontrace {

// `security` has passed CheckSecurity.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelSecurity& security);

// The limits of a server. Its port is a ServerPort. A connection takes no further calls after
// `connection_age_ms`, a tenth more or less.
void ConfigureServer(grpc::ServerBuilder& builder,
                     int connection_age_ms = limits::kGrpcConnectionAgeMsMax);

}  // namespace neurontrace
