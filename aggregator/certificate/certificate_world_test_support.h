// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/certificate/make_certificate.h"
#include "lib/base/time_units.h"

namespace neurontrace {

inline WorkerIdentity Worker(uint32_t pid) {
  return {.instance_id = "i-a", .boot_id = "b", .pid = pid};
}

// A capture of one agent that has ended, with what the test puts into it.
struct CertificateWorld {
  CertificateWorld() {
    record.state = CaptureState::kComplete;
    record.started_realtime_ns = 1'000'000'000;
    record.stopped_realtime_ns = 2'000'000'000;
    record.ended_realtime_ns = 1'763'700'000 * kNsPerSecond;
    record.agents = {{.agent_id = "agent-a", .instance_id = "i-a", .finished = true}};
  }
  CaptureWorkerStatus& Status(uint32_t pid, CaptureWorkerState state) {
    record.workers.push_back({.worker = Worker(pid), .state = state});
    return record.workers.back();
  }
  StreamRecord& Stream(uint32_t pid, uint64_t events, std::vector<Loss> losses = {}) {
    StreamRecord& stream = streams.emplace_back();
    stream.number = static_cast<uint32_t>(streams.size());
    stream.identity = {.agent_id = "agent-a",
                       .worker = Worker(pid),
                       .kind = StreamKind::kNeuronCore,
                       .nc_idx = stream.number};
    stream.events = stream.captured = events;
    for (const Loss& loss : losses) {
      if (loss.place >= LossPlace::kAgentQueue) stream.captured += loss.events;
    }
    stream.losses = std::move(losses);
    stream.ended = true;
    return stream;
  }
  Certificate Make() const {
    return MakeCertificate({.record = record, .streams = streams, .workers = workers});
  }

  CaptureRecord record;
  std::vector<StreamRecord> streams;
  std::vector<WorkerInfo> workers;
};

}  // namespace neurontrace
