// SPDX-License-Identifier: Apache-2.0
#include "health/health_server.h"

#include <CivetServer.h>
#include <prometheus/text_serializer.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace neurontrace {
namespace {

struct Answer {
  int code = 200;
  std::string body;
};

// One path: a function that makes the answer.
class Page final : public CivetHandler {
 public:
  explicit Page(std::function<Answer()> make) : make_(std::move(make)) {}

  bool handleGet(CivetServer*, mg_connection* connection) override {
    const Answer answer = make_();
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
              "Content-Length: %zu\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
              answer.code, answer.code == 200 ? "OK" : "Service Unavailable", answer.body.size());
    mg_write(connection, answer.body.data(), answer.body.size());
    return true;
  }

 private:
  std::function<Answer()> make_;
};

}  // namespace

struct HealthServer::Impl {
  Impl(std::shared_ptr<prometheus::Registry> registry, const HealthState& state)
      : metrics([registry] {
          return Answer{200, prometheus::TextSerializer().Serialize(registry->Collect())};
        }),
        healthz([&state] {
          return Answer{state.live() ? 200 : 503, state.Describe(true)};
        }),
        readyz([&state] {
          return Answer{state.ready() ? 200 : 503, state.Describe(false)};
        }),
        index([] {
          return Answer{200, "neurontrace: /metrics /healthz /readyz\n"};
        }) {}

  Page metrics;
  Page healthz;
  Page readyz;
  Page index;
  std::unique_ptr<CivetServer> server;  // destroyed first: it calls the pages
  int port = 0;
};

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(
    const std::string& address, std::shared_ptr<prometheus::Registry> registry,
    const HealthState& state) {
  auto impl = std::make_unique<Impl>(std::move(registry), state);
  const std::vector<std::string> options = {"listening_ports",    address, "num_threads", "2",
                                            "request_timeout_ms", "5000"};
  try {
    impl->server = std::make_unique<CivetServer>(options);
  } catch (const CivetException& error) {  // the library has no other way of saying it
    return FailedPrecondition(
        "cannot serve metrics and health on {}: {}; is the address in use? Choose another with "
        "--health-address HOST:PORT",
        address, error.what());
  }
  const std::vector<int> ports = impl->server->getListeningPorts();
  if (ports.empty()) return FailedPrecondition("cannot serve metrics and health on {}", address);
  impl->port = ports.front();
  impl->server->addHandler("/metrics", &impl->metrics);
  impl->server->addHandler("/healthz", &impl->healthz);
  impl->server->addHandler("/readyz", &impl->readyz);
  impl->server->addHandler("/$", &impl->index);
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HealthServer::~HealthServer() = default;

int HealthServer::port() const { return impl_->port; }

}  // namespace neurontrace
