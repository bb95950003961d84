// SPDX-License-Identifier: Apache-2.0
#include "health/health_server.h"

#include <CivetServer.h>
#include <arpa/inet.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "health/status_page.h"
#include "trace/daemon_limits.h"

namespace neurontrace {
namespace {

constexpr char kText[] = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
// Nothing on the page may load anything, or run.
constexpr char kHtml[] =
    "Content-Type: text/html; charset=utf-8\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
    "X-Content-Type-Options: nosniff\r\n";

struct Answer {
  int code = 200;
  std::string body;
  const char* headers = kText;
};

bool IsLocal(const mg_request_info& request) {
  const std::string_view from = request.remote_addr;
  return from.starts_with("127.") || from == "::1" || from.starts_with("::ffff:127.");
}

// One path: a function that makes the answer.
class Page final : public CivetHandler {
 public:
  explicit Page(std::function<Answer(const mg_request_info&)> make) : make_(std::move(make)) {}

  bool handleGet(CivetServer*, mg_connection* connection) override {
    const Answer answer = make_(*mg_get_request_info(connection));
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\n%s"
              "Content-Length: %zu\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
              answer.code, answer.code == 200 ? "OK" : "Service Unavailable", answer.headers,
              answer.body.size());
    mg_write(connection, answer.body.data(), answer.body.size());
    return true;
  }

 private:
  std::function<Answer(const mg_request_info&)> make_;
};

const char* ReasonOf(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    default:
      return "Service Unavailable";
  }
}

// What comes of the body in the time that a request has, at most `bytes_max`. Byte by byte, as the
// library's time begins anew with each that comes.
std::string ReadBody(mg_connection* connection, size_t bytes_max) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(limits::kHealthRequestMsMax);
  std::string body;
  char byte = 0;
  while (body.size() < bytes_max && std::chrono::steady_clock::now() < deadline &&
         mg_read(connection, &byte, 1) == 1) {
    body += byte;
  }
  return body;
}

class PostHandler final : public CivetHandler {
 public:
  explicit PostHandler(PostPage page) : page_(std::move(page)) {}

  bool handlePost(CivetServer*, mg_connection* connection) override {
    Say(connection, AnswerTo(connection));
    return true;
  }
  bool handleGet(CivetServer*, mg_connection* connection) override {
    Say(connection, {405, "POST to it\n"});
    return true;
  }

  const std::string& prefix() const { return page_.prefix; }

 private:
  PostAnswer AnswerTo(mg_connection* connection) const {
    const mg_request_info& request = *mg_get_request_info(connection);
    if (!page_.is_for_anybody && !IsLocal(request)) {
      return {403, "only from this machine\n"};
    }
    // Browsers say for whose page they ask.
    if (mg_get_header(connection, "Origin") != nullptr) return {403, "not for web pages\n"};
    if (request.content_length > static_cast<long long>(page_.body_bytes_max)) {
      return {413, "at most " + std::to_string(page_.body_bytes_max) + " bytes\n"};
    }
    PostRequest post;
    post.body = ReadBody(connection, page_.body_bytes_max + 1);
    if (post.body.size() > page_.body_bytes_max) {
      return {413, "at most " + std::to_string(page_.body_bytes_max) + " bytes\n"};
    }
    if (static_cast<long long>(post.body.size()) < request.content_length) {
      return {408, "the body did not come in time\n"};
    }
    const std::string path = request.local_uri == nullptr ? "" : request.local_uri;
    post.name = path.substr(std::min(page_.prefix.size(), path.size()));
    return page_.take(post);
  }

  static void Say(mg_connection* connection, const PostAnswer& answer) {
    const std::string retry =
        answer.retry_after_seconds == 0
            ? ""
            : "Retry-After: " + std::to_string(answer.retry_after_seconds) + "\r\n";
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: %zu\r\n%sCache-Control: no-store\r\nConnection: close\r\n\r\n",
              answer.code, ReasonOf(answer.code), answer.body.size(), retry.c_str());
    mg_write(connection, answer.body.data(), answer.body.size());
  }

  const PostPage page_;
};

// Connects to an IPv4 listener and hangs up. Whether that works does not matter.
void Knock(const std::string& host, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1)
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  static_cast<void>(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)));
  close(fd);
}

}  // namespace

struct HealthServer::Impl {
  Impl(std::shared_ptr<prometheus::Collectable> metrics_of, const HealthState& state_of)
      : collectable(std::move(metrics_of)),
        state(state_of),
        metrics([this](const auto&) {
          return Answer{200, prometheus::TextSerializer().Serialize(collectable->Collect())};
        }),
        healthz([this](const auto&) {
          return Answer{state.live() ? 200 : 503, state.Describe(true)};
        }),
        readyz([this](const auto&) {
          return Answer{state.ready() ? 200 : 503, state.Describe(false)};
        }),
        index([](const auto&) {
          return Answer{200, "neurontrace: /statusz /metrics /healthz /readyz\n"};
        }) {}

  const std::shared_ptr<prometheus::Collectable> collectable;
  const HealthState& state;

  Page metrics;
  Page healthz;
  Page readyz;
  Page index;
  std::unique_ptr<Page> status;  // once there is one
  std::vector<std::unique_ptr<PostHandler>> posts;
  std::unique_ptr<CivetServer> server;  // destroyed first: it calls the pages
  std::string host;
  int port = 0;
};

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(
    const std::string& address, std::shared_ptr<prometheus::Collectable> metrics,
    const HealthState& state) {
  auto impl = std::make_unique<Impl>(std::move(metrics), state);
  const std::vector<std::string> options = {
      "listening_ports",    address,
      "num_threads",        std::to_string(limits::kHealthRequestsAtOnceMax),
      "request_timeout_ms", std::to_string(limits::kHealthRequestMsMax)};
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
  impl->host = address.substr(0, address.rfind(':'));
  impl->port = ports.front();
  impl->server->addHandler("/metrics", &impl->metrics);
  impl->server->addHandler("/healthz", &impl->healthz);
  impl->server->addHandler("/readyz", &impl->readyz);
  impl->server->addHandler("/$", &impl->index);
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// civetweb waits for connections two seconds at a time and looks only then whether it is to end, so
// somebody knocks.
HealthServer::~HealthServer() {
  const auto stopped = std::async(std::launch::async, [this] { impl_->server.reset(); });
  do {
    Knock(impl_->host, impl_->port);
  } while (stopped.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready);
}

void HealthServer::AddPostPage(PostPage page) {
  impl_->posts.push_back(std::make_unique<PostHandler>(std::move(page)));
  PostHandler& handler = *impl_->posts.back();
  impl_->server->addHandler(handler.prefix(), &handler);  // and all that begins with it
}

void HealthServer::AddStatusPage(StatusPage page) {
  impl_->status = std::make_unique<Page>(
      [impl = impl_.get(), page = std::move(page)](const mg_request_info& request) {
        return Answer{200,
                      RenderStatusPage(page, impl->state.Describe(false), IsLocal(request),
                                       impl->collectable->Collect()),
                      kHtml};
      });
  impl_->server->addHandler("/statusz", impl_->status.get());
}

int HealthServer::port() const { return impl_->port; }

}  // namespace neurontrace
