// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/access/access_control.h"
#include "aggregator/web/browser_sessions.h"
#include "aggregator/web/sign_in_throttle.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/web/operator_gateway.h"
#include "lib/web/web_server.h"

namespace neurontrace {

// Answers requests at the page's port: decides who sends them, and lets an OperatorGateway make
// calls of the aggregator's own service for that caller. Roles, jobs, limits and audit lines are
// those of the gRPC port. Any thread.
//
// With TLS a caller has a bearer token, presented in the header Authorization by a program or a
// proxy, or once at POST /api/v1/session by a browser, which gets a cookie; or a client
// certificate; or both, and then may do only what both may. Without TLS every caller of the
// aggregator is an administrator. The page still asks for a token then, which only callers of the
// gRPC port learn (see token()): a page of another site cannot make calls of gRPC.
class PageHandler final : public WebHandler {
 public:
  struct Options {
    std::vector<std::string> hosts;  // names in addresses, besides those of the loopback interface
    bool has_tls = false;
  };
  // All must outlive this. `gateway` makes calls without a caller's identity.
  struct Deps {
    AccessControl& access;
    const OperatorGateway& gateway;
    const Clock& clock;
    Random& random;
  };
  PageHandler(Options options, const Deps& deps);
  ~PageHandler() override;

  WebReply Handle(const WebRequest& request) override;

  // Returns the token of all callers without TLS: 256 random bits; empty with TLS.
  const std::string& token() const { return token_; }
  BrowserSessions& sessions() { return sessions_; }
  const SignInThrottle& throttle() const { return throttle_; }
  // Returns how many requests with a foreign host name or from another site were refused.
  uint64_t foreign() const { return foreign_; }
  // Returns how many requests without valid credentials were refused.
  uint64_t unknown() const { return unknown_; }

 private:
  class TicketCaller;
  class CallerWatches;
  class CountedStream;

  // Returns the refusal of a request that another site may have caused, or nullopt.
  std::optional<WebReply> RefuseForeign(const WebRequest& request) const;
  // Answer requests of the API, and those that begin and end sessions.
  WebReply Api(const WebRequest& request);
  WebReply SignIn(const WebRequest& request);
  WebReply SignInByAddress(const WebRequest& request);
  WebReply SignOut(const WebRequest& request);

  // What a request presents.
  struct Presented {
    Credentials credentials;
    bool is_session = false;  // the token is that of a session
  };
  // Returns what a request presents: header, cookie and certificate. Fails with UNAUTHENTICATED.
  absl::StatusOr<Presented> PresentedBy(const WebRequest& request);
  // Returns the credentials of the client's certificate, if it has one.
  static absl::StatusOr<Credentials> CertificateOf(const WebRequest& request);
  // Returns whose credentials these are. Limits wrong tokens, except those of sessions, which were
  // right once; a session whose token is no longer valid ends.
  absl::StatusOr<Caller> Admit(const Presented& presented, const WebRequest& request);
  bool HasRightToken(const Credentials& credentials) const;
  // Returns the value of the session's cookie, or "".
  std::string CookieOf(const WebRequest& request) const;
  // Begins a session, and writes that to the audit log. Returns the cookie.
  absl::StatusOr<std::string> BeginSession(const Caller& caller, const std::string& token,
                                           const WebRequest& request);
  // Answers a request of a known caller.
  WebReply AnswerFor(const Caller& caller, const Presented& presented, const WebRequest& request);
  // Returns the value of Set-Cookie that sets or, if `cookie` is empty, removes the cookie.
  std::string SetCookie(const std::string& cookie) const;
  // Answers with an error, and counts it if nobody was identified.
  WebReply Refuse(const absl::Status& status);

  const Options options_;
  const Deps deps_;
  const std::string token_;        // see token()
  const std::string cookie_name_;  // different for each aggregator of a host
  BrowserSessions sessions_;
  SignInThrottle throttle_;
  // Pages of each caller that follow a running capture. Shared with their streams.
  const std::shared_ptr<CallerWatches> watches_;
  std::atomic<uint64_t> foreign_ = 0;
  std::atomic<uint64_t> unknown_ = 0;
};

}  // namespace neurontrace
