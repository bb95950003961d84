// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/source/canary_watch.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss_table.h"

namespace neurontrace {

// Returns why readiness fails, for /readyz: a stream whose canaries are not acknowledged for longer
// than limits::kCanaryAgeMaxNs. Nothing while data flows.
std::optional<std::string> DescribeStall(const CanaryWatch& watch, uint64_t now_ns);

// Counters of the sources of one agent. Written on the agent's sequence and read by any thread, but
// for the members that say otherwise. All but `workers` only grow. docs/operator/metrics.md
// describes the metrics.
struct AgentSourceMetrics {
  using Counter = std::atomic<uint64_t>;

  // Events and chunks.
  Counter documents{0};
  Counter document_bytes{0};
  Counter events_decoded{0};
  Counter events_filtered{0};   // decoded, but not selected by the capture
  Counter events_left_out{0};   // decoded, and left out to stay within a budget
  Counter fidelity_changes{0};  // of a worker in a capture with a budget
  Counter suspensions{0};       // of a standing capture, in a worker
  // A report that was not recorded, as it has no begin, or an end before that.
  Counter suspension_reports_dropped{0};
  Counter events_unfit{0};             // beyond a limit: lost
  Counter documents_malformed{0};      // their rest is lost, in unknown number
  Counter document_bytes_repaired{0};  // were not UTF-8
  Counter events_skipped{0};           // read again after a restart, already stored
  Counter events_after_end{0};         // came for a stream that had ended: lost
  Counter chunks{0};
  Counter chunk_bytes{0};
  Counter chunks_refused{0};
  Counter losses{0};  // events in losses of a known number

  // Taps.
  Counter taps_connected{0};
  Counter taps_refused{0};           // identity, descriptors or buffer not acceptable, or too many
  Counter taps_misbehaved{0};        // disconnected for what they wrote
  Counter tap_accepts_put_off{0};    // as what taps sent could not be closed
  Counter tap_documents_refused{0};  // fetched, and no room for them in the shared buffer: lost
  Counter tap_fetches_deferred{0};   // postponed because there was no room
  Counter tap_fetches_failed{0};     // the runtime answered with an error
  Counter workers_removed{0};
  Counter records_unknown{0};  // of a type or capture this agent does not know
  Counter reads_waiting{0};    // turns that did not read because the queue had no room

  // Annotations.
  Counter annotators_connected{0};
  Counter annotations_recorded{0};       // of one capture each
  Counter annotations_dropped{0};        // in their process, which had no room
  Counter annotation_ends_unmatched{0};  // of ranges whose begin is not in the capture

  // The host.
  Counter host_samples{0};          // of one capture each
  Counter host_readings_failed{0};  // the next interval is the longer for it

  // Framework traces on demand.
  Counter kineto_datagrams{0};          // of Kineto's clients
  Counter kineto_datagrams_refused{0};  // malformed, without a process, or not from the directory
  Counter kineto_clients_refused{0};    // beyond the limit: not asked to record
  Counter kineto_orders{0};             // to record, given to workers
  Counter kineto_answers_failed{0};     // the worker's socket did not take them
  Counter kineto_sockets_removed{0};    // of workers that have ended
  Counter xla_orders{0};                // to record, given to XLA's servers in workers
  Counter xla_traces{0};                // received as answers and saved
  Counter xla_orders_failed{0};         // refused, broken, or answered with what was not kept

  // Artifacts.
  Counter artifacts_kept{0};            // by the aggregator, whole
  Counter artifacts_changed{0};         // while they were read: tried again
  Counter artifacts_refused{0};         // by the aggregator
  Counter artifacts_given_up{0};        // not handed over by the end of their capture
  Counter artifact_looks_cut_short{0};  // there was more than is looked at

  Counter workers{0};  // at hand now

  // On the agent's sequence alone:
  LossTable losses_by_place;  // as `losses`
  LossTable losses_unknown;   // losses of an unknown number; each counts 1

  Counter canaries{0};       // sent
  CanaryWatch canary_watch;  // on the agent's sequence alone

  // Relaxed, as no other memory depends on a counter.
  static void Add(Counter& counter, uint64_t by = 1) {
    counter.fetch_add(by, std::memory_order_relaxed);
  }
};

}  // namespace neurontrace
