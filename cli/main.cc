// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include "cli/command.h"

int main(int argc, char** argv) {
  neurontrace::cli::Context context;
  context.aggregator = "127.0.0.1:9400";
  context.make_stub = [](const neurontrace::cli::Context& c) {
    return neurontrace::v1::OperatorService::NewStub(grpc::CreateCustomChannel(
        c.aggregator, grpc::InsecureChannelCredentials(), grpc::ChannelArguments()));
  };
  return neurontrace::cli::RunCommandLine(argc, argv, context);
}
