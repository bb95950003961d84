// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

// gRPC as every program of neurontrace sets it up: message limits of trace/limits.h, keepalive so
// that a peer that vanished without a word is noticed within half a minute, no HTTP proxies.
namespace neurontrace {

// Who may read the connection. Plain text only, so far.
struct ChannelSecurity {};

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelSecurity& security);

// Adds the listening port (`*bound_port` is set once the server has started) and the limits.
void ConfigureServer(grpc::ServerBuilder& builder, const std::string& address,
                     const ChannelSecurity& security, int* bound_port);

}  // namespace neurontrace
