// SPDX-License-Identifier: Apache-2.0
#include "lib/health/sessions.h"

#include "lib/health/http_session.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {

Sessions::Place Sessions::Add(const std::shared_ptr<Session>& session,
                              std::shared_ptr<Session>& too_many) {
  const MutexLock lock(mutex_);
  const Place place = sessions_.insert(sessions_.end(), session);
  if (sessions_.size() > limits::kHealthConnectionsMax) {
    // The weak pointer is empty if that session is being destroyed already.
    too_many = sessions_.front().lock();
    // The chosen session moves behind the others, so that it is not chosen a second time before it
    // is gone.
    sessions_.splice(place, sessions_, sessions_.begin());
  }
  return place;
}

void Sessions::Remove(Place place) {
  const MutexLock lock(mutex_);
  sessions_.erase(place);
}

}  // namespace neurontrace
