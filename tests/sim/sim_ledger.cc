// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_ledger.h"

#include <algorithm>
#include <set>

#include "aggregator/certificate/make_certificate.h"
#include "lib/trace/columns_compression.h"

namespace neurontrace {
namespace {

bool IsBeforeCapture(LossPlace place) {
  return place == LossPlace::kRuntimeRing || place == LossPlace::kTapBuffer;
}

}  // namespace

uint64_t SimLedger::Produce(const CaptureId& capture, const WorkerIdentity& worker, uint32_t core) {
  const auto [it, is_new] =
      part_at_.try_emplace({capture, worker}, static_cast<uint32_t>(parts_.size()));
  if (is_new) parts_.push_back({.capture = capture, .worker = worker});
  rows_.push_back({.part = it->second, .core = static_cast<uint16_t>(core)});
  parts_[it->second].rows.push_back(rows_.size());
  return rows_.size();
}

void SimLedger::SetFate(uint64_t row, Fate fate) { rows_[row - 1].fate = fate; }

void SimLedger::OnMemoryLost(const WorkerIdentity& worker) {
  for (Part& part : parts_) part.memory_lost = part.memory_lost || part.worker == worker;
}

void SimLedger::AddRows(const CaptureId& capture, const StreamIdentity& stream, uint64_t sequence,
                        uint32_t columns_bytes, std::string_view columns) {
  if (columns.empty()) return;
  const auto where = [&] {
    return fmt::format("chunk {} of {} in {}", sequence, ToString(stream), capture.ToString());
  };
  absl::Status status = UncompressColumns(columns, columns_bytes, uncompressed_);
  if (status.ok()) status = decoded_.Decode(uncompressed_, DecodedChunk::Attributes::kSkip);
  if (!status.ok()) {
    world_.trace.Violate("{} in the store is not readable: {}", where(), status.ToString());
    return;
  }
  for (const uint64_t id : decoded_.id()) {
    if (id == 0 || id > rows_.size()) {
      world_.trace.Violate("{} holds row {}, which nobody produced", where(), id);
      continue;
    }
    Row& row = rows_[id - 1];
    const Part& part = parts_[row.part];
    if (part.capture != capture || part.worker != stream.worker || row.core != stream.nc_idx) {
      world_.trace.Violate("{} holds row {} of another stream", where(), id);
    }
    if (row.stored++ > 0) {
      world_.trace.Violate("{} holds row {}, which is stored already", where(), id);
    } else {
      ++stored_;
    }
  }
}

std::vector<uint64_t> SimLedger::RowsOf(const Chunk& chunk) {
  if (chunk.columns.empty()) return {};
  absl::Status status = UncompressColumns(chunk.columns, chunk.header.columns_bytes, uncompressed_);
  if (status.ok()) status = decoded_.Decode(uncompressed_, DecodedChunk::Attributes::kSkip);
  if (!status.ok()) {
    world_.trace.Violate("a source gives a chunk that is not readable: {}", status.ToString());
    return {};
  }
  return {decoded_.id().begin(), decoded_.id().end()};
}

void SimLedger::OnKept(const std::vector<uint64_t>& rows) {
  for (const uint64_t id : rows) rows_[id - 1].kept = true;
}

void SimLedger::OnStored(const ChunkHeader& header, std::string_view columns) {
  Stream& stream = streams_[{header.capture_id, header.stream}];
  if (header.sequence < stream.stored_next) {
    world_.trace.Violate("chunk {} of {} was stored twice", header.sequence,
                         ToString(header.stream));
  }
  stream.stored_next = header.sequence + 1;
  AddRows(header.capture_id, header.stream, header.sequence, header.columns_bytes, columns);
}

void SimLedger::OnAcknowledged(const CaptureId& capture, const StreamIdentity& stream,
                               uint64_t next_sequence) {
  Stream& known = streams_[{capture, stream}];
  if (next_sequence > known.stored_next && !deleted_.contains(capture)) {
    world_.trace.Violate("{} is acknowledged up to {}, and stored up to {}", ToString(stream),
                         next_sequence, known.stored_next);
  }
  known.acknowledged = std::max(known.acknowledged, next_sequence);
}

void SimLedger::ReadCapture(Store& store, const CaptureId& capture) {
  const CaptureReader reader = store.OpenCapture(capture);
  const auto streams = reader.Streams();
  if (!streams.ok()) {
    world_.trace.Violate("the store cannot list streams: {}", streams.status().ToString());
    return;
  }
  for (const StreamRecord& record : *streams) {
    streams_[{capture, record.identity}].stored_next = record.next_sequence;
    const StreamReader stream = reader.Stream(record.number);
    uint64_t events = 0;
    auto it = stream.Index();
    for (; it.Valid(); it.Next()) {
      StoredChunk chunk;
      if (const absl::Status status = stream.ReadChunk(it.entry().sequence, chunk); !status.ok()) {
        world_.trace.Violate("{}", status.ToString());
        continue;
      }
      events += chunk.event_count();
      AddRows(capture, record.identity, it.entry().sequence, chunk.columns_bytes(),
              chunk.columns());
    }
    if (!it.status().ok()) world_.trace.Violate("{}", it.status().ToString());
    if (events != record.events) {
      world_.trace.Violate("{}: {} rows are stored, its record says {}", ToString(record.identity),
                           events, record.events);
    }
  }
}

void SimLedger::CompareWithStore(Store& store) {
  for (Row& row : rows_) row.stored = 0;
  stored_ = 0;
  for (auto& [key, stream] : streams_) stream.stored_next = 0;
  const auto captures = store.captures().List();
  if (!captures.ok()) {
    world_.trace.Violate("the store cannot list captures: {}", captures.status().ToString());
    return;
  }
  for (const CaptureRecord& capture : *captures) ReadCapture(store, capture.id);
  for (const auto& [key, stream] : streams_) {
    if (stream.stored_next >= stream.acknowledged || deleted_.contains(key.first)) continue;
    world_.trace.Violate("{} was acknowledged up to {}, and the store has it up to {}",
                         ToString(key.second), stream.acknowledged, stream.stored_next);
  }
}

SimLedger::Sums SimLedger::SumOf(const Part& part) const {
  Sums sums;
  for (const uint64_t id : part.rows) {
    const Row& row = rows_[id - 1];
    ++sums.produced;
    if (row.stored > 0) {
      ++sums.stored;
      continue;
    }
    if (row.kept) ++sums.kept_missing;
    switch (row.fate) {
      case Fate::kInRuntime:
        ++sums.in_runtime;
        break;
      case Fate::kOverwritten:
        ++sums.overwritten;
        break;
      case Fate::kDied:
        ++sums.died;
        break;
      case Fate::kRefusedByTap:
        ++sums.refused;
        break;
      case Fate::kInTap:
        ++sums.in_tap;
        break;
      case Fate::kTapMemoryLost:
        ++sums.memory_lost;
        break;
    }
  }
  SumLast(part, sums);
  return sums;
}

// Returns whether it reports a stream of the worker as abandoned: one that exists and has no end
// though its agent has finished.
bool SimLedger::IsGivenUp(const Certificate& certificate, const WorkerIdentity& identity) {
  for (const WorkerCertificate& worker : certificate.workers) {
    if (worker.worker != identity || worker.part != WorkerPart::kVanished) continue;
    if (!worker.account.lost_unknown) return false;
    return std::any_of(worker.streams.begin(), worker.streams.end(),
                       [](const StreamCertificate& stream) { return !stream.ended; });
  }
  return false;
}

void SimLedger::SumLast(const Part& part, Sums& sums) const {
  std::set<uint16_t> handed_over, fetched;  // cores
  for (auto id = part.rows.rbegin(); id != part.rows.rend(); ++id) {
    const Row& row = rows_[*id - 1];
    if (row.fate == Fate::kInTap || row.fate == Fate::kTapMemoryLost) handed_over.insert(row.core);
    if (handed_over.contains(row.core)) continue;
    if (row.fate == Fate::kRefusedByTap) fetched.insert(row.core);
    if (row.fate != Fate::kOverwritten && row.fate != Fate::kRefusedByTap) continue;
    ++(fetched.contains(row.core) ? sums.reported_only_by_tap : sums.overwritten_last);
  }
}

void SimLedger::CheckPart(const Certificate& certificate, const Part& part,
                          const std::vector<StreamRecord>& streams, bool finished) {
  const Sums truth = SumOf(part);
  uint64_t stored = 0;
  uint64_t reported_before = 0;
  uint64_t reported_after = 0;
  bool reported_unknown = false;
  for (const StreamRecord& stream : streams) {
    if (stream.identity.worker != part.worker) continue;
    stored += stream.events;
    for (const Loss& loss : stream.losses) {
      (IsBeforeCapture(loss.place) ? reported_before : reported_after) += loss.events;
      reported_unknown = reported_unknown || loss.events_unknown;
    }
  }
  const auto account = [&] {
    return fmt::format(
        "{} in {} ({}): produced {} = stored {} + overwritten {} + refused by the tap {} + died {} "
        "+ in lost memory {} + in a runtime {} + handed over and not stored {}; the store has {} "
        "and reports {} lost before the agent, {} behind, unknown: {}",
        ToString(part.worker), part.capture.ToString(),
        certificate.complete ? "complete" : "incomplete", truth.produced, truth.stored,
        truth.overwritten, truth.refused, truth.died, truth.memory_lost, truth.in_runtime,
        truth.in_tap, stored, reported_before, reported_after, reported_unknown);
  };
  if (stored != truth.stored)
    world_.trace.Violate("rows in the store do not add up: {}", account());
  if (reported_before + reported_after + stored > truth.produced) {
    world_.trace.Violate("losses are counted too high: {}", account());
  }
  // Of a worker that began while the aggregator was away and died with its agent nobody is left to
  // tell.
  const auto& workers = certificate.workers;
  const bool is_reported =
      !part.memory_lost || std::any_of(workers.begin(), workers.end(), [&](const auto& each) {
        return each.worker == part.worker;
      });
  const bool unknowable = is_reported && truth.died + truth.memory_lost + truth.in_runtime > 0;
  if (certificate.complete && (unknowable || truth.in_tap > 0)) {
    world_.trace.Violate("complete, but rows are gone that nobody reports: {}", account());
  }
  // The certificate says that it does not know how much is gone: only an upper bound is left.
  if (finished && IsGivenUp(certificate, part.worker)) {
    if (reported_after > truth.in_tap) {
      world_.trace.Violate("losses behind the agent are counted too high: {}", account());
    }
    return;
  }
  if (reported_unknown && wrongly_resumed_.contains(part.worker.instance_id)) return;
  if (finished && truth.kept_missing > reported_after) {
    world_.trace.Violate("{} rows that an agent had kept are gone, and nobody reports them: {}",
                         truth.kept_missing - reported_after, account());
  }
  if (!finished || part.memory_lost) return;
  // A tap says at the end of a trace what it refused; one that dies cannot.
  const uint64_t before = truth.overwritten + truth.refused;
  const uint64_t untellable =
      uncounted_max_ + truth.overwritten_last + (reported_unknown ? truth.reported_only_by_tap : 0);
  if (reported_before > before || reported_before + untellable < before) {
    world_.trace.Violate("losses before the agent are not exact: {}", account());
  }
  if (reported_after != truth.in_tap) {
    world_.trace.Violate("losses behind the agent are not exact: {}", account());
  }
}

void SimLedger::CheckEnded(const CaptureRecord& record, Store& store) {
  if (deleted_.contains(record.id)) return;
  const auto streams = store.OpenCapture(record.id).Streams();
  if (!streams.ok()) {
    world_.trace.Violate("the store cannot list streams: {}", streams.status().ToString());
    return;
  }
  const Certificate certificate =
      MakeCertificate({.record = record, .streams = *streams, .workers = {}});
  for (const Part& part : parts_) {
    if (part.capture != record.id) continue;
    const auto agent =
        std::find_if(record.agents.begin(), record.agents.end(),
                     [&](const auto& each) { return each.instance_id == part.worker.instance_id; });
    const bool finished = agent != record.agents.end() && agent->finished;
    CheckPart(certificate, part, *streams, finished);
  }
  if (certificate.complete) {
    complete_.insert(record.id);
  } else {
    complete_.erase(record.id);
  }
}

}  // namespace neurontrace
