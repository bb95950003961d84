// SPDX-License-Identifier: Apache-2.0
#include "aggregator/web/page_service.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "lib/base/address.h"
#include "lib/base/status.h"
#include "lib/trace/web_limits.h"

namespace neurontrace {

PageService::PageService(Options options, const Deps& deps)
    : options_(std::move(options)),
      deps_(deps),
      metrics_(options_.address.empty() ? nullptr : std::make_unique<PageMetrics>(deps.registry)),
      files_(options_.security, options_.address, ChannelSide::kServer, deps.clock) {}

PageService::~PageService() { Stop(); }

absl::StatusOr<std::shared_ptr<const WebTls>> PageService::ReadTls() const {
  if (!options_.security.has_tls()) return nullptr;
  return WebTls::Read(
      {.ca = options_.security.ca, .cert = options_.security.cert, .key = options_.security.key});
}

absl::Status PageService::Start(const std::shared_ptr<grpc::Channel>& channel) {
  if (options_.address.empty()) return absl::OkStatus();
  files_.Poll();  // what changes from here on is noticed
  ASSIGN_OR_RETURN(std::shared_ptr<const WebTls> tls, ReadTls());
  stub_ = v1::OperatorService::NewStub(channel);
  gateway_ = std::make_unique<OperatorGateway>(
      *stub_, assets_,
      OperatorGateway::Options{.watches_max = limits::kPageWatchesMax, .makes_archives = false});
  handler_ = std::make_unique<PageHandler>(
      PageHandler::Options{.hosts = options_.hosts, .has_tls = options_.security.has_tls()},
      PageHandler::Deps{deps_.access, *gateway_, deps_.clock, deps_.random});
  auto server = WebServer::Start({.address = options_.address,
                                  .tls = std::move(tls),
                                  .connections_max = limits::kPageConnectionsMax,
                                  .threads = limits::kPageThreads},
                                 *handler_);
  if (!server.ok()) return DescribeListenFailure("--view-address", server.status());
  const MutexLock lock(mutex_);
  url_ = MakeUrl((*server)->port());
  server_ = *std::move(server);
  return absl::OkStatus();
}

// Calls that wait for the aggregator would keep the server's threads from ending.
void PageService::Stop() {
  std::unique_ptr<WebServer> server;
  {
    const MutexLock lock(mutex_);
    server = std::move(server_);
    url_.clear();
  }
  if (gateway_ != nullptr) gateway_->Stop();
  server.reset();
}

// The first name is the one that people use. Without one only names of the loopback interface are
// accepted, whatever the address.
std::string PageService::MakeUrl(int port) const {
  std::string url = options_.url;
  while (url.ends_with('/')) url.pop_back();
  if (url.empty()) {
    std::string host = "localhost";
    if (!options_.hosts.empty()) {
      host = options_.hosts.front();
    } else if (IsLoopback(options_.address)) {
      host = options_.address.substr(0, options_.address.rfind(':'));
    }
    url = fmt::format("{}://{}:{}", options_.security.has_tls() ? "https" : "http", host, port);
  }
  return options_.security.has_tls() ? url + "/" : url + "/?token=" + handler_->token();
}

std::string PageService::PageUrl() const {
  const MutexLock lock(mutex_);
  return url_;
}

int PageService::port() const {
  const MutexLock lock(mutex_);
  return server_ == nullptr ? 0 : server_->port();
}

void PageService::ReloadChangedFiles(bool force) {
  if (options_.address.empty() || !options_.security.has_tls()) return;
  const auto polled = files_.Poll();
  if (!polled && !force) return;
  auto tls = ReadTls();
  const MutexLock lock(mutex_);
  if (server_ == nullptr) return;
  if (tls.ok()) return server_->UseTls(*std::move(tls));
  // Files that are replaced one after the other do not fit for a moment; then this is tried again
  // with the next change.
  SPDLOG_WARN("the page keeps its former certificate: {}", std::string(tls.status().message()));
}

void PageService::PublishMetrics() {
  if (metrics_ == nullptr) return;
  const MutexLock lock(mutex_);
  if (server_ == nullptr) return;
  metrics_->Publish({.server = server_->counters(),
                     .sessions = handler_->sessions().counts(),
                     .throttled = handler_->throttle().refused(),
                     .foreign = handler_->foreign(),
                     .unknown = handler_->unknown()});
}

}  // namespace neurontrace
