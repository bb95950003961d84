// SPDX-License-Identifier: Apache-2.0
#include "lib/health/health_server.h"

#include <arpa/inet.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <climits>
#include <functional>
#include <optional>
#include <utility>

#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/health/http_server.h"
#include "lib/health/metric_aliases.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {
namespace {

// Returns the name in lower case and without the dot at the end that marks a full name.
std::string LowerHostName(std::string_view host) {
  std::string name(host);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.size() > 1 && name.ends_with('.')) name.pop_back();
  return name;
}

// Returns whether the text is an IPv4 or IPv6 address without brackets.
bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored = {};
  return inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

// Returns whether the text may be a port; it may be empty, as in "host:".
bool IsPort(std::string_view text) {
  return text.size() <= 5 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns whether no attacker can register the name: it is a single label, or has a suffix that is
// reserved by RFC 6761, 6762 or 8375, or by ICANN (.internal).
bool IsUnregistrable(const std::string& name) {
  if (name.find('.') == std::string::npos) return true;
  constexpr std::array<std::string_view, 5> kSuffixes = {".localhost", ".local", ".internal",
                                                         ".home.arpa", ".test"};
  return std::ranges::any_of(kSuffixes,
                             [&name](std::string_view suffix) { return name.ends_with(suffix); });
}

// The content type of Prometheus' text format, version 0.0.4.
constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr char kBusy[] = "busy; try again\n";

// The page may neither load nor run anything, even if foreign text gets into it unescaped.
constexpr char kContentSecurity[] = "default-src 'none'; style-src 'unsafe-inline'";

// Returns the machine's name; "" if it has none.
std::string MachineName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

HttpAnswer TextAnswer(int code, std::string body) {
  return {.code = code, .body = std::move(body)};
}

// Returns a counter with the label `reason`.
prometheus::ClientMetric CounterOf(const char* reason, uint64_t value) {
  prometheus::ClientMetric metric;
  metric.label.push_back({"reason", reason});
  metric.counter.value = static_cast<double>(value);
  return metric;
}

// Returns the answer of a POST page as one of HTTP.
HttpAnswer AnswerOf(PostAnswer answer) {
  return {.code = answer.code,
          .body = std::move(answer.body),
          .retry_after_seconds = answer.retry_after_seconds};
}

}  // namespace

bool IsLocalHost(std::string_view host, std::span<const std::string> names) {
  if (host.empty()) return true;
  // Only IPv6 addresses are in brackets (RFC 3986, section 3.2.2).
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return false;
    const std::string_view rest = host.substr(end + 1);
    const bool is_port = rest.empty() || (rest.starts_with(':') && IsPort(rest.substr(1)));
    return is_port && IsAddress(std::string(host.substr(1, end - 1)));
  }
  if (const size_t colon = host.find(':'); colon != std::string_view::npos) {
    if (!IsPort(host.substr(colon + 1))) return false;
    host = host.substr(0, colon);
  }
  // DNS names are compared without case.
  const std::string name = LowerHostName(host);
  // Names have letters, digits, hyphens, dots, and in practice underscores.
  const bool is_name = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
  if (!is_name) return false;
  if (IsAddress(name) || IsUnregistrable(name)) return true;
  return std::ranges::any_of(
      names, [&name](const std::string& own) { return LowerHostName(own) == name; });
}

// Serves the pages. Functions may be called on several threads of HttpServer at once; the pages are
// constant once they are added.
class HealthServer::Impl {
 public:
  Impl(std::shared_ptr<prometheus::Collectable> metrics, const HealthState& state,
       std::vector<std::string> names)
      : metrics_(std::move(metrics)), state_(state), names_(std::move(names)) {}

  // Starts the server. Requests may arrive before this returns, and before pages are added.
  absl::Status Start(const std::string& address) {
    ASSIGN_OR_RETURN(
        server_,
        HttpServer::Start(
            {.address = address,
             // A body is read only if the request will be accepted, so that a refused client cannot
             // make the server hold one.
             .body_bytes_max =
                 [this](const HttpServerRequest& request) {
                   const auto page = PostPageOf(request);
                   return IsForUs(request) && request.method == "POST" && page != nullptr &&
                                  !Refusal(*page, request)
                              ? page->body_bytes_max
                              : 0;
                 },
             .answer = [this](const HttpServerRequest& request) { return Answer(request); },
             .crowded_out = [this] { ++crowded_out_; }}));
    return absl::OkStatus();
  }

  void Add(PostPage page) {
    const MutexLock lock(mutex_);
    posts_.push_back(std::make_shared<const PostPage>(std::move(page)));
  }
  void Add(StatusPage page) {
    const MutexLock lock(mutex_);
    status_ = std::make_shared<const StatusPage>(std::move(page));
  }
  int port() const { return server_->port(); }

 private:
  // Returns the page of a prefix, which the caller keeps alive while it answers; null if there is
  // none.
  std::shared_ptr<const PostPage> PostPageOf(const HttpServerRequest& request) const {
    const MutexLock lock(mutex_);
    for (const auto& page : posts_) {
      if (request.path.starts_with(page->prefix)) return page;
    }
    return nullptr;
  }

  // Returns why the request is refused, whatever its body.
  static std::optional<HttpAnswer> Refusal(const PostPage& page, const HttpServerRequest& request) {
    if (!page.is_for_anybody && !request.is_local)
      return TextAnswer(403, "allowed only from this machine\n");
    // A web page can make a browser of this machine send a POST here without reading the answer.
    if (request.is_of_web_page) return TextAnswer(403, "not allowed for web pages\n");
    return std::nullopt;
  }

  // Returns whether the answer is for a client that asked this machine, and not for a web page
  // whose name resolves to it. Probes may use any name, as /healthz reveals no secret.
  bool IsForUs(const HttpServerRequest& request) const {
    return request.path == "/healthz" || request.path == "/readyz" ||
           IsLocalHost(request.host, names_);
  }

  // Answers one request. The order matters: foreign hosts are refused before anything else can be
  // learned from the answer.
  HttpAnswer Answer(const HttpServerRequest& request) {
    if (!IsForUs(request)) {
      ++foreign_hosts_;
      return TextAnswer(421,
                        "unknown name in the Host header; use the IP address, or add the name to "
                        "--health-names\n");
    }
    if (const auto page = PostPageOf(request); page != nullptr) return Take(*page, request);
    if (request.method != "GET" && request.method != "HEAD") return TextAnswer(405, "use GET\n");
    const std::string& path = request.path;
    if (path == "/metrics") {
      std::vector<prometheus::MetricFamily> families = Collect();
      AddOldMetricNames(families);
      return {.body = prometheus::TextSerializer().Serialize(families),
              .content_type = kMetricsType};
    }
    if (path == "/healthz") return TextAnswer(state_.live() ? 200 : 503, state_.Describe(true));
    if (path == "/readyz") return TextAnswer(state_.ready() ? 200 : 503, state_.Describe(false));
    if (path == "/") return TextAnswer(200, "neurontrace: /statusz /metrics /healthz /readyz\n");
    if (path == "/statusz") return Status(request);
    return TextAnswer(404, "no such page; / lists the pages\n");
  }

  // Answers a POST, or says why it is refused.
  HttpAnswer Take(const PostPage& page, const HttpServerRequest& request) {
    if (request.method != "POST") return TextAnswer(405, "use POST\n");
    if (auto refusal = Refusal(page, request)) return *std::move(refusal);
    return Waiting([&] {
      return AnswerOf(page.handler->TakePost(
          {.name = request.path.substr(page.prefix.size()), .body = request.body}));
    });
  }

  // Answers /statusz with 404 until the page is added.
  HttpAnswer Status(const HttpServerRequest& request) {
    std::shared_ptr<const StatusPage> page;
    // The lock is not held while the page is made, which may take seconds.
    {
      const MutexLock lock(mutex_);
      page = status_;
    }
    if (page == nullptr)
      return TextAnswer(404, "the status page is not available yet; try again\n");
    return Waiting([&]() -> HttpAnswer {
      return {.body = RenderStatusPage(*page, state_.Describe(false), request.is_local, Collect()),
              .content_type = "text/html; charset=utf-8",
              .content_security_policy = kContentSecurity};
    });
  }

  // Answers that may wait for the rest of the process leave threads for those that do not, such as
  // /healthz.
  HttpAnswer Waiting(const std::function<HttpAnswer()>& make) {
    HttpAnswer answer{.code = 503, .body = kBusy, .retry_after_seconds = 1};
    // The counter includes this call, so that exactly kHealthWaitingMax are admitted.
    if (waiting_.fetch_add(1) < limits::kHealthWaitingMax) {
      answer = make();
    } else {
      ++busy_;
    }
    waiting_.fetch_sub(1);
    return answer;
  }

  // The process's metrics, and the requests that this port refused.
  std::vector<prometheus::MetricFamily> Collect() const {
    std::vector<prometheus::MetricFamily> families = metrics_->Collect();
    families.push_back({"neurontrace_health_refused_total",
                        "Requests to this port that were refused",
                        prometheus::MetricType::Counter,
                        {CounterOf("connections", crowded_out_), CounterOf("busy", busy_),
                         CounterOf("host", foreign_hosts_)}});
    return families;
  }

  const std::shared_ptr<prometheus::Collectable> metrics_;
  const HealthState& state_;
  const std::vector<std::string> names_;
  // Answers in progress that may wait.
  std::atomic<int> waiting_ = 0;
  // Refused requests by reason, since the start.
  std::atomic<uint64_t> busy_ = 0;
  std::atomic<uint64_t> crowded_out_ = 0;
  std::atomic<uint64_t> foreign_hosts_ = 0;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<const PostPage>> posts_ NT_GUARDED_BY(mutex_);
  std::shared_ptr<const StatusPage> status_ NT_GUARDED_BY(mutex_);  // null: not added yet
  std::unique_ptr<HttpServer> server_;  // destroyed first: its threads use the other members
};

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(
    const std::string& address, std::shared_ptr<prometheus::Collectable> metrics,
    const HealthState& state, std::vector<std::string> names) {
  // The host of the address is also a name by which operators reach the port.
  names.push_back(address.substr(0, address.rfind(':')));
  names.push_back(MachineName());
  auto impl = std::make_unique<Impl>(std::move(metrics), state, std::move(names));
  if (const absl::Status status = impl->Start(address); !status.ok()) {
    return FailedPrecondition(
        "cannot serve metrics and health on {}: {}. Choose another address with --health-address "
        "HOST:PORT",
        address, std::string(status.message()));
  }
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HealthServer::~HealthServer() = default;

void HealthServer::AddPostPage(PostPage page) { impl_->Add(std::move(page)); }
void HealthServer::AddStatusPage(StatusPage page) { impl_->Add(std::move(page)); }
int HealthServer::port() const { return impl_->port(); }

}  // namespace neurontrace
