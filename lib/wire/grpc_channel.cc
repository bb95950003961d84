// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/grpc_channel.h"

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// A vanished peer is noticed after the two together, half a minute.
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kConnectTimeoutMs = 5'000;
constexpr int kReconnectMaxMs = 5'000;
constexpr int kResolveRetryMs = 5'000;

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelSecurity& security) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kGrpcMessageBytesMax));
  arguments.SetMaxSendMessageSize(static_cast<int>(limits::kGrpcMessageBytesMax));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // gRPC would otherwise stop its keepalive pings after two without data.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Despite its name this is the time that one attempt gets: a busy or distant server needs more
  // than the first backoff.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  // A server that moved is found by its name; by default gRPC resolves it again only after 30 s.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kResolveRetryMs);
  // A proxy for the web, which many clusters set in the environment, must not see this traffic.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Channels of one process to one address must not share a connection: small messages would queue
  // behind bulk data.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!security.server_name.empty()) {
    arguments.SetSslTargetNameOverride(security.server_name);
  }
  return grpc::CreateCustomChannel(address, MakeClientCredentials(security), arguments);
}

void ConfigureServer(grpc::ServerBuilder& builder, int connection_age_ms) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits::kGrpcMessageBytesMax));
  builder.SetMaxSendMessageSize(static_cast<int>(limits::kGrpcMessageBytesMax));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Accepts the clients' pings at half of their interval; a server closes connections that ping too
  // often.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kKeepaliveMs / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kGrpcStreamsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, limits::kGrpcMetadataBytesMax);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, limits::kGrpcHandshakeMsMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, limits::kGrpcConnectionIdleMsMax);
  // Without GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS calls in progress may continue.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, connection_age_ms);
}

}  // namespace neurontrace
