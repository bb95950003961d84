// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/ingest_service.h"

#include "lib/trace/limits.h"

namespace neurontrace {

IngestService::IngestService(const Deps& deps)
    : metrics_(deps.registry),
      budget_(limits::kIngestBytesInFlightMax, &metrics_),
      committer_(deps.store.chunks(), budget_, metrics_, deps.clock, deps.observer),
      writer_(committer_),
      gateway_({deps.sequence, deps.reports, deps.connections},
               {.door = door_, .writer = writer_, .budget = budget_, .metrics = metrics_},
               deps.admission),
      artifacts_(deps.store.artifacts(), deps.sequence, deps.registry, deps.admission) {}

IngestService::~IngestService() = default;

}  // namespace neurontrace
