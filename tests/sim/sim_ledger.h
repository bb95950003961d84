// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/certificate/certificate.h"
#include "aggregator/store/store.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/decoded_chunk.h"
#include "tests/sim/sim_world.h"

namespace neurontrace {

// The truth about every row of a run, kept outside of everything that is tested, and the judge of
// the tested parts' reports. Rows are numbered from 1; the number travels as the event's id. One
// thread.
class SimLedger {
 public:
  enum class Fate : uint8_t {
    kInRuntime,      // in its core's ring
    kOverwritten,    // there, before it was fetched
    kDied,           // there, with its process
    kRefusedByTap,   // fetched, and no room in the tap's buffer
    kInTap,          // handed over: the agent can read it
    kTapMemoryLost,  // handed over, but nobody holds that memory any more
  };

  // `uncounted_max`: rows of one worker in one capture that a ring may overwrite before anything
  // could tell that they were there.
  SimLedger(SimWorld& world, uint64_t uncounted_max)
      : world_(world), uncounted_max_(uncounted_max) {}

  // --- What the workers do ---
  uint64_t Produce(const CaptureId& capture, const WorkerIdentity& worker, uint32_t core);
  void SetFate(uint64_t row, Fate fate);
  // What a worker left in memory is gone, and what nobody had read of it cannot be known.
  void OnMemoryLost(const WorkerIdentity& worker);
  // Records that an agent continued from an old state, as its disk took no removal: its loss is
  // reported, but its place and number cannot be.
  void OnWronglyResumed(const std::string& instance_id) { wrongly_resumed_.insert(instance_id); }

  // --- What the agents do ---
  std::vector<uint64_t> RowsOf(const Chunk& chunk);
  // An agent has promised that these survive it.
  void OnKept(const std::vector<uint64_t>& rows);

  // --- What the aggregator does ---
  // A chunk is in the store, as its writer says.
  void OnStored(const ChunkHeader& header, std::string_view columns);
  void OnAcknowledged(const CaptureId& capture, const StreamIdentity& stream,
                      uint64_t next_sequence);
  void OnDeleted(const CaptureId& capture) { deleted_[capture] = true; }
  // After a restart and at the end: what is really there, against what was said.
  void CompareWithStore(Store& store);
  // A capture has ended: its account against the truth.
  void CheckEnded(const CaptureRecord& record, Store& store);

  uint64_t rows() const { return rows_.size(); }
  uint64_t rows_stored() const { return stored_; }
  // By its certificate, once it has been checked.
  bool IsComplete(const CaptureId& capture) const { return complete_.contains(capture); }

 private:
  struct Row {
    uint32_t part = 0;  // index into parts_
    uint16_t core = 0;
    Fate fate = Fate::kInRuntime;
    uint8_t stored = 0;  // times
    bool kept = false;
  };
  // One worker in one capture.
  struct Part {
    CaptureId capture;
    WorkerIdentity worker;
    std::vector<uint64_t> rows;
    bool memory_lost = false;
  };
  using StreamKey = std::pair<CaptureId, StreamIdentity>;
  struct Stream {
    uint64_t stored_next = 0;  // said by the writer
    uint64_t acknowledged = 0;
  };
  struct Sums {
    uint64_t produced = 0, stored = 0, overwritten = 0, refused = 0, died = 0, memory_lost = 0,
             in_runtime = 0, in_tap = 0;
    // Overwritten behind the last row of their core that was fetched: no hole in any sequence
    // reports them. And those that only the tap's word of what it refused reports.
    uint64_t overwritten_last = 0, reported_only_by_tap = 0;
    uint64_t kept_missing = 0;  // kept by an agent, and not stored
  };

  void AddRows(const CaptureId& capture, const StreamIdentity& stream, uint64_t sequence,
               uint32_t columns_bytes, std::string_view columns);
  void ReadCapture(Store& store, const CaptureId& capture);
  Sums SumOf(const Part& part) const;
  void SumLast(const Part& part, Sums& sums) const;
  static bool IsGivenUp(const Certificate& certificate, const WorkerIdentity& identity);
  void CheckPart(const Certificate& certificate, const Part& part,
                 const std::vector<StreamRecord>& streams, bool finished);

  SimWorld& world_;
  const uint64_t uncounted_max_;
  std::vector<Row> rows_;
  std::vector<Part> parts_;
  std::set<std::string> wrongly_resumed_;  // instances
  std::map<std::pair<CaptureId, WorkerIdentity>, uint32_t> part_at_;
  std::map<StreamKey, Stream> streams_;
  std::map<CaptureId, bool> deleted_;
  std::set<CaptureId> complete_;
  uint64_t stored_ = 0;
  std::string uncompressed_;
  DecodedChunk decoded_;
};

}  // namespace neurontrace
