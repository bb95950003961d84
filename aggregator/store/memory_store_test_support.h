// SPDX-License-Identifier: Apache-2.0
// For tests of what is read of a store, in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "aggregator/store/store.h"

namespace neurontrace {

inline std::unique_ptr<Store> OpenInMemory() {
  return Store::Open("/store", {.in_memory = true}).value();
}

inline PutResult PutOne(Store& store, const ReceivedChunk& chunk) {
  const auto results = store.chunks().PutBatch({&chunk, 1});
  EXPECT_TRUE(results.ok()) << results.status();
  return results->front();
}

inline std::vector<uint64_t> IndexedSequences(ChunkIndexIterator it) {
  std::vector<uint64_t> sequences;
  for (; it.Valid(); it.Next()) sequences.push_back(it.entry().sequence);
  EXPECT_TRUE(it.status().ok()) << it.status();
  return sequences;
}

}  // namespace neurontrace
