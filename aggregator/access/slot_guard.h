// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "aggregator/access/auth_interceptor.h"

namespace neurontrace {

// An AuthInterceptor for the connections of one slot of a port (see lib/wire/peer_slots.h).
class SlotGuard final : public grpc::AuthMetadataProcessor {
 public:
  // `from` returns the address of the slot's peer.
  SlotGuard(std::shared_ptr<AuthInterceptor> guard, std::function<std::string()> from)
      : guard_(std::move(guard)), from_(std::move(from)) {}

  // Returns whether gRPC judges calls on threads of its own that may wait, one call on each.
  // Without Kubernetes tokens a judgement takes microseconds and runs on gRPC's own threads.
  bool IsBlocking() const override { return guard_->may_wait(); }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    return guard_->Process(metadata, *context, from_);
  }

 private:
  const std::shared_ptr<AuthInterceptor> guard_;
  const std::function<std::string()> from_;
};

}  // namespace neurontrace
