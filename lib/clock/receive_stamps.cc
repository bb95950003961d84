// SPDX-License-Identifier: Apache-2.0
#include "lib/clock/receive_stamps.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <time.h>

#include <cmath>
#include <cstring>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// A stamp that is older than this when the program looks is of no use for a probe anyway, and the
// shorter the span, the less steering of REALTIME can distort it.
constexpr uint64_t kStampAgeMaxNs = 20'000'000;
// How far REALTIME may deviate between two looks from what its known rate explains. Allows for the
// error of both snapshots, each half the width of its bracket.
constexpr double kStrayNs = 5'000;
constexpr double kPollIntervalMaxNs = 5e9;

}  // namespace

absl::Status EnableReceiveStamps(int socket) {
  const int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  if (setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) == 0) {
    return absl::OkStatus();
  }
  return Unavailable("SO_TIMESTAMPING: {}", strerror(errno));
}

std::optional<uint64_t> ReceiveStampNs(const msghdr& message) {
  for (const cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(control))) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_TIMESTAMPING) continue;
    // The kernel truncates control data if the buffer is too small.
    if (control->cmsg_len < CMSG_LEN(sizeof(scm_timestamping))) continue;
    scm_timestamping stamps;
    memcpy(&stamps, CMSG_DATA(control), sizeof(stamps));
    // scm_timestamping has three stamps; only the first is of software. The copy is needed as
    // control data is not aligned for it.
    const auto& software = stamps.ts[0];
    if (software.tv_sec <= 0) return std::nullopt;
    return static_cast<uint64_t>(software.tv_sec) * 1'000'000'000u +
           static_cast<uint64_t>(software.tv_nsec);
  }
  return std::nullopt;
}

void ReceiveStamps::Poll() {
  // A stamp lies between two looks. If REALTIME ran over that whole span as it was steered, it did
  // not step within it, and the distance from the stamp to now is a duration.
  if (now_.raw_end_ns != 0) before_ = now_;
  now_ = ReadHostClocks(clocks_);
  steady_ = false;
  if (!before_) return;
  const double passed = static_cast<double>(now_.raw_begin_ns - before_->raw_begin_ns);
  if (passed > kPollIntervalMaxNs) return;
  const double went = static_cast<double>(RealtimeMinusRaw(now_) - RealtimeMinusRaw(*before_));
  const double slow = std::min(SteeringRate(*before_), SteeringRate(now_)) - kUnseenSlew;
  const double fast = std::max(SteeringRate(*before_), SteeringRate(now_)) + kUnseenSlew;
  steady_ = went >= slow * passed - kStrayNs && went <= fast * passed + kStrayNs;
}

uint64_t ReceiveStamps::OnRaw(std::optional<uint64_t> stamp_realtime_ns) {
  const uint64_t age_ns = stamp_realtime_ns ? now_.realtime_ns - *stamp_realtime_ns : ~uint64_t{0};
  // Also true for a stamp of the future, as the difference wraps around.
  if (!steady_ || age_ns > kStampAgeMaxNs) {
    ++without_kernel_;
    return now_.raw_end_ns;
  }
  // REALTIME advanced by `age_ns` since the stamp; raw advanced by at least `age_ns` times one
  // minus the fastest rate. The lower bound puts the stamp late rather than early, as the class
  // promises.
  const double rate = std::abs(SteeringRate(now_)) + kUnseenSlew;
  const double raw_age_ns = static_cast<double>(age_ns) * (1 - rate);
  return now_.raw_end_ns - static_cast<uint64_t>(std::max(raw_age_ns, 0.0));
}

}  // namespace neurontrace
