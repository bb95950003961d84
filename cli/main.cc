// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "lib/base/standard_streams.h"
#include "lib/wire/grpc_channel.h"
#include "lib/wire/grpc_set_up.h"

int main(int argc, char** argv) {
  // Opens descriptors 0 to 2 if the caller has closed them, so that no other file gets their
  // numbers.
  neurontrace::OpenStandardDescriptors();
  // Commands report errors of calls themselves, so gRPC's own log is dropped.
  neurontrace::SetUpGrpc(nullptr);
  neurontrace::cli::Context context;
  context.aggregator = "127.0.0.1:9400";
  context.config_places = neurontrace::cli::UsualConfigPlaces();
  context.make_stub = [](const neurontrace::cli::Context& chosen) {
    return neurontrace::v1::OperatorService::NewStub(
        neurontrace::MakeChannel(chosen.aggregator, chosen.security));
  };
  return neurontrace::cli::RunCommandLine(argc, argv, context);
}
