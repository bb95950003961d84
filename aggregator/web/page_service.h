// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/access/access_control.h"
#include "aggregator/operator/page_address.h"
#include "aggregator/web/page_handler.h"
#include "aggregator/web/page_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/random.h"
#include "lib/web/web_assets.h"
#include "lib/web/web_server.h"
#include "lib/wire/channel_security.h"
#include "lib/wire/security_watch.h"

namespace neurontrace {

// The page at a port of the aggregator's own: everything of it, or nothing if it is not configured.
// Owned by the aggregator.
class PageService final : public PageAddress {
 public:
  struct Options {
    std::string address;             // HOST:PORT; empty: the page is not served
    std::vector<std::string> hosts;  // names in addresses, besides those of the loopback interface
    std::string url;           // the page's address for people; empty: made from the two above
    ChannelSecurity security;  // of the gRPC port
  };
  // All must outlive this.
  struct Deps {
    AccessControl& access;
    prometheus::Registry& registry;
    const Clock& clock;
    Random& random;
  };
  PageService(Options options, const Deps& deps);
  // Ends as Stop does.
  ~PageService() override;

  // Starts serving; `channel` leads to the aggregator's own service within the process. Fails with
  // UNAVAILABLE if the address cannot be listened on, and with FAILED_PRECONDITION if the files of
  // TLS cannot be used. Does nothing if the page is not configured. Called once.
  absl::Status Start(const std::shared_ptr<grpc::Channel>& channel);
  // Ends calls and connections. Called before the server of the channel ends. The metrics remain.
  void Stop();

  // Returns the page's address for people, without TLS with its token; "" if it is not served. Any
  // thread.
  std::string PageUrl() const override;
  // Returns the port; 0: not served.
  int port() const;

  // Called about once a second on one thread, which it blocks for the disk. Reads the files of TLS
  // that have changed, or all with `force`. If they cannot be used, the former ones stay in use;
  // the certificate's condition at /readyz reports it, as for the gRPC port.
  void ReloadChangedFiles(bool force);
  // Called once a second on one thread.
  void PublishMetrics();

 private:
  absl::StatusOr<std::shared_ptr<const WebTls>> ReadTls() const;
  // Returns PageUrl for a port.
  std::string MakeUrl(int port) const;

  const Options options_;
  const Deps deps_;
  const std::unique_ptr<PageMetrics> metrics_;  // null: not configured
  SecurityWatch files_;                         // on the thread of ReloadChangedFiles
  const WebAssets assets_ = WebAssets::BuiltIn();
  // Made by Start, in this order; each uses those above it.
  std::unique_ptr<v1::OperatorService::Stub> stub_;
  std::unique_ptr<OperatorGateway> gateway_;
  std::unique_ptr<PageHandler> handler_;
  mutable Mutex mutex_;
  // Null before Start and after Stop.
  std::unique_ptr<WebServer> server_ NT_GUARDED_BY(mutex_);
  std::string url_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
