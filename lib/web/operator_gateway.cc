// SPDX-License-Identifier: Apache-2.0
#include "lib/web/operator_gateway.h"

#include <fmt/format.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <optional>
#include <utility>

#include "lib/base/json_writer.h"
#include "lib/base/status.h"
#include "lib/trace/web_limits.h"
#include "lib/web/api_reply.h"
#include "lib/web/web_parameters.h"

namespace neurontrace {
namespace {

constexpr std::string_view kApi = "/api/v1/";
// Browsers send cookies to every port of a host: each session has a name of its own, or a second
// page would sign the first one out.
constexpr size_t kCookieNameDigits = 8;
// Nothing of other sites is loaded, and no other site may frame the page. Canvases are saved
// through blobs. Opening Perfetto needs a reference to its window, which `same-origin` would cut.
constexpr std::pair<const char*, const char*> kSecurityHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
     "connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'"},
    {"Cross-Origin-Opener-Policy", "same-origin-allow-popups"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"}};

// Compares in a time that does not tell how much of the token is right.
bool IsToken(std::string_view text, std::string_view token) {
  return text.size() == token.size() && CRYPTO_memcmp(text.data(), token.data(), token.size()) == 0;
}

}  // namespace

// The changes of a capture as server-sent events (WHATWG HTML standard, 9.2).
class OperatorGateway::CaptureEvents final : public WebStream {
 public:
  // Gives its place among `watches` back at its end.
  CaptureEvents(v1::OperatorService::StubInterface& service,
                const std::shared_ptr<OperatorCalls>& calls,
                std::shared_ptr<std::atomic<int>> watches, const std::string& id)
      : watches_(std::move(watches)), call_(calls) {
    v1::CaptureReference request;
    request.set_capture_id(id);
    reader_ = service.WatchCapture(call_.context(), request);
  }
  ~CaptureEvents() override { watches_->fetch_sub(1); }

  // Reads the present state, so that a refused watch is answered with its error.
  grpc::Status Begin(std::string& piece) {
    if (Read(piece) == Next::kMore) return grpc::Status::OK;
    if (!status_.ok()) return status_;
    return {grpc::StatusCode::UNAVAILABLE, "the aggregator ended the watch without a state"};
  }

  // A watch that ends before its capture does is one that failed.
  Next Read(std::string& piece) override {
    v1::Capture capture;
    if (!reader_->Read(&capture)) {
      status_ = reader_->Finish();
      return status_.ok() ? Next::kEnd : Next::kFailed;
    }
    JsonWriter json;
    json.Open('{')
        .Member("state", v1::CaptureState_Name(capture.state()))
        .Member("events", fmt::format("{}", capture.events()))
        .Member("end_ns", fmt::format("{}", capture.server_realtime_ns()))
        .Close('}');
    piece = "data: " + json.Take() + "\n\n";
    return Next::kMore;
  }

 private:
  const std::shared_ptr<std::atomic<int>> watches_;
  OperatorCalls::Call call_;
  std::unique_ptr<grpc::ClientReaderInterface<v1::Capture>> reader_;
  grpc::Status status_;
};

OperatorGateway::OperatorGateway(v1::OperatorService::StubInterface& service,
                                 const WebAssets& assets, Options options)
    : service_(service),
      assets_(assets),
      options_(std::move(options)),
      cookie_name_("neurontrace_" + options_.token.substr(0, kCookieNameDigits)),
      calls_(std::make_shared<OperatorCalls>()),
      watches_(std::make_shared<std::atomic<int>>(0)),
      downloads_(std::make_shared<ExportDownloads>(service_)) {}

OperatorGateway::OperatorGateway(const OperatorGateway& other, Options options,
                                 std::shared_ptr<OperatorCalls> calls)
    : service_(other.service_),
      assets_(other.assets_),
      options_(std::move(options)),
      cookie_name_(other.cookie_name_),
      calls_(std::move(calls)),
      watches_(other.watches_),
      downloads_(other.downloads_) {}

OperatorGateway::~OperatorGateway() = default;

std::unique_ptr<OperatorGateway> OperatorGateway::For(std::shared_ptr<const WebCaller> caller,
                                                      User user) const {
  Options options = options_;
  options.user = std::move(user.name);
  options.role = std::move(user.role);
  options.has_session = user.has_session;
  return std::unique_ptr<OperatorGateway>(new OperatorGateway(
      *this, std::move(options), std::make_shared<OperatorCalls>(*calls_, std::move(caller))));
}

void OperatorGateway::AddSecurityHeaders(WebReply& reply) {
  for (const auto& [name, value] : kSecurityHeaders) reply.headers.emplace_back(name, value);
}

void OperatorGateway::Stop() { calls_->Stop(); }

// A pattern is a path below /api/v1/ in which * stands for the id of a capture, or the name of a
// download.
struct OperatorGateway::Route {
  std::string_view method;
  std::string_view pattern;
  WebReply (OperatorGateway::*handle)(const WebRequest&, const std::string&);
};

const std::vector<OperatorGateway::Route>& OperatorGateway::Routes() {
  static const std::vector<Route> routes = {
      {"GET", "session", &OperatorGateway::GetSession},
      {"GET", "status", &OperatorGateway::GetStatus},
      {"GET", "captures", &OperatorGateway::ListCaptures},
      {"POST", "captures", &OperatorGateway::StartCapture},
      {"GET", "captures/*", &OperatorGateway::GetCapture},
      {"PATCH", "captures/*", &OperatorGateway::UpdateCapture},
      {"DELETE", "captures/*", &OperatorGateway::DeleteCapture},
      {"POST", "captures/*/stop", &OperatorGateway::StopCapture},
      {"GET", "captures/*/certificate", &OperatorGateway::GetCertificate},
      {"GET", "captures/*/watch", &OperatorGateway::WatchCapture},
      {"GET", "captures/*/export", &OperatorGateway::Export},
      {"GET", "captures/*/why", &OperatorGateway::Why},
      {"GET", "why", &OperatorGateway::Why},
      {"GET", "captures/*/artifacts", &OperatorGateway::ListArtifacts},
      {"GET", "captures/*/artifact", &OperatorGateway::GetArtifact},
      {"GET", "downloads/*", &OperatorGateway::GetDownload},
      {"DELETE", "downloads/*", &OperatorGateway::CancelDownload},
      {"GET", "agents", &OperatorGateway::ListAgents},
      {"GET", "workers", &OperatorGateway::ListWorkers},
      {"GET", "clocks", &OperatorGateway::ListClocks},
      {"GET", "triggers", &OperatorGateway::ListTriggers},
      {"GET", "standing-exports", &OperatorGateway::ListStandingExports},
  };
  return routes;
}

WebReply OperatorGateway::Handle(const WebRequest& request) {
  WebReply reply;
  if (auto foreign = RefuseForeignHost(
          request, options_.hosts,
          "Use 127.0.0.1, or start the command with `neurontrace view --host NAME`.")) {
    reply = *std::move(foreign);
  } else if (auto change = RefuseForeignChange(request)) {
    reply = *std::move(change);
  } else if (!ParameterOf(request.query, "token").empty() && request.path.find("/api/") != 0) {
    reply = SignIn(request);
  } else if (request.method == "POST" && request.path == "/api/v1/session") {
    reply = SignInByBody(request);
  } else if (request.path.starts_with(kApi)) {
    reply = HasSession(request)
                ? Api(request)
                : ErrorReply({grpc::StatusCode::UNAUTHENTICATED,
                              "open the address that `neurontrace view` printed: it has the "
                              "token of this session"});
  } else {
    reply = Page(request);
  }
  AddSecurityHeaders(reply);
  return reply;
}

std::optional<WebReply> OperatorGateway::RefuseForeignHost(const WebRequest& request,
                                                           const std::vector<std::string>& hosts,
                                                           std::string_view advice) {
  const std::string host = HostName(request.host);
  const bool is_known = host == "localhost" || host == "127.0.0.1" || host == "[::1]" ||
                        std::ranges::count(hosts, host) > 0;
  if (is_known) return std::nullopt;
  return ErrorReply(
      {grpc::StatusCode::PERMISSION_DENIED, "the host name of the address is unknown"}, advice);
}

std::optional<WebReply> OperatorGateway::RefuseForeignChange(const WebRequest& request) {
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  // Pages of other sites can send requests with the cookie, but cannot set these headers.
  const bool is_own = request.fetch_site.empty() || request.fetch_site == "same-origin";
  if (!is_own || !request.content_type.starts_with("application/json")) {
    return ErrorReply({grpc::StatusCode::PERMISSION_DENIED,
                       "changes need the content type application/json and come from the page "
                       "itself"},
                      "Use the page of this address, or send these headers.");
  }
  return std::nullopt;
}

bool OperatorGateway::HasSession(const WebRequest& request) const {
  return IsToken(CookieValue(request.cookie, cookie_name_), options_.token);
}

absl::StatusOr<std::string> OperatorGateway::TokenOfBody(const std::string& body) {
  google::protobuf::Struct members;
  if (const grpc::Status parsed = ParseBody(body, members); !parsed.ok()) {
    return InvalidArgument("{}", parsed.error_message());
  }
  const auto token = members.fields().find("token");
  if (token == members.fields().end() || token->second.string_value().empty()) {
    return InvalidArgument("token: the body has none; write for example {{\"token\": \"...\"}}");
  }
  return token->second.string_value();
}

// For a page that was opened without the token: somebody copies it from the terminal.
WebReply OperatorGateway::SignInByBody(const WebRequest& request) {
  const auto token = TokenOfBody(request.body);
  if (!token.ok()) {
    return ErrorReply({grpc::StatusCode::INVALID_ARGUMENT, std::string(token.status().message())});
  }
  if (!IsToken(*token, options_.token)) {
    return ErrorReply({grpc::StatusCode::UNAUTHENTICATED,
                       "the token is not that of this session; `neurontrace view` prints the "
                       "current address"});
  }
  WebReply reply = GetSession(request, "");
  reply.headers.emplace_back("Set-Cookie", SessionCookie());
  return reply;
}

std::string OperatorGateway::SessionCookie() const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", cookie_name_, options_.token);
}

std::string OperatorGateway::AddressWithoutToken(const WebRequest& request) {
  // Only a path of this server: "//host" would lead to another one, and so would the "http://host/"
  // of a request to a proxy. Browsers read \ as /.
  const bool is_own = request.path.starts_with('/') && !request.path.starts_with("//") &&
                      !request.path.starts_with("/\\");
  std::string path = is_own ? request.path : "/";
  if (const std::string rest = WithoutParameter(request.query, "token"); !rest.empty()) {
    path += "?" + rest;
  }
  return path;
}

// The token leaves the address, so that it is in no history and in no link that somebody copies.
// The other parameters stay: they are the view that a link opens.
WebReply OperatorGateway::SignIn(const WebRequest& request) const {
  if (!IsToken(ParameterOf(request.query, "token"), options_.token)) {
    return ErrorReply({grpc::StatusCode::UNAUTHENTICATED,
                       "the token is not that of this session; `neurontrace view` prints the "
                       "current address"});
  }
  return {.status = 303,
          .headers = {{"Location", AddressWithoutToken(request)},
                      {"Cache-Control", "no-store"},
                      {"Set-Cookie", SessionCookie()}}};
}

// Every path without a file is the page, which reads the address itself.
WebReply OperatorGateway::Page(const WebRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    return {.status = 405, .headers = {{"Allow", "GET, HEAD"}}, .body = "use GET\n"};
  }
  const WebAsset* const file = assets_.Find(request.path);
  const WebAsset& asset = file == nullptr ? assets_.page() : *file;
  WebReply reply{.content_type = asset.content_type,
                 .headers = {{"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}},
                 .body = asset.bytes};
  if (!asset.gzip.empty() && request.accept_encoding.find("gzip") != std::string::npos) {
    reply.body = asset.gzip;
    reply.headers.emplace_back("Content-Encoding", "gzip");
  }
  return reply;
}

WebReply OperatorGateway::Api(const WebRequest& request) {
  // Messages of gRPC hold nothing else.
  if (!IsUtf8(request.path) || !IsUtf8(request.query)) {
    return ErrorReply(
        {grpc::StatusCode::INVALID_ARGUMENT, "the address is not UTF-8; write other bytes as %XX"});
  }
  std::string path = request.path.substr(kApi.size());
  std::string id;
  constexpr std::string_view kCaptures = "captures/";
  constexpr std::string_view kDownloads = "downloads/";
  if (path.starts_with(kDownloads)) {
    id = path.substr(kDownloads.size());
    path.replace(kDownloads.size(), id.size(), "*");
  } else if (path.starts_with(kCaptures)) {
    const size_t end = std::min(path.find('/', kCaptures.size()), path.size());
    id = path.substr(kCaptures.size(), end - kCaptures.size());
    path.replace(kCaptures.size(), id.size(), "*");
    constexpr std::string_view kViews[] = {"layout",  "spans", "events", "search",
                                           "summary", "heat",  "links"};
    const std::string_view what =
        std::string_view(path).substr(std::min(kCaptures.size() + 2, path.size()));
    if (request.method == "GET" && std::ranges::count(kViews, what) > 0) {
      return View(what, request, id);
    }
  }
  bool has_path = false;
  for (const Route& route : Routes()) {
    if (route.pattern != path) continue;
    has_path = true;
    if (route.method == request.method) return (this->*route.handle)(request, id);
  }
  if (has_path) {
    WebReply reply =
        ErrorReply({grpc::StatusCode::UNIMPLEMENTED, "the method is not supported here"},
                   "docs/formats/view_api.md lists the methods of each address.");
    reply.status = 405;
    return reply;
  }
  return ErrorReply(
      {grpc::StatusCode::NOT_FOUND, "no such address; docs/formats/view_api.md lists them"});
}

WebReply OperatorGateway::GetSession(const WebRequest&, const std::string&) {
  // What the credentials may do is decided by the aggregator, call by call. The page hides what a
  // known role may not do.
  const std::string& role = options_.role;
  const bool is_admin = role.empty() || role == "admin";
  const bool is_operator = is_admin || role == "operator";
  JsonWriter json;
  json.Open('{').Member("user", options_.user).Member("role", role).Key("may").Open('{');
  json.Member("view", true).Member("start", is_operator).Member("stop", is_operator);
  json.Member("edit", is_operator).Member("delete", is_admin).Member("export", true);
  json.Close('}');
  json.Member("has_session", options_.has_session);
  json.Member("needs_token", false).Member("aggregator", NEURONTRACE_VERSION).Close('}');
  return JsonReply(json.Take());
}

WebReply OperatorGateway::GetStatus(const WebRequest&, const std::string&) {
  OperatorCalls::Call call(calls_);
  v1::GetStatusReply reply;
  const grpc::Status status = service_.GetStatus(call.WithDeadline().context(), {}, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::ListCaptures(const WebRequest&, const std::string&) {
  OperatorCalls::Call call(calls_);
  v1::ListCapturesReply reply;
  const grpc::Status status = service_.ListCaptures(call.WithDeadline().context(), {}, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::GetCapture(const WebRequest&, const std::string& id) {
  OperatorCalls::Call call(calls_);
  v1::CaptureReference request;
  request.set_capture_id(id);
  v1::Capture reply;
  const grpc::Status status = service_.GetCapture(call.WithDeadline().context(), request, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::GetCertificate(const WebRequest&, const std::string& id) {
  OperatorCalls::Call call(calls_);
  v1::CaptureReference request;
  request.set_capture_id(id);
  v1::Capture reply;
  const grpc::Status status = service_.GetCapture(call.WithDeadline().context(), request, &reply);
  return status.ok() ? MessageReply(reply.certificate()) : ErrorReply(status);
}

// A preview records nothing: it is a capture of another mode that ends by itself.
WebReply OperatorGateway::StartCapture(const WebRequest& request, const std::string&) {
  // The message has no member `dry_run`, so it is taken out before the strict parse.
  google::protobuf::Struct body;
  if (const grpc::Status parsed = ParseBody(request.body, body); !parsed.ok()) {
    return ErrorReply(parsed);
  }
  const auto dry_run = body.fields().find("dry_run");
  const bool is_preview = dry_run != body.fields().end() && dry_run->second.bool_value();
  body.mutable_fields()->erase("dry_run");
  std::string rest;
  v1::StartCaptureRequest message;
  if (!google::protobuf::util::MessageToJsonString(body, &rest).ok()) rest.clear();
  if (const grpc::Status parsed = ParseBody(rest, message); !parsed.ok()) return ErrorReply(parsed);
  if (is_preview) message.mutable_spec()->set_mode(v1::CAPTURE_MODE_PREVIEW);
  v1::Capture reply;
  grpc::Status status;
  {
    OperatorCalls::Call call(calls_);
    status = service_.StartCapture(call.WithDeadline().context(), message, &reply);
  }
  if (!status.ok()) return ErrorReply(status);
  if (is_preview) {
    if (const absl::Status awaited = AwaitPreview(reply); !awaited.ok()) {
      return ErrorReply(
          {static_cast<grpc::StatusCode>(awaited.code()), std::string(awaited.message())});
    }
  }
  return MessageReply(reply);
}

absl::Status OperatorGateway::AwaitPreview(v1::Capture& capture) {
  OperatorCalls::Call call(calls_);
  v1::CaptureReference request;
  request.set_capture_id(capture.capture_id());
  const auto reader = service_.WatchCapture(call.WithDeadline().context(), request);
  v1::Capture latest;
  while (reader->Read(&latest)) capture = latest;
  const grpc::Status status = reader->Finish();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

WebReply OperatorGateway::StopCapture(const WebRequest&, const std::string& id) {
  OperatorCalls::Call call(calls_);
  v1::CaptureReference request;
  request.set_capture_id(id);
  v1::Capture reply;
  const grpc::Status status = service_.StopCapture(call.WithDeadline().context(), request, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

// The address names the capture, so a body that names one, too, could contradict it.
WebReply OperatorGateway::UpdateCapture(const WebRequest& request, const std::string& id) {
  v1::UpdateCaptureRequest message;
  if (const grpc::Status parsed = ParseBody(request.body, message); !parsed.ok()) {
    return ErrorReply(parsed);
  }
  if (!message.capture_id().empty()) {
    return ErrorReply({grpc::StatusCode::INVALID_ARGUMENT,
                       "capture_id: the address names the capture; omit this member"});
  }
  message.set_capture_id(id);
  OperatorCalls::Call call(calls_);
  v1::Capture reply;
  const grpc::Status status =
      service_.UpdateCapture(call.WithDeadline().context(), message, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

// The page lets people type the name: what they delete is gone.
WebReply OperatorGateway::DeleteCapture(const WebRequest& request, const std::string& id) {
  google::protobuf::Struct body;
  if (const grpc::Status parsed = ParseBody(request.body, body); !parsed.ok()) {
    return ErrorReply(parsed);
  }
  v1::CaptureReference reference;
  reference.set_capture_id(id);
  v1::Capture capture;
  {
    OperatorCalls::Call call(calls_);
    const grpc::Status status =
        service_.GetCapture(call.WithDeadline().context(), reference, &capture);
    if (!status.ok()) return ErrorReply(status);
  }
  const std::string& typed = body.fields().contains("confirm")
                                 ? body.fields().at("confirm").string_value()
                                 : std::string();
  if (typed.empty() || (typed != capture.capture_id() && typed != capture.spec().name())) {
    return ErrorReply({grpc::StatusCode::FAILED_PRECONDITION,
                       "confirm: type the capture's name or id to delete it"});
  }
  OperatorCalls::Call call(calls_);
  v1::DeleteCaptureReply reply;
  const grpc::Status status =
      service_.DeleteCapture(call.WithDeadline().context(), reference, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::WatchCapture(const WebRequest&, const std::string& id) {
  if (watches_->fetch_add(1) >= options_.watches_max) {
    watches_->fetch_sub(1);
    return ErrorReply({grpc::StatusCode::RESOURCE_EXHAUSTED,
                       "too many pages follow a running capture; close one of them"});
  }
  auto events = std::make_unique<CaptureEvents>(service_, calls_, watches_, id);
  WebReply reply{.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-store"}}};
  if (const grpc::Status begun = events->Begin(reply.body); !begun.ok()) return ErrorReply(begun);
  reply.stream = std::move(events);
  return reply;
}

WebReply OperatorGateway::ListAgents(const WebRequest&, const std::string&) {
  OperatorCalls::Call call(calls_);
  v1::ListAgentsReply reply;
  const grpc::Status status = service_.ListAgents(call.WithDeadline().context(), {}, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::ListWorkers(const WebRequest&, const std::string&) {
  OperatorCalls::Call call(calls_);
  v1::ListWorkersReply reply;
  const grpc::Status status = service_.ListWorkers(call.WithDeadline().context(), {}, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::ListClocks(const WebRequest&, const std::string&) {
  OperatorCalls::Call call(calls_);
  v1::ListClocksReply reply;
  const grpc::Status status = service_.ListClocks(call.WithDeadline().context(), {}, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::ListTriggers(const WebRequest&, const std::string&) {
  OperatorCalls::Call call(calls_);
  v1::ListTriggersReply reply;
  const grpc::Status status = service_.ListTriggers(call.WithDeadline().context(), {}, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::ListArtifacts(const WebRequest&, const std::string& id) {
  OperatorCalls::Call call(calls_);
  v1::CaptureReference request;
  request.set_capture_id(id);
  v1::ListArtifactsReply reply;
  const grpc::Status status =
      service_.ListArtifacts(call.WithDeadline().context(), request, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::ListStandingExports(const WebRequest&, const std::string&) {
  OperatorCalls::Call call(calls_);
  v1::ListStandingExportsReply reply;
  const grpc::Status status =
      service_.ListStandingExports(call.WithDeadline().context(), {}, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::Export(const WebRequest& request, const std::string& id) {
  return downloads_->Export(DownloadCaller(), request, id);
}

WebReply OperatorGateway::GetArtifact(const WebRequest& request, const std::string& id) {
  return downloads_->GetArtifact(DownloadCaller(), request, id);
}

WebReply OperatorGateway::GetDownload(const WebRequest& request, const std::string& id) {
  return downloads_->GetState(DownloadCaller(), request, id);
}

WebReply OperatorGateway::CancelDownload(const WebRequest& request, const std::string& id) {
  return downloads_->Cancel(DownloadCaller(), request, id);
}

// The same window as that of the views: moments of reference time.
WebReply OperatorGateway::Why(const WebRequest& request, const std::string& id) {
  v1::ExplainRequest message;
  message.set_capture_id(id);
  message.set_job(DecodedParameterOf(request.query, "job"));
  if (!IsUtf8(message.job())) {
    return ErrorReply({grpc::StatusCode::INVALID_ARGUMENT, "job: is not UTF-8"});
  }
  const auto moment = [&request](std::string_view name, uint64_t& ns) {
    const std::string text = DecodedParameterOf(request.query, name);
    if (text.empty()) return true;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), ns);
    return end.ec == std::errc() && end.ptr == text.data() + text.size();
  };
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  for (const auto& [name, ns] : {std::pair("from", &from_ns), std::pair("to", &to_ns)}) {
    if (moment(name, *ns)) continue;
    return ErrorReply(
        {grpc::StatusCode::INVALID_ARGUMENT, fmt::format("{}: is no moment in nanoseconds", name)});
  }
  message.set_begin_ns(from_ns);
  message.set_end_ns(to_ns);
  OperatorCalls::Call call(calls_);
  v1::InsightReport reply;
  const grpc::Status status = service_.Explain(call.WithDeadline().context(), message, &reply);
  return status.ok() ? MessageReply(reply) : ErrorReply(status);
}

WebReply OperatorGateway::View(std::string_view what, const WebRequest& request,
                               const std::string& id) {
  OperatorCalls::Call call(calls_);
  v1::ViewRequest message;
  message.set_capture_id(id);
  message.set_what(std::string(what));
  message.set_query(request.query);
  const auto reader = service_.GetView(call.WithDeadline().context(), message);
  std::string answer;
  v1::ViewReply part;
  while (reader->Read(&part)) answer += part.data();
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return ErrorReply(status);
  WebReply reply = JsonReply(std::move(answer));
  if (what == "spans" || what == "heat") reply.content_type = "application/octet-stream";
  return reply;
}

}  // namespace neurontrace
