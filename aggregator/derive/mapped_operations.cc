// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/mapped_operations.h"

#include <algorithm>
#include <tuple>

namespace neurontrace {
namespace {

// Returns whether the operation ran on the call's thread; false if that is not known.
bool IsOn(const MappedOperations::Operation& operation, const MappedOperations::Call& call) {
  return call.thread_id == operation.thread_id;
}

// Returns whether the operation encloses the call on its thread.
bool Encloses(const MappedOperations::Operation& operation, const MappedOperations::Call& call) {
  return IsOn(operation, call) && operation.end_ns > call.start_ns &&
         operation.end_ns >= call.end_ns;
}

}  // namespace

void MappedOperations::Map(uint32_t worker, uint64_t nrta_seq_id, uint64_t number) {
  mapped_.push_back({worker, nrta_seq_id, number});
}

// The vector is sorted, so the numbers of a sequence are together, the lowest first.
void MappedOperations::KeepRecent() {
  auto kept = mapped_.begin();
  size_t of_sequence = 0;
  for (const Mapped& mapped : mapped_) {
    const bool is_next = kept == mapped_.begin() || kept[-1].worker != mapped.worker ||
                         kept[-1].nrta_seq_id != mapped.nrta_seq_id;
    if (is_next) of_sequence = 0;
    if (of_sequence == kPerSequenceMax) {
      ++forgotten_;
      continue;
    }
    ++of_sequence;
    *kept++ = mapped;
  }
  mapped_.erase(kept, mapped_.end());
}

void MappedOperations::Settle() {
  // Sorted vectors instead of hash tables: nothing is added later, and a million entries stay
  // small.
  std::sort(mapped_.begin(), mapped_.end());
  // Duplicates must not count against kPerSequenceMax.
  mapped_.erase(std::unique(mapped_.begin(), mapped_.end()), mapped_.end());
  KeepRecent();
  numbers_.reserve(mapped_.size());
  for (const Mapped& mapped : mapped_) numbers_.emplace_back(mapped.worker, mapped.number);
  std::sort(numbers_.begin(), numbers_.end());
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
}

// Serves as a cheap test before an operation is kept: most numbers of a framework are in no
// mapping.
bool MappedOperations::Names(uint32_t worker, uint64_t number) const {
  return std::binary_search(numbers_.begin(), numbers_.end(), Number(worker, number));
}

// Operations come in the order of their starts, so the first one is the oldest.
void MappedOperations::Observe(uint32_t worker, uint64_t number, const Operation& operation) {
  const auto [seen, is_new] = seen_.try_emplace({worker, number});
  if (seen->second.size() == kPerNumberMax) seen->second.erase(seen->second.begin());
  seen->second.push_back(operation);
  if (!is_new) return;
  in_order_.emplace_back(worker, number);
  if (in_order_.size() <= kSeenMax) return;
  seen_.erase(in_order_.front());
  in_order_.pop_front();
  ++forgotten_;
}

// The best operation of each number is chosen on its own: a sequence may have been submitted for
// several.
bool MappedOperations::Find(uint32_t worker, uint64_t nrta_seq_id, const Call& call,
                            std::vector<Cause>& causes) const {
  causes.clear();
  auto at = std::lower_bound(mapped_.begin(), mapped_.end(), Mapped{worker, nrta_seq_id, 0});
  bool is_mapped = false;
  for (; at != mapped_.end() && at->worker == worker && at->nrta_seq_id == nrta_seq_id; ++at) {
    is_mapped = true;
    const auto seen = seen_.find({worker, at->number});
    if (seen == seen_.end()) continue;
    const Operation* best = nullptr;
    const auto rank = [&call](const Operation& operation) {
      // Of those that enclose the call, the latest to start is the innermost.
      return std::tuple(Encloses(operation, call), IsOn(operation, call), operation.start_ns);
    };
    for (const Operation& operation : seen->second) {
      if (operation.start_ns > call.start_ns) continue;
      if (best == nullptr || rank(*best) <= rank(operation)) best = &operation;
    }
    if (best != nullptr) {
      causes.push_back({best->chain, best->start_ns, IsOn(*best, call), Encloses(*best, call)});
    }
  }
  return is_mapped;
}

}  // namespace neurontrace
