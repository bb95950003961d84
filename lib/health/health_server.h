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

// Returns whether a request with this Host header (HOST or HOST:PORT) may be answered. A foreign
// web page can let its own name resolve to this machine (DNS rebinding) and would then read the
// answer; the browser sends that name. Accepted are addresses, names that nobody can register (a
// single label, .localhost, .local, .internal, .home.arpa, .test), and `names`. An empty header is
// accepted, as browsers always send one. Pure.
bool IsLocalHost(std::string_view host, std::span<const std::string> names);

// HTTP on one port: /metrics (Prometheus text format), /healthz and /readyz (200 or 503, with the
// conditions as text), /statusz (a page for people, once it is added), / (a list of these). All but
// /healthz and /readyz are refused with 421 if the Host header is a name that IsLocalHost does not
// accept. Answers that wait for the daemon, such as /statusz, are limited in number, so that probes
// always find a thread. Serves on threads of its own as long as it lives. Any thread may call.
class HealthServer {
 public:
  // Starts serving. `address` is HOST:PORT; port 0 picks a free one. `names` are accepted in
  // addition to its host and the machine's name. `state` must outlive the server. Fails with
  // FAILED_PRECONDITION if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Start(
      const std::string& address, std::shared_ptr<prometheus::Collectable> metrics,
      const HealthState& state, std::vector<std::string> names = {});
  // Waits for answers that are being made.
  ~HealthServer();
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  // Returns the port that it listens on, which is of interest for port 0.
  int port() const;

  // Accepts POSTs under a prefix from now on. Those that a browser sends for a web page are refused
  // with 403.
  void AddPostPage(PostPage page);

  // Serves /statusz from now on. Called at most once.
  void AddStatusPage(StatusPage page);

 private:
  // Hides the HTTP server and its state.
  class Impl;
  explicit HealthServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
