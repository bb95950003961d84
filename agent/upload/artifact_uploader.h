// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/source/artifact/artifact_sink.h"
#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"
#include "lib/base/task_runner.h"
#include "neurontrace/v1/artifact_gateway.grpc.pb.h"

namespace neurontrace {

// Searches for artifacts, reads them and sends them, one after the other, on a thread of its own.
//
// A file is read completely for its hash before it is offered; only content that the aggregator
// lacks is read again and sent, from where an interrupted call stopped. Before, between and after
// the two readings it has to be the same file with the same size and time of change, and the second
// reading has to have the hash of the first (the aggregator compares). Otherwise it is reported as
// changed, and nothing of it is kept. Hashes of files that have not changed are remembered. Nothing
// is retried here; see ArtifactSink::Fate.
// thread: artifacts: finds, hashes and sends artifacts, one at a time
class ArtifactUploader final : public ArtifactSink {
 public:
  // `runner` is the agent's sequence, where callbacks run; it outlives this.
  ArtifactUploader(std::shared_ptr<grpc::Channel> channel, std::string agent_id,
                   TaskRunner& runner);
  // Cancels the call that is under way, and joins the thread.
  ~ArtifactUploader() override;

  void Find(const std::vector<std::string>& roots, const std::string& instance_id,
            Found done) override;
  void Submit(const CaptureId& capture_id, const FoundArtifact& artifact, Done done) override;
  void Forgo(const CaptureId& capture_id, const FoundArtifact& artifact, const std::string& why,
             Done done) override;
  // Sends a content of the agent's own, which is in no file, at most limits::kArtifactPartBytesMax
  // long. It belongs to no inspect directory.
  void SubmitContent(const CaptureId& capture_id, const ArtifactPlace& place,
                     uint64_t made_realtime_ns, std::string content, Done done);

 private:
  // The table is emptied when it is full; the cost is one more reading of each file.
  static constexpr size_t kHashesKept = 10'000;

  // These functions run on the thread.
  Outcome Send(const CaptureId& capture_id, const FoundArtifact& artifact);
  // Returns the SHA-256 of the file, remembered or read. Fails with the disk's errors, and with
  // CANCELLED once this is being destroyed.
  absl::StatusOr<std::string> HashOf(const ArtifactFile& file, const FoundArtifact& artifact);
  // Sends the content of SubmitContent; fills the rest of the offer.
  Outcome SendContent(v1::ArtifactOffer offer, const std::string& content);
  // Reports a file that will not be kept.
  Outcome SendSkipped(const v1::ArtifactForgone& forgone);
  // Sends the content from `offset` on, which the aggregator named.
  Outcome Put(const ArtifactFile& file, const FoundArtifact& artifact,
              const v1::ArtifactOffer& offer, uint64_t offset);
  // Returns a context that the destructor cancels; null once that has begun.
  std::shared_ptr<grpc::ClientContext> NewContext();

  const std::unique_ptr<v1::ArtifactGateway::Stub> stub_;
  const std::string agent_id_;
  TaskRunner& runner_;
  // Used on the thread alone.
  std::map<std::string, std::pair<ArtifactFileState, std::string>> hashes_;  // by path
  Mutex mutex_;
  // Set by the destructor; no call is started after it, and the one under way is cancelled.
  bool ending_ NT_GUARDED_BY(mutex_) = false;
  std::weak_ptr<grpc::ClientContext> in_progress_ NT_GUARDED_BY(mutex_);
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
