// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/agent_reports.h"
#include "aggregator/ingest/chunk_committer.h"
#include "aggregator/ingest/chunk_writer.h"
#include "aggregator/ingest/commit_observer.h"
#include "aggregator/ingest/control_exchange.h"
#include "aggregator/ingest/upload_exchange.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/session/fake_session_environment.h"
#include "aggregator/store/store.h"
#include "lib/trace/limits.h"
#include "tests/sim/crash_env.h"
#include "tests/sim/sim_ledger.h"
#include "tests/sim/sim_network.h"

namespace neurontrace {

// One life of the aggregator's process: what Aggregator builds, on the world's time, with the
// network and the writer's thread played. Destroying it is kill -9: nothing is said and nothing
// written any more.
class SimAggregator final : public SimServer,
                            private SessionStorage,
                            private CommitObserver,
                            private ChunkReceiver {
 public:
  static constexpr char kStorePath[] = "/store";
  struct Options {
    size_t budget_bytes = limits::kIngestBytesInFlightMax;
    uint64_t commit_ns = 2'000'000;  // from a chunk's arrival at the writer to its group's commit
    // Returns a writer that takes the chunks in place of the given one, and may pass them to it;
    // for simulations that are to fail.
    std::function<std::unique_ptr<ChunkReceiver>(ChunkReceiver&, IngestBudget&)> wrap_writer;
  };

  // A disk's files after a first start that has written nothing but its store: most of the time of
  // a short run goes into making them.
  static CrashDisk::Contents NewStore();

  // Opens the store in kStorePath of `env`, which outlives it.
  static absl::StatusOr<std::unique_ptr<SimAggregator>> Start(SimWorld& world, SimLedger& ledger,
                                                              rocksdb::Env* env,
                                                              const Options& options);
  ~SimAggregator() override;

  void AcceptUpload(std::shared_ptr<UploadSimCall> call, const std::string& agent_id) override;
  void AcceptControl(std::shared_ptr<ControlSimCall> call) override;

  Coordinator& coordinator() { return *coordinator_; }
  Store& store() { return *store_; }
  // As Aggregator::LookAtStore: its store takes no writes, and only opening it again can help.
  bool CannotContinue() const;
  size_t bytes_in_flight() const { return budget_.bytes(); }
  // Slow disks commit late.
  void SetCommitNs(uint64_t ns) { options_.commit_ns = ns; }

 private:
  SimAggregator(SimWorld& world, SimLedger& ledger, std::unique_ptr<Store> store,
                const Options& options);
  absl::Status Restore();
  void OnWriteHealth(const absl::Status& status) override;
  absl::Status PutCapture(const CaptureRecord& record, bool durable) override;
  void RememberAgent(const KnownAgent& agent) override;
  void RememberWorker(const std::string& agent_id, const WorkerInfo& worker) override;
  void Tick();
  void Submit(ReceivedChunk chunk, Done done) override;
  void Commit();

  SimWorld& world_;
  SimLedger& ledger_;
  Options options_;
  ProcessRunner runner_;
  prometheus::Registry registry_;
  IngestMetrics metrics_{registry_};
  std::unique_ptr<Store> store_;
  AgentConnections connections_;
  UnalignedClocks clocks_;
  UnlimitedQuota quota_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<AgentReports> reports_;
  IngestBudget budget_;
  ChunkAdmission door_;
  ChunkCommitter committer_;
  std::unique_ptr<ChunkReceiver> wrapped_writer_;  // null: chunks come straight to this
  ChunkCommitter::Group gathering_;
  bool commit_due_ = false;
  uint64_t store_failing_since_ns_ = 0;
};

}  // namespace neurontrace
