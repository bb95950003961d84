// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>

#include "lib/base/mutex.h"

namespace neurontrace {

class Session;

// The existing sessions, oldest first, to find the one to close if there are too many. Owned by
// HttpServer; any thread.
class Sessions {
 public:
  // A session's entry, valid until Remove.
  using Place = std::list<std::weak_ptr<Session>>::iterator;

  // Adds a session. Sets `too_many` to the session that must be closed for it, which the caller
  // does on that session's strand; null if there is room.
  Place Add(const std::shared_ptr<Session>& session, std::shared_ptr<Session>& too_many);
  // Removes an entry. Called by the session's destructor.
  void Remove(Place place);

 private:
  Mutex mutex_;
  // Weak, because the pending operation owns a session.
  std::list<std::weak_ptr<Session>> sessions_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
