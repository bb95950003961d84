// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/agent_gateway.h"
#include "aggregator/ingest/agent_reports.h"
#include "aggregator/ingest/artifact_service.h"
#include "aggregator/ingest/chunk_admission.h"
#include "aggregator/ingest/chunk_committer.h"
#include "aggregator/ingest/chunk_writer.h"
#include "aggregator/ingest/commit_observer.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/wire/call_admission.h"

namespace neurontrace {

// What agents send data to: the gRPC services for reports, chunks and artifacts, with the path of a
// chunk behind them, which is the budget, the validation and the one thread that writes. Builds,
// connects and owns these parts; accepts calls once its services are registered with a server.
// Owned by the aggregator.
class IngestService {
 public:
  // All of them must outlive this.
  struct Deps {
    TaskRunner& sequence;  // of the coordinator
    AgentReports& reports;
    AgentConnections& connections;
    Store& store;
    CommitObserver& observer;  // called on the writer's thread
    CallAdmission* admission;  // null: every call is served
    prometheus::Registry& registry;
    const Clock& clock;
  };

  // Starts the writer's thread.
  explicit IngestService(const Deps& deps);
  // Writes what was submitted, then ends the thread. The server must have ended before.
  ~IngestService();
  IngestService(const IngestService&) = delete;
  IngestService& operator=(const IngestService&) = delete;

  // The gRPC services, to be registered with a server that must end before this.
  AgentGateway& gateway() { return gateway_; }
  ArtifactService& artifacts() { return artifacts_; }
  // Returns the canaries of stored chunks. Any thread.
  CanaryAges& canary_ages() { return committer_.canary_ages(); }

 private:
  // Each may use those above it.
  IngestMetrics metrics_;
  IngestBudget budget_;
  ChunkAdmission door_;
  ChunkCommitter committer_;  // used by writer_ only, except for its canaries
  ChunkWriter writer_;
  AgentGateway gateway_;
  ArtifactService artifacts_;
};

}  // namespace neurontrace
