// SPDX-License-Identifier: Apache-2.0
#include "aggregator/web/page_handler.h"

#include <fmt/format.h>

#include <cassert>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "aggregator/access/page_callers.h"
#include "lib/base/mutex.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/web/api_reply.h"
#include "lib/web/web_parameters.h"
#include "lib/wire/grpc_status.h"
#include "lib/wire/pem_files.h"

namespace neurontrace {
namespace {

constexpr std::string_view kApi = "/api/";
constexpr std::string_view kSession = "/api/v1/session";
constexpr std::string_view kBearer = "Bearer ";
constexpr size_t kCookieNameDigits = 8;

std::string RandomHex(Random& random, int words) {
  std::string text;
  for (int i = 0; i < words; ++i) text += fmt::format("{:016x}", random.Next64());
  return text;
}

}  // namespace

// Gives each call of a request the same ticket. Lives until the last of them has ended.
class PageHandler::TicketCaller final : public WebCaller {
 public:
  explicit TicketCaller(std::unique_ptr<PageCallers::Ticket> ticket) : ticket_(std::move(ticket)) {}
  void Identify(grpc::ClientContext& context) const override {
    context.AddMetadata(PageCallers::kTicket, ticket_->text());
  }

 private:
  const std::unique_ptr<PageCallers::Ticket> ticket_;
};

// Counts streams that last as long as their browser reads, so that one caller cannot take all.
class PageHandler::CallerWatches {
 public:
  explicit CallerWatches(int of_caller_max) : of_caller_max_(of_caller_max) {}
  bool Add(const std::string& caller) {
    const MutexLock lock(mutex_);
    int& count = by_caller_[caller];
    if (count >= of_caller_max_) return false;
    ++count;
    return true;
  }
  void Remove(const std::string& caller) {
    const MutexLock lock(mutex_);
    const auto known = by_caller_.find(caller);
    assert(known != by_caller_.end() && known->second > 0);
    if (--known->second == 0) by_caller_.erase(known);
  }

 private:
  const int of_caller_max_;
  Mutex mutex_;
  std::map<std::string, int> by_caller_ NT_GUARDED_BY(mutex_);
};

// A stream that is counted as long as it lives. Without a stream the request was refused.
class PageHandler::CountedStream final : public WebStream {
 public:
  CountedStream(std::shared_ptr<CallerWatches> watches, std::string caller)
      : watches_(std::move(watches)), caller_(std::move(caller)) {}
  ~CountedStream() override { watches_->Remove(caller_); }
  void Wrap(std::unique_ptr<WebStream> stream) { stream_ = std::move(stream); }
  Next Read(std::string& piece) override { return stream_->Read(piece); }

 private:
  const std::shared_ptr<CallerWatches> watches_;
  const std::string caller_;
  std::unique_ptr<WebStream> stream_;
};

// A browser takes a cookie named __Host- only over TLS, for this host alone and for all its paths.
PageHandler::PageHandler(Options options, const Deps& deps)
    : options_(std::move(options)),
      deps_(deps),
      token_(options_.has_tls ? "" : RandomHex(deps.random, 4)),
      cookie_name_((options_.has_tls ? "__Host-neurontrace_" : "neurontrace_") +
                   RandomHex(deps.random, 1).substr(0, kCookieNameDigits)),
      sessions_(deps.clock, deps.random),
      throttle_(deps.clock),
      watches_(std::make_shared<CallerWatches>(options_.has_tls ? limits::kPageWatchesOfCallerMax
                                                                : limits::kPageWatchesMax)) {}

PageHandler::~PageHandler() = default;

WebReply PageHandler::Handle(const WebRequest& request) {
  WebReply reply;
  const bool is_api = request.path.starts_with(kApi);
  if (auto foreign = RefuseForeign(request)) {
    ++foreign_;
    reply = *std::move(foreign);
  } else if (is_api) {
    reply = Api(request);
  } else if (!options_.has_tls && !ParameterOf(request.query, "token").empty()) {
    reply = SignInByAddress(request);
  } else {
    reply = deps_.gateway.Page(request);
  }
  OperatorGateway::AddSecurityHeaders(reply);
  return reply;
}

std::optional<WebReply> PageHandler::RefuseForeign(const WebRequest& request) const {
  if (auto host = OperatorGateway::RefuseForeignHost(
          request, options_.hosts, "Start the aggregator with --view-host NAME.")) {
    return host;
  }
  // A browser sends a certificate with every request, also with those of other sites' pages. They
  // cannot read the answers, but must not cause work either.
  const bool is_foreign = request.fetch_site == "cross-site" || request.fetch_site == "same-site";
  if (is_foreign && request.path.starts_with(kApi)) {
    return ErrorReply(
        {grpc::StatusCode::PERMISSION_DENIED, "the request comes from a page of another site"});
  }
  return OperatorGateway::RefuseForeignChange(request);
}

WebReply PageHandler::Api(const WebRequest& request) {
  if (request.path == kSession && request.method == "POST") return SignIn(request);
  if (request.path == kSession && request.method == "DELETE") return SignOut(request);
  const auto presented = PresentedBy(request);
  if (!presented.ok()) return Refuse(presented.status());
  const auto caller = Admit(*presented, request);
  if (!caller.ok()) return Refuse(caller.status());
  return AnswerFor(*caller, *presented, request);
}

absl::StatusOr<Credentials> PageHandler::CertificateOf(const WebRequest& request) {
  Credentials credentials;
  if (request.certificate.empty()) return credentials;
  credentials.certificate = request.certificate;
  ASSIGN_OR_RETURN(credentials.identities, IdentitiesOfCertificate(request.certificate));
  return credentials;
}

absl::StatusOr<PageHandler::Presented> PageHandler::PresentedBy(const WebRequest& request) {
  Presented presented;
  Credentials& credentials = presented.credentials;
  ASSIGN_OR_RETURN(credentials, CertificateOf(request));
  const std::string cookie = CookieOf(request);
  if (!request.authorization.empty()) {
    // Several headers are joined by commas, which no bearer token has (RFC 6750, 2.1).
    if (!request.authorization.starts_with(kBearer) ||
        request.authorization.find(',') != std::string::npos) {
      return absl::UnauthenticatedError("the header Authorization has no bearer token");
    }
    credentials.token = request.authorization.substr(kBearer.size());
  } else if (!cookie.empty()) {
    credentials.token = sessions_.TokenOf(cookie);
    presented.is_session = credentials.token.has_value();
  }
  if (!credentials.token && credentials.identities.empty()) {
    return absl::UnauthenticatedError(
        options_.has_tls
            ? "sign in with a token of the aggregator's --access file, or use a client certificate"
            : "open the address that `neurontrace view --shared` prints; it has a token");
  }
  return presented;
}

absl::StatusOr<Caller> PageHandler::Admit(const Presented& presented, const WebRequest& request) {
  const Credentials& credentials = presented.credentials;
  const bool is_try = credentials.token && !presented.is_session;
  if (is_try && !throttle_.IsTryAllowed(request.peer)) {
    return ResourceExhausted("too many wrong tokens came from this address; try again in {} s",
                             limits::kSignInPauseNs / 1'000'000'000);
  }
  auto caller = HasRightToken(credentials)
                    ? deps_.access.AdmitPage(credentials, request.peer)
                    : absl::UnauthenticatedError(
                          "the token is not that of this aggregator; `neurontrace view --shared` "
                          "prints the current address");
  if (absl::IsUnauthenticated(caller.status())) {
    if (is_try) throttle_.RecordFailure(request.peer);
    if (presented.is_session) sessions_.End(CookieOf(request));
  }
  return caller;
}

// With TLS, AccessControl decides. Hashes are compared, so that the time tells nothing of the
// token.
bool PageHandler::HasRightToken(const Credentials& credentials) const {
  if (options_.has_tls) return true;
  return Sha256HexOf(credentials.token.value_or("")) == Sha256HexOf(token_);
}

std::string PageHandler::CookieOf(const WebRequest& request) const {
  return std::string(CookieValue(request.cookie, cookie_name_));
}

WebReply PageHandler::AnswerFor(const Caller& caller, const Presented& presented,
                                const WebRequest& request) {
  auto ticket = std::make_shared<TicketCaller>(deps_.access.page_callers().Issue(
      {.credentials = presented.credentials, .from = request.peer}));
  const auto gateway =
      deps_.gateway.For(std::move(ticket), {.name = caller.name,
                                            .role = std::string(ToString(caller.role)),
                                            .has_session = presented.is_session});
  if (!request.path.ends_with("/watch")) return gateway->Answer(request);
  if (!watches_->Add(caller.name)) {
    return ErrorReply({grpc::StatusCode::RESOURCE_EXHAUSTED,
                       "too many of your pages follow a running capture; close one of them"});
  }
  auto counted = std::make_unique<CountedStream>(watches_, caller.name);
  WebReply reply = gateway->Answer(request);
  if (reply.stream != nullptr) {
    counted->Wrap(std::move(reply.stream));
    reply.stream = std::move(counted);
  }
  return reply;
}

WebReply PageHandler::SignIn(const WebRequest& request) {
  auto credentials = CertificateOf(request);
  if (!credentials.ok()) return Refuse(credentials.status());
  const auto token = OperatorGateway::TokenOfBody(request.body);
  if (!token.ok()) return Refuse(token.status());
  credentials->token = *token;
  const auto caller = Admit({.credentials = *credentials}, request);
  if (!caller.ok()) return Refuse(caller.status());
  const auto cookie = BeginSession(*caller, *token, request);
  if (!cookie.ok()) return Refuse(cookie.status());
  WebRequest session = request;
  session.method = "GET";
  WebReply reply = AnswerFor(*caller, {.credentials = *credentials, .is_session = true}, session);
  reply.headers.emplace_back("Set-Cookie", SetCookie(*cookie));
  return reply;
}

absl::StatusOr<std::string> PageHandler::BeginSession(const Caller& caller,
                                                      const std::string& token,
                                                      const WebRequest& request) {
  auto cookie = sessions_.Begin(caller.name, token);
  deps_.access.audit().Write({.action = "page.sign_in",
                              .caller = caller.name,
                              .role = std::string(ToString(caller.role)),
                              .from = request.peer,
                              .outcome = cookie.status()});
  return cookie;
}

// Only without TLS: an address with a token that is valid for longer would be in logs of proxies.
WebReply PageHandler::SignInByAddress(const WebRequest& request) {
  const Credentials credentials{.token = std::string(ParameterOf(request.query, "token"))};
  const auto caller = Admit({.credentials = credentials}, request);
  if (!caller.ok()) return Refuse(caller.status());
  const auto cookie = BeginSession(*caller, *credentials.token, request);
  if (!cookie.ok()) return Refuse(cookie.status());
  return {.status = 303,
          .headers = {{"Location", OperatorGateway::AddressWithoutToken(request)},
                      {"Cache-Control", "no-store"},
                      {"Set-Cookie", SetCookie(*cookie)}}};
}

WebReply PageHandler::SignOut(const WebRequest& request) {
  sessions_.End(CookieOf(request));
  return {.content_type = "application/json; charset=utf-8",
          .headers = {{"Cache-Control", "no-store"}, {"Set-Cookie", SetCookie("")}},
          .body = "{}"};
}

std::string PageHandler::SetCookie(const std::string& cookie) const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict{}{}", cookie_name_, cookie,
                     options_.has_tls ? "; Secure" : "", cookie.empty() ? "; Max-Age=0" : "");
}

WebReply PageHandler::Refuse(const absl::Status& status) {
  if (absl::IsUnauthenticated(status)) ++unknown_;
  return ErrorReply(ToGrpcStatus(status));
}

}  // namespace neurontrace
