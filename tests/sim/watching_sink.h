// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "agent/source/chunk_sink.h"
#include "tests/sim/sim_ledger.h"

namespace neurontrace {

// Tells the ledger of each row that an agent says it keeps.
class WatchingSink final : public ChunkSink {
 public:
  // Both outlive it.
  WatchingSink(ChunkSink& sink, SimLedger& ledger) : sink_(sink), ledger_(ledger) {}

  bool HasRoom(const CaptureId& capture_id) const override { return sink_.HasRoom(capture_id); }
  void Submit(Chunk chunk, Done done) override {
    std::vector<uint64_t> rows = ledger_.RowsOf(chunk);
    sink_.Submit(std::move(chunk), [&ledger = ledger_, rows = std::move(rows),
                                    done = std::move(done)](const Receipt& receipt) {
      if (receipt.fate == Fate::kKept) ledger.OnKept(rows);
      if (done) done(receipt);
    });
  }

 private:
  ChunkSink& sink_;
  SimLedger& ledger_;
};

}  // namespace neurontrace
