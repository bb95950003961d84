// SPDX-License-Identifier: Apache-2.0
#include "lib/base/watched_file.h"

namespace neurontrace {

bool WatchedFile::IsPossiblyNew() {
  // The mark is taken before the caller reads the file: a write between the two is noticed at the
  // next call, never missed.
  const FileVersion mark = MarkOf(path_);
  const bool is_same = has_checked_ && mark == mark_ && !mark_.WasRecentAt(checked_realtime_ns_);
  has_checked_ = true;
  mark_ = mark;
  checked_realtime_ns_ = clock_.RealtimeNs();
  return !is_same;
}

}  // namespace neurontrace
