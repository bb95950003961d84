// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "aggregator/access/auth_interceptor.h"
#include "lib/wire/peer_slots.h"

namespace neurontrace {

// An AuthInterceptor for the connections of one slot of a port (see lib/wire/peer_slots.h).
class SlotGuard final : public grpc::AuthMetadataProcessor {
 public:
  // `slots` knows the address of the peer in `slot`.
  SlotGuard(std::shared_ptr<AuthInterceptor> guard, std::shared_ptr<const PeerSlots> slots,
            size_t slot)
      : guard_(std::move(guard)), slots_(std::move(slots)), slot_(slot) {}

  // Returns whether gRPC judges calls on threads of its own that may wait, one call on each.
  // Without Kubernetes tokens a judgement takes microseconds and runs on gRPC's own threads.
  bool IsBlocking() const override { return guard_->can_wait(); }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    return guard_->Process(metadata, *context, [this] { return slots_->Describe(slot_); });
  }

 private:
  const std::shared_ptr<AuthInterceptor> guard_;
  const std::shared_ptr<const PeerSlots> slots_;
  const size_t slot_;
};

}  // namespace neurontrace
