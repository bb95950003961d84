// SPDX-License-Identifier: Apache-2.0
// Goal: each request of the page reaches the service as a call of whoever sent it, with the
// browser's address, and nobody else's request does. Method: a real AccessControl and a service
// that says who called it, within the process as in the aggregator.
#include "aggregator/web/page_handler.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "lib/base/sha256.h"
#include "lib/base/small_file.h"
#include "lib/base/temporary_directory.h"
#include "lib/web/web_assets.h"
#include "lib/wire/grpc_status.h"
#include "lib/wire/test_certificates.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Answers with its caller's name and address.
class EchoOperator final : public v1::OperatorService::Service {
 public:
  explicit EchoOperator(AccessControl& access) : access_(access) {}
  grpc::Status WatchCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                            grpc::ServerWriter<v1::Capture>* writer) override {
    if (request->capture_id() != "01ABC") return {grpc::StatusCode::NOT_FOUND, "no such capture"};
    writer->Write({});
    return grpc::Status::OK;
  }
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                         v1::GetStatusReply* reply) override {
    const auto caller = access_.CallerOf(*context);
    if (!caller.ok()) return ToGrpcStatus(caller.status());
    reply->set_version(caller->name + " as " + std::string(ToString(caller->role)) + " from " +
                       access_.PeerOf(*context));
    return grpc::Status::OK;
  }

 private:
  AccessControl& access_;
};

std::string HeaderOf(const WebReply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return "";
}

class PageHandlerTest : public ::testing::Test {
 protected:
  explicit PageHandlerTest(bool has_tls = true) {
    WriteRules(Rule("alice", "operator") + Rule("eve", "viewer") + Rule("agents", "agent") +
               "[carol]\ncertificate = \"cn:carol\"\nrole = \"viewer\"\n");
    access_ = AccessControl::Open({.policy_file = rules_,
                                   .audit_log = directory_ / "audit.log",
                                   .listen = "127.0.0.1:9400",
                                   .has_tls = has_tls,
                                   .calls_per_second = 1'000},
                                  {registry_, clock_, clock_})
                  .value();
    service_ = std::make_unique<EchoOperator>(*access_);
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::OperatorService::NewStub(server_->InProcessChannel({}));
    gateway_ = std::make_unique<OperatorGateway>(*stub_, assets_, OperatorGateway::Options{});
    handler_ = std::make_unique<PageHandler>(
        PageHandler::Options{.hosts = {"page.example"}, .has_tls = has_tls},
        PageHandler::Deps{*access_, *gateway_, clock_, random_});
  }
  ~PageHandlerTest() override {
    stub_.reset();
    server_->Shutdown();
  }

  static std::string Rule(const std::string& name, const std::string& role) {
    return "[" + name + "]\ntoken-sha256 = \"" + Sha256HexOf(name + "'s token") + "\"\nrole = \"" +
           role + "\"\n";
  }
  void WriteRules(const std::string& text) { std::ofstream(rules_) << text; }

  static WebRequest Request(const std::string& method, const std::string& path,
                            const std::string& body = "") {
    return {.method = method,
            .path = path,
            .host = "page.example:9403",
            .content_type = method == "GET" ? "" : "application/json",
            .body = body,
            .peer = "ipv4:10.0.0.9:4711"};
  }
  WebReply Ask(const WebRequest& request) { return handler_->Handle(request); }
  WebReply SignIn(const std::string& token) {
    return Ask(Request("POST", "/api/v1/session", "{\"token\":\"" + token + "\"}"));
  }
  // Signs in, and returns a request with the cookie.
  WebRequest SignedIn(const std::string& token) {
    WebRequest request = Request("GET", "/api/v1/status");
    const std::string cookie = HeaderOf(SignIn(token), "Set-Cookie");
    request.cookie = cookie.substr(0, cookie.find(';'));
    return request;
  }

  TemporaryDirectory directory_;
  const std::string rules_ = directory_ / "access";
  prometheus::Registry registry_;
  FakeClock clock_;
  SeededRandom random_{1};
  const WebAssets assets_ = WebAssets::BuiltIn();
  std::unique_ptr<AccessControl> access_;
  std::unique_ptr<EchoOperator> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;
  std::unique_ptr<OperatorGateway> gateway_;
  std::unique_ptr<PageHandler> handler_;
};

TEST_F(PageHandlerTest, ATokenThatWasTypedOnceMakesTheCalls) {
  const WebReply reply = SignIn("alice's token");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr(R"("user":"alice","role":"operator")"));
  EXPECT_THAT(reply.body, HasSubstr(R"("delete":false)"));
  EXPECT_THAT(reply.body, HasSubstr(R"("has_session":true)"));
  const std::string cookie = HeaderOf(reply, "Set-Cookie");
  EXPECT_THAT(cookie, StartsWith("__Host-neurontrace_"));
  EXPECT_THAT(cookie, HasSubstr("; Path=/; HttpOnly; SameSite=Strict; Secure"));
  EXPECT_THAT(cookie, Not(HasSubstr("alice")));
  EXPECT_THAT(Ask(SignedIn("alice's token")).body,
              HasSubstr("alice as operator from ipv4:10.0.0.9:4711"));
  EXPECT_EQ(access_->page_callers().size(), 0u) << "tickets end with their calls";
}

TEST_F(PageHandlerTest, TheAuditLogNamesWhoSignedIn) {
  SignIn("alice's token");
  SignIn("mallory's token");
  const std::string log = ReadSmallFile(directory_ / "audit.log", 1 << 20).value();
  EXPECT_THAT(log, HasSubstr(R"("action":"page.sign_in","caller":"alice","role":"operator",)"
                             R"("from":"ipv4:10.0.0.9:4711")"));
  EXPECT_THAT(log, HasSubstr(R"("action":"call","from":"ipv4:10.0.0.9:4711")"));
  EXPECT_THAT(log, Not(HasSubstr("'s token")));
}

TEST_F(PageHandlerTest, WithoutCredentialsOnlyThePageIsAnswered) {
  EXPECT_EQ(Ask(Request("GET", "/")).status, 200);
  EXPECT_THAT(HeaderOf(Ask(Request("GET", "/")), "Content-Security-Policy"),
              HasSubstr("default-src 'none'"));
  EXPECT_EQ(Ask(Request("GET", "/api/v1/status")).status, 401);
  EXPECT_EQ(SignIn("mallory's token").status, 401);
  EXPECT_EQ(HeaderOf(SignIn("mallory's token"), "Set-Cookie"), "");
  EXPECT_EQ(Ask(Request("POST", "/api/v1/session", "{}")).status, 400);
  EXPECT_EQ(SignIn("agents's token").status, 403) << "agents deliver, and do nothing else";
  WebRequest request = SignedIn("alice's token");
  request.cookie.back() = request.cookie.back() == '0' ? '1' : '0';
  EXPECT_EQ(Ask(request).status, 401);
  EXPECT_EQ(handler_->unknown(), 4u);
}

TEST_F(PageHandlerTest, AProxyForwardsTheUsersToken) {
  WebRequest request = Request("GET", "/api/v1/status");
  request.authorization = "Bearer eve's token";
  EXPECT_THAT(Ask(request).body, HasSubstr("eve as viewer"));
  request.authorization = "Basic ZXZlOnRva2Vu";
  EXPECT_EQ(Ask(request).status, 401);
  request.authorization = "Bearer eve's token,Bearer alice's token";
  EXPECT_EQ(Ask(request).status, 401);
}

// Else the page would offer to sign out where that changes nothing.
TEST_F(PageHandlerTest, OnlyACookieIsASession) {
  WebRequest request = Request("GET", "/api/v1/session");
  request.authorization = "Bearer eve's token";
  EXPECT_THAT(Ask(request).body, HasSubstr(R"("has_session":false)"));
  request = SignedIn("eve's token");
  request.path = "/api/v1/session";
  EXPECT_THAT(Ask(request).body, HasSubstr(R"("has_session":true)"));
}

TEST_F(PageHandlerTest, AClientCertificateIdentifiesAndLimits) {
  TestCertificates certificates;
  certificates.Issue("carol", {.common_name = "carol", .valid_until_s = 2'000'000'000});
  certificates.Issue("nobody", {.common_name = "nobody", .valid_until_s = 2'000'000'000});
  WebRequest request = Request("GET", "/api/v1/status");
  request.certificate = ReadSmallFile(certificates.cert("carol"), 1 << 20).value();
  EXPECT_THAT(Ask(request).body, HasSubstr("carol as viewer from ipv4:10.0.0.9:4711"));
  // Together with a token, it may do only what both may.
  request.authorization = "Bearer alice's token";
  EXPECT_THAT(Ask(request).body, HasSubstr("as viewer"));
  request.authorization = "";
  request.certificate = ReadSmallFile(certificates.cert("nobody"), 1 << 20).value();
  EXPECT_EQ(Ask(request).status, 403);
  request.certificate = "garbage";
  EXPECT_NE(Ask(request).status, 200);
}

TEST_F(PageHandlerTest, SessionsEndByTimeSignOutAndRevocation) {
  WebRequest request = SignedIn("alice's token");
  clock_.AdvanceNs(limits::kPageSessionIdleNs);
  EXPECT_EQ(Ask(request).status, 401);

  request = SignedIn("alice's token");
  WebRequest sign_out = request;
  sign_out.method = "DELETE";
  sign_out.path = "/api/v1/session";
  sign_out.content_type = "application/json";
  EXPECT_THAT(HeaderOf(Ask(sign_out), "Set-Cookie"), HasSubstr("Max-Age=0"));
  EXPECT_EQ(Ask(request).status, 401);

  request = SignedIn("alice's token");
  EXPECT_EQ(Ask(request).status, 200);
  WriteRules(Rule("eve", "viewer"));
  access_->ReloadChangedFiles(true);
  EXPECT_EQ(Ask(request).status, 401);
  EXPECT_EQ(handler_->sessions().counts().open, 0u);
}

TEST_F(PageHandlerTest, GuessingIsThrottledButSessionsContinue) {
  const WebRequest signed_in = SignedIn("alice's token");
  for (uint64_t i = 0; i < limits::kSignInFailuresAtOnce; ++i) {
    EXPECT_EQ(SignIn("guess").status, 401) << i;
  }
  EXPECT_EQ(SignIn("guess").status, 429);
  EXPECT_EQ(SignIn("alice's token").status, 429) << "a right guess must not be told apart";
  EXPECT_EQ(Ask(signed_in).status, 200);
  clock_.AdvanceNs(limits::kSignInPauseNs);
  EXPECT_EQ(SignIn("alice's token").status, 200);
}

TEST_F(PageHandlerTest, OneCallerDoesNotTakeAllWatches) {
  WebRequest watch = SignedIn("alice's token");
  watch.path = "/api/v1/captures/01ABC/watch";
  WebRequest none = watch;
  none.path = "/api/v1/captures/01NONE/watch";
  std::vector<WebReply> open;
  for (int i = 0; i < limits::kPageWatchesOfCallerMax; ++i) {
    EXPECT_EQ(Ask(none).status, 404) << "a refused one counts for nothing";
    open.push_back(Ask(watch));
    EXPECT_EQ(open.back().status, 200) << i;
  }
  EXPECT_EQ(Ask(watch).status, 429);
  WebRequest of_eve = SignedIn("eve's token");
  of_eve.path = watch.path;
  EXPECT_EQ(Ask(of_eve).status, 200);
  open.pop_back();
  EXPECT_EQ(Ask(watch).status, 200);
}

TEST_F(PageHandlerTest, RefusesForeignHostsAndSites) {
  WebRequest request = SignedIn("alice's token");
  request.host = "evil.example:9403";
  EXPECT_EQ(Ask(request).status, 403);
  EXPECT_THAT(Ask(request).body, HasSubstr("--view-host"));
  request.host = "page.example";
  request.fetch_site = "cross-site";
  EXPECT_EQ(Ask(request).status, 403);
  request.fetch_site = "same-origin";
  EXPECT_EQ(Ask(request).status, 200);
  WebRequest form = Request("POST", "/api/v1/session", R"({"token":"alice's token"})");
  form.content_type = "text/plain";
  EXPECT_EQ(Ask(form).status, 403);
  EXPECT_EQ(handler_->foreign(), 4u);
}

TEST_F(PageHandlerTest, ATokenInAnAddressIsNoneWithTls) {
  WebRequest request = Request("GET", "/");
  request.query = "token=alice's token";
  EXPECT_EQ(HeaderOf(Ask(request), "Set-Cookie"), "");
  EXPECT_EQ(handler_->token(), "");
}

class PlainPageHandlerTest : public PageHandlerTest {
 protected:
  PlainPageHandlerTest() : PageHandlerTest(false) {}
};

// Every caller is an administrator, but a page of another site cannot learn the token.
TEST_F(PlainPageHandlerTest, AsksForTheTokenOfThisAggregator) {
  EXPECT_EQ(handler_->token().size(), 64u);
  EXPECT_EQ(Ask(Request("GET", "/api/v1/status")).status, 401);
  EXPECT_EQ(SignIn("alice's token").status, 401);
  WebRequest request = Request("GET", "/capture/01ABC");
  request.query = "from=1&token=" + handler_->token();
  const WebReply reply = Ask(request);
  EXPECT_EQ(reply.status, 303);
  EXPECT_EQ(HeaderOf(reply, "Location"), "/capture/01ABC?from=1");
  const std::string cookie = HeaderOf(reply, "Set-Cookie");
  EXPECT_THAT(cookie, StartsWith("neurontrace_"));
  EXPECT_THAT(cookie, Not(HasSubstr("Secure"))) << "a browser would not send it back";
  EXPECT_THAT(cookie, Not(HasSubstr(handler_->token())));
  EXPECT_THAT(Ask(SignedIn(handler_->token())).body, HasSubstr("anybody as admin from ipv4:10."));
}

}  // namespace
}  // namespace neurontrace
