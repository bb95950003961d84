// SPDX-License-Identifier: Apache-2.0
#include "aggregator/retention/export_leases.h"

#include <cassert>
#include <map>

#include "lib/base/mutex.h"

namespace neurontrace {

// A capture has leases or one claim, never both. Captures with neither have no entry.
struct ExportLeases::State {
  static constexpr int kClaimed = -1;

  Mutex mutex;
  std::map<CaptureId, int> held NT_GUARDED_BY(mutex);  // number of leases, or kClaimed
};

std::shared_ptr<ExportLeases::State> ExportLeases::MakeState() { return std::make_shared<State>(); }

ExportLeases::Lease ExportLeases::Take(const CaptureId& id) {
  const MutexLock lock(state_->mutex);
  const auto it = state_->held.try_emplace(id, 0).first;
  if (it->second == State::kClaimed) return nullptr;
  ++it->second;
  // The pointer is only a value that is not null; what matters is the deleter.
  return {it->first.bytes().data(), [state = state_, id](const void*) {
            const MutexLock lock(state->mutex);
            const auto it = state->held.find(id);
            assert(it != state->held.end() && it->second > 0);
            if (--it->second == 0) state->held.erase(it);
          }};
}

// Fails if there is any entry: a lease, or another claim.
ExportLeases::Claim ExportLeases::ClaimForDeletion(const CaptureId& id) {
  const MutexLock lock(state_->mutex);
  const auto [it, is_new] = state_->held.try_emplace(id, State::kClaimed);
  if (!is_new) return nullptr;
  return {it->first.bytes().data(), [state = state_, id](const void*) {
            const MutexLock lock(state->mutex);
            const auto it = state->held.find(id);
            assert(it != state->held.end() && it->second == State::kClaimed);
            state->held.erase(it);
          }};
}

}  // namespace neurontrace
