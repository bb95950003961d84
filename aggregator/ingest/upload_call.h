// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "aggregator/ingest/chunk_door.h"
#include "aggregator/ingest/chunk_writer.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/ingest/upload_acks.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"

namespace neurontrace {

// What every Upload call uses; outlives them all.
struct UploadDeps {
  ChunkDoor& door;
  ChunkWriter& writer;
  IngestBudget& budget;
  IngestMetrics& metrics;
};

// One agent's Upload call. Messages are validated on gRPC's threads, several of one call at once,
// and handed to the writer in the order they came; answers go back as the writer gives results.
//
// Owns itself: it goes when gRPC has said OnDone and the writer has answered everything. gRPC's own
// calls are made without the lock.
class UploadCall final : public grpc::ServerBidiReactor<v1::ChunkEnvelope, v1::UploadAck>,
                         public std::enable_shared_from_this<UploadCall> {
 public:
  static UploadCall* Begin(const UploadDeps& deps, grpc::CallbackServerContext* context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // A message from its arrival until all before it have gone to the writer.
  struct Arrival {
    v1::ChunkEnvelope envelope;
    std::optional<absl::StatusOr<ReceivedChunk>> verdict;
    std::optional<uint64_t> sequence;  // where the header of a refused one can be read
    size_t bytes = 0;
  };
  // What is to be done once the lock is let go.
  struct Next {
    bool want_read = false;
    bool write = false;
    bool finish = false;
  };

  UploadCall(const UploadDeps& deps, std::string agent_id);
  void Judge(Arrival& arrival);
  void OnRoom();
  void HandOver();
  void OnResult(uint32_t stream_ref, uint64_t sequence, const absl::StatusOr<PutResult>& result);
  void CountRefusal(const absl::StatusOr<PutResult>& result);
  Next Plan();  // with the lock
  void Act(const Next& next);

  const UploadDeps deps_;
  const std::string agent_id_;
  std::shared_ptr<UploadCall> self_;  // until OnDone
  v1::ChunkEnvelope incoming_;        // gRPC's while reading_
  v1::UploadAck outgoing_;            // gRPC's while writing_

  std::mutex mutex_;
  // All guarded by mutex_:
  std::deque<std::unique_ptr<Arrival>> arrivals_;  // in order
  UploadAcks acks_;
  size_t at_writer_ = 0;
  bool handing_over_ = false;  // one thread at a time, so that the order stays
  bool asking_ = false;        // for room in the budget
  bool reading_ = false;
  bool writing_ = false;
  bool all_read_ = false;  // the agent has ended its side, or is gone
  bool cancelled_ = false;
  bool finished_ = false;
  grpc::Status finish_status_;
};

}  // namespace neurontrace
