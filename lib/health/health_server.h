// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/health/health_state.h"
#include "lib/health/post_page.h"
#include "lib/health/status_page.h"

namespace neurontrace {

// Whether a request with this Host header (HOST or HOST:PORT) may be answered. A web page of
// somebody else's can let its own name point to this machine (DNS rebinding) and would then read
// the answer as its own; the browser sends that name. Accepted are addresses, names that nobody can
// register (a single label, .localhost, .local, .internal, .home.arpa, .test), and `names`. An
// empty header is accepted, as browsers always send one. Pure.
bool IsOwnHost(std::string_view host, std::span<const std::string> names);

// HTTP on one port: /metrics (Prometheus text format), /healthz and /readyz (200 or 503, with the
// conditions as text), /statusz (a page for people, once there is one), / (what there is). All but
// /healthz and /readyz are refused with 421 if the Host header is a name that IsOwnHost does not
// accept. Serves on threads of its own as long as it lives; metrics and state must outlive it.
class HealthServer {
 public:
  // `address` is HOST:PORT; port 0 picks a free one. `names`: by which it may be asked, beside its
  // host and the machine's name. FAILED_PRECONDITION when it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Start(
      const std::string& address, std::shared_ptr<prometheus::Collectable> metrics,
      const HealthState& state, std::vector<std::string> names = {});
  ~HealthServer();
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  int port() const;

  // From now on takes POSTs too. Those that a browser sends for a page that it shows are refused
  // with 403.
  void AddPostPage(PostPage page);

  // From now on serves /statusz. Once.
  void AddStatusPage(StatusPage page);

 private:
  class Impl;
  explicit HealthServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
