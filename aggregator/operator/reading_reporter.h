// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "aggregator/operator/capture_explainer.h"
#include "aggregator/operator/streaming_call_limiter.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Sends each percent of a reading to the client of a call, and ends the reading when the client
// leaves. On the thread of that call.
class ReadingReporter final : public ExplainObserver {
 public:
  // `writer` may be null; all must outlive this.
  ReadingReporter(grpc::ServerContext& context, StreamingCallLimiter::Call& call,
                  grpc::ServerWriter<v1::ExplainReply>* writer)
      : context_(context), call_(call), writer_(writer) {}

  bool OnRead(uint64_t chunks_read, uint64_t chunks_total) override {
    if (context_.IsCancelled()) return false;
    const uint64_t percent = chunks_total == 0 ? 0 : chunks_read * 100 / chunks_total;
    if (writer_ == nullptr || percent == percent_) return true;
    percent_ = percent;
    v1::ExplainReply reply;
    reply.mutable_progress()->set_chunks_read(chunks_read);
    reply.mutable_progress()->set_chunks_total(chunks_total);
    return call_.Write([&] { return writer_->Write(reply); });
  }

 private:
  grpc::ServerContext& context_;
  StreamingCallLimiter::Call& call_;
  grpc::ServerWriter<v1::ExplainReply>* const writer_;
  uint64_t percent_ = UINT64_MAX;  // that was sent
};

}  // namespace neurontrace
